"""One run: a worker turns a curve and a seed into arrays and a record."""

from __future__ import annotations

import math
import platform
import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.experiments.definitions import CHECKPOINTS, Curve, Measure, Run
from rblspi.registry import algorithm
from rblspi.rollout.evaluate import evaluate

#: the arrays of an online run, with an entry for every episode or the mean of every block: the
#: length, the return, and whether the episode was shorter than the step limit
SERIES = ("length", "return", "under_limit")
#: the arrays of a run, or of several, by name
Arrays = dict[str, NDArray[Any]]


class Record(NamedTuple):
    """Facts about one run, apart from its arrays."""

    seed: int
    code: str  # version of the code that ran
    seconds: float  # processor time, which does not depend on other work on the machine
    steps: int  # number of transitions
    warnings: tuple[str, ...]  # that the algorithm gave
    versions: dict[str, str]  # of Python and of packages
    finished: str  # the time in UTC, in ISO format
    block: int = 1  # episodes behind an entry; more than 1 where only means were imported


class FinishedRun(NamedTuple):
    """A finished run.

    Arrays of an online run are `SERIES`, shape (episodes / block,), and, if the greedy policy is
    evaluated, its means at every checkpoint, ``greedy_length`` and ``greedy_return``. An offline
    run has ``action_values`` of every iteration, shape (iterations, states, actions).
    """

    curve: Curve
    record: Record
    arrays: Arrays


def execute(run: Run) -> FinishedRun:
    """Execute one run; equal runs give equal arrays on every worker."""
    from threadpoolctl import threadpool_limits

    from rblspi.experiments.code_version import code_version

    learn = _online if algorithm(run.curve.algorithm).online else _offline
    start = time.thread_time()
    with (
        warnings.catch_warnings(record=True) as caught,
        threadpool_limits(limits=1, user_api="blas"),
    ):
        warnings.simplefilter("always")
        arrays, steps = learn(run.curve, run.seed)
    seconds = time.thread_time() - start
    messages = tuple(sorted({str(warning.message) for warning in caught}))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    code = code_version(run.curve)
    record = Record(run.seed, code, seconds, steps, messages, versions(), finished)
    return FinishedRun(run.curve, record, arrays)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    packages = ("rblspi", "numpy", "scipy", "numba", "gymnasium")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def rehearse(curve: Curve) -> None:
    """Check the settings of a curve and compile what it needs, by running it for a moment.

    Raises
    ------
    ValueError, TypeError
        If the algorithm, the basis or the environment does not accept the settings.
    """
    from rblspi.rollout.collect import random_walk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if algorithm(curve.algorithm).online:
            make_agent(curve, 0).learn(total_timesteps=1)
        else:
            make_estimator(curve).fit(random_walk(make_environment(curve), 100, 0))


def make_environment(curve: Curve) -> Any:
    """The environment of a curve, with its arguments."""
    from rblspi.environments.lookup import make

    return make(curve.environment, **curve.arguments)


def make_agent(curve: Curve, seed: int) -> Any:
    """The agent of an online curve."""
    from rblspi.features import basis_from_settings

    kind, env = algorithm(curve.algorithm).load(), make_environment(curve)
    basis = basis_from_settings(curve.basis) if curve.basis else None
    return kind(env, basis, **curve.settings, seed=seed)


def make_estimator(curve: Curve) -> Any:
    """The estimator of an offline curve."""
    from rblspi.environments.actions import action_set
    from rblspi.features import basis_from_settings

    env = make_environment(curve)
    return algorithm(curve.algorithm).load()(
        basis_from_settings(curve.basis),
        action_set(env.action_space).count,
        observation_space=env.observation_space,
        **curve.settings,
    )


def _online(curve: Curve, seed: int) -> tuple[Arrays, int]:
    agent = make_agent(curve, seed)
    evaluated = []
    for place in checkpoints(curve.episodes) if curve.evaluation else [curve.episodes]:
        agent.learn(episodes=place - len(agent.episodes), reset_num_timesteps=False)
        if curve.evaluation:
            evaluated.append(evaluate(agent, episodes=curve.evaluation, seed=seed))
    lengths, returns = np.ascontiguousarray(agent.episodes.T, np.float64)
    under_limit = (lengths < longest_episode(curve)).astype(np.float64)
    arrays = dict(zip(SERIES, (lengths, returns, under_limit), strict=True))
    if evaluated:
        arrays[greedy_name("length")] = np.array([found.lengths.mean() for found in evaluated])
        arrays[greedy_name("return")] = np.array([found.returns.mean() for found in evaluated])
    return arrays, int(agent.num_timesteps)


def longest_episode(curve: Curve) -> float:
    """The step limit of the environment of a curve; infinity if it has none."""
    from rblspi.environments.base import step_limit

    limit = step_limit(make_environment(curve))
    return float(limit) if limit > 0 else math.inf


def checkpoints(episodes: int) -> list[int]:
    """The numbers of episodes after which the greedy policy is evaluated."""
    return sorted({-(-i * episodes // CHECKPOINTS) for i in range(1, CHECKPOINTS + 1)})


def greedy_name(measure: Measure) -> str:
    """The name of the array with a measure of the greedy policy."""
    return f"greedy_{measure}"


def _offline(curve: Curve, seed: int) -> tuple[Arrays, int]:
    from rblspi.rollout.collect import random_walk

    samples = random_walk(make_environment(curve), curve.samples, seed)
    fitted = make_estimator(curve).fit(samples)
    x = fitted.features_(np.arange(fitted.observation_space.n))
    weights = np.stack([iteration.weights for iteration in fitted.history_])
    values = np.einsum("sn,ian->isa", x, weights.reshape(len(weights), fitted.actions, -1))
    return {"action_values": values}, curve.samples
