"""One run: what a worker does with a curve and a seed, and what it hands back."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.experiments.definitions import OFFLINE, ONLINE, Curve, Run


class Outcome(NamedTuple):
    """What one run gave.

    Attributes
    ----------
    arrays : dict of ndarray
        Online: ``length`` and ``return`` of every episode, shape (episodes,). Offline:
        ``action_values`` of every iteration, shape (iterations, states, actions).
    steps : int
        Transitions in all.
    seconds : float
        Processor time, which other work on the machine does not lengthen.
    concerns : tuple of str
        What the algorithm warned of.
    code : str
        Version of the code that ran.
    """

    arrays: dict[str, NDArray[Any]]
    steps: int
    seconds: float
    concerns: tuple[str, ...]
    code: str


def execute(run: Run) -> Outcome:
    """Do one run; the same run gives the same arrays, whoever does it."""
    from threadpoolctl import threadpool_limits

    from rblspi.experiments.code_version import code_version

    learn: Callable[[Curve, int], tuple[dict[str, NDArray[Any]], int]]
    learn = _online if run.curve.algorithm in ONLINE else _offline
    start = time.thread_time()
    with (
        warnings.catch_warnings(record=True) as caught,
        threadpool_limits(limits=1, user_api="blas"),
    ):
        warnings.simplefilter("always")
        arrays, steps = learn(run.curve, run.seed)
    seconds = time.thread_time() - start
    concerns = tuple(sorted({str(warning.message) for warning in caught}))
    return Outcome(arrays, steps, seconds, concerns, code_version(run.curve))


def rehearse(curve: Curve) -> None:
    """Check a curve's settings, and compile what it needs, by its first step.

    Raises
    ------
    ValueError, TypeError
        If the algorithm, the basis or the environment does not accept the settings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if curve.algorithm in ONLINE:
            agent(curve, 0).learn(total_timesteps=1)
        else:
            estimator(curve).fit(random_walk(curve.environment, 100, 0))


def agent(curve: Curve, seed: int) -> Any:
    """The online agent of a curve."""
    from rblspi.agents import ALGORITHMS
    from rblspi.features import basis_from_settings

    make = ALGORITHMS[curve.algorithm]
    return make(curve.environment, basis_from_settings(curve.basis), **curve.settings, seed=seed)


def estimator(curve: Curve) -> Any:
    """The offline estimator of a curve."""
    from rblspi.environments.find import make
    from rblspi.estimators import BLSPI, LSPI
    from rblspi.features import basis_from_settings

    kinds: dict[str, Any] = dict(zip(OFFLINE, (LSPI, BLSPI), strict=True))
    env = make(curve.environment)
    return kinds[curve.algorithm](
        basis_from_settings(curve.basis),
        int(env.action_space.n),  # type: ignore[attr-defined]
        observation_space=env.observation_space,
        **curve.settings,
    )


def _online(curve: Curve, seed: int) -> tuple[dict[str, NDArray[Any]], int]:
    learner = agent(curve, seed).learn(episodes=curve.episodes)
    length, earned = learner.episodes.T
    arrays = {"length": length.astype(np.int32), "return": np.ascontiguousarray(earned)}
    return arrays, int(learner.num_timesteps)


def _offline(curve: Curve, seed: int) -> tuple[dict[str, NDArray[Any]], int]:
    fitted = estimator(curve).fit(random_walk(curve.environment, curve.samples, seed))
    states = np.arange(fitted.observation_space.n)
    x = fitted.features_(states)
    weights = np.stack([iteration.weights for iteration in fitted.history_])
    values = np.einsum("sn,ian->isa", x, weights.reshape(len(weights), fitted.actions, -1))
    return {"action_values": values}, curve.samples


def random_walk(environment: str, samples: int, seed: int) -> Any:
    """Transitions of uniformly random actions, episodes following one another."""
    from rblspi.environments.find import make
    from rblspi.transitions import Transitions

    env = make(environment)
    actions = np.random.default_rng(seed).integers(env.action_space.n, size=samples)  # type: ignore[attr-defined]
    here, _ = env.reset(seed=seed)
    rows = []
    for action in actions:
        there, reward, terminated, truncated, _ = env.step(action)
        rows.append((here, action, reward, there, terminated))
        here = env.reset()[0] if terminated or truncated else there
    return Transitions.from_arrays(*(np.array(column) for column in zip(*rows, strict=True)))
