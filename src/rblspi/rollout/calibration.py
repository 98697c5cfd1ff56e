"""Is a policy as sure as it should be? Stated intervals against true action values.

Intervals are about the action values of the policy itself, so these are the truth that they are
compared with. On the chain walk the truth is exact. Elsewhere it is a mean of
discounted returns of copies of the environment, continued from states that the policy visits.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core import check
from rblspi.core.intervals import share_interval
from rblspi.core.types import Array, Matrix
from rblspi.environments.chain_walk import ChainWalk
from rblspi.environments.spaces import as_vectors
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import DRAWS, reach
from rblspi.rollout.evaluate import Actor, environment_for, policy_of
from rblspi.rollout.steps import rollout

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])


class Calibration(NamedTuple):
    """Stated and true action values at some states and actions.

    Attributes
    ----------
    mean, std : ndarray, shape (N,)
        What the policy states.
    truth : ndarray, shape (N,)
    error : ndarray, shape (N,)
        Standard error of the truth; 0 where it is exact.
    of_means : bool
        Whether these are means over regions of states, by held-out episodes. The error of a mean
        may be far smaller than those of the states, so that a large width is no fault then.
    draws : int
        The number of value functions behind the deviations.
    """

    mean: Array
    std: Array
    truth: Array
    error: Array
    of_means: bool = False
    draws: int = DRAWS

    def coverage(self, level: float | Array) -> Array:
        """Share of true values inside the central intervals of this probability.

        Where the truth itself has an error, the intervals are those for what was measured.
        """
        half = reach(self.draws, np.atleast_1d(level)[:, None]) * np.hypot(self.std, self.error)
        inside: Array = np.mean(np.abs(self.truth - self.mean) <= half, axis=1)
        return inside

    @property
    def discrepancy(self) -> float:
        """Mean distance of the coverage from the level it should have, over all `LEVELS`."""
        return float(np.mean(np.abs(self.coverage(LEVELS) - LEVELS)))

    @property
    def sharpness(self) -> float:
        """Mean width of the 95% intervals, as a multiple of the width that 95% of errors need."""
        needed = float(np.quantile(np.abs(self.truth - self.mean), 0.95))
        stated = float(reach(self.draws, 0.95) * np.hypot(self.std, self.error).mean())
        return stated / needed if needed > 0.0 else math.inf

    @property
    def verdict(self) -> str:
        """What to make of the stated intervals, in words."""
        inside = share_interval(round(float(self.coverage(0.95)[0]) * len(self.std)), len(self.std))
        if inside.high < 0.9:
            return "too sure: do not rely on the intervals"
        if self.sharpness > 3.0 and not self.of_means:
            return "true, but wider than they need be"
        return "true" if inside.low > 0.9 else "about true"

    def __str__(self) -> str:
        """The result in two sentences."""
        (inside,) = self.coverage(0.95)
        noise = float(np.median(self.error))
        what = "mean returns of held-out regions" if self.of_means else "true action values"
        return (
            f"{inside:.0%} of {len(self.truth)} {what} lie in their 95% interval; over all levels "
            f"the coverage is off by {self.discrepancy:.2f} (the true values have a standard error "
            f"of {noise:.2g}, the stated deviations are {np.median(self.std):.2g}). "
            f"The intervals are {self.sharpness:.1f} times as wide as they need to be: "
            f"{self.verdict}"
        )


class TrueValues(NamedTuple):
    """What the actions of a policy are worth in some states."""

    observations: NDArray[Any]  # (N, ...)
    values: Matrix  # (N, actions)
    errors: Matrix  # their standard errors; 0 where they are exact


def calibrate(
    actor: Actor,
    env: gym.Env[Any, Any] | str | None = None,
    *,
    states: int = 40,
    rollouts: int = 16,
    seed: int = 0,
    longest: int = 2000,
) -> Calibration:
    """Compare what a policy states of its action values with what is true.

    Parameters
    ----------
    actor : Agent or LinearPolicy
        With a posterior.
    env : gymnasium.Env or str, optional
        As for `evaluate`.
    states : int
        How many of the states that it visits; on the chain walk, all states count.
    rollouts : int
        Returns whose mean is the truth of a state and action.
    seed, longest : int
        As for `evaluate`; a rollout ends sooner where the discount makes the rest small.
    """
    policy = policy_of(actor)
    if policy.value_draws is None:
        raise ValueError(f"{policy.origin} states no intervals to be checked: let it learn first")
    return calibration_of(policy, true_values(actor, env, states, rollouts, seed, longest))


def calibration_of(policy: LinearPolicy, true: TrueValues) -> Calibration:
    """Put what is stated of a policy beside its true values."""
    stated = policy.action_values(true.observations)
    assert stated.std is not None
    assert stated.draws is not None
    return Calibration(
        stated.mean.ravel(),
        stated.std.ravel(),
        true.values.ravel(),
        true.errors.ravel(),
        draws=len(stated.draws),
    )


def true_values(
    actor: Actor,
    env: gym.Env[Any, Any] | str | None = None,
    states: int = 40,
    rollouts: int = 16,
    seed: int = 0,
    longest: int = 2000,
) -> TrueValues:
    """Action values of the greedy policy in states that it visits, by simulation.

    The arguments are those of `calibrate`.
    """
    check.count("states", states)
    check.count("rollouts", rollouts)
    policy, explorer = policy_of(actor), policy_of(actor, explore=True)
    with environment_for(actor, env) as environment:
        chain = environment.unwrapped
        if isinstance(chain, ChainWalk) and policy.discount < 1.0:
            everywhere = np.arange(len(chain.rewards))
            truth = chain.exact_action_values(policy(everywhere), policy.discount)
            return TrueValues(everywhere, truth, np.zeros_like(truth))
        copies, observations = visited_states(policy, explorer, environment, states, seed)
    # Two rollouts tell whether chance plays a part; where it does not, they are enough.
    few = min(2, rollouts)
    returns = rollout_returns(policy, copies, few, seed, longest)
    if few < rollouts and np.ptp(returns, axis=2).any():
        returns = rollout_returns(policy, copies, rollouts, seed, longest)
    return TrueValues(observations, *mean_and_error(returns))


def visited_states(
    policy: LinearPolicy, explorer: LinearPolicy, env: gym.Env[Any, Any], states: int, seed: int
) -> tuple[list[Any], Array]:
    """Copies of the environment in states on the policy's way, and their observations.

    Every other action, on average, is the explorer's.
    """
    rng = np.random.default_rng(seed)
    copies: list[Any] = []
    observations = []
    skip = 0

    def act(observation: Any, **masks: Any) -> Any:
        nonlocal skip
        if skip == 0:
            copies.append(_copied(env.unwrapped))
            observations.append(as_vectors(env.observation_space, observation))
            skip = int(rng.integers(1, 40))
        skip -= 1
        greedy = bool(rng.random() < 0.5)
        return (policy if greedy else explorer).predict(observation, deterministic=greedy, **masks)[
            0
        ]

    for step in rollout(env, act, seed=seed):
        if len(copies) == states:
            return copies, np.array(observations)
        if step.ended:
            skip = int(rng.integers(0, 5))
    raise AssertionError("a rollout has no end")


def _copied(env: Any) -> Any:
    try:
        return copy.deepcopy(env)
    except Exception as error:  # whatever an environment holds that cannot be copied
        raise ValueError(
            f"{env} cannot be copied, so the true values of its states cannot be found: {error}"
        ) from error


def rollout_returns(
    policy: LinearPolicy, copies: list[Any], rollouts: int, seed: int, longest: int
) -> Array:
    """Discounted returns of the policy after each action, shape (states, actions, rollouts).

    All copies go on in step, so that the policy chooses all of their actions at once.
    """
    shape = (len(copies), policy.actions, rollouts)
    rngs = np.random.default_rng(seed).spawn(math.prod(shape))
    envs = [_copied(copies[i]) for i in np.repeat(np.arange(shape[0]), shape[1] * shape[2])]
    for env, rng in zip(envs, rngs, strict=True):
        env.np_random = rng
    actions = np.tile(np.repeat(np.arange(shape[1]), shape[2]), shape[0])
    actions = policy.action_set.actions(actions)
    returns = np.zeros(len(envs))
    alive = np.arange(len(envs))
    weight = 1.0
    for _ in range(longest):
        observations, running = [], []
        for i, action in zip(alive, actions, strict=True):
            observation, reward, terminated, _, _ = envs[i].step(action)
            returns[i] += weight * float(reward)
            if not terminated:
                running.append(i)
                observations.append(as_vectors(envs[i].observation_space, observation))
        alive = np.array(running, dtype=np.int64)
        weight *= policy.discount
        if not len(alive) or weight < 1e-4:
            break
        actions, _ = policy.predict(np.array(observations), deterministic=True)
    return returns.reshape(shape)


def mean_and_error(returns: Array) -> tuple[Matrix, Matrix]:
    """Means over the rollouts, and their standard errors."""
    rollouts = returns.shape[2]
    mean = returns.mean(axis=2)
    if rollouts == 1:
        return mean, np.zeros_like(mean)
    return mean, returns.std(axis=2, ddof=1) / math.sqrt(rollouts)
