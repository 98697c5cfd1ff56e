"""Is the agent as sure as it should be? Stated intervals against true action values.

The posterior is about the action values of the agent's own policy, greedy in the mean: that is
the truth it is compared with. On the chain walk the truth is exact. Elsewhere it is a mean of
discounted returns from copies of the environment, which play on from states the agent visits.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import norm

from rblspi import check
from rblspi.agents.evaluation import spare_environment
from rblspi.environments.chain_walk import ChainWalk
from rblspi.report import ink

if TYPE_CHECKING:
    from rblspi.agents import Agent

Array = NDArray[np.float64]

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])


class Calibration(NamedTuple):
    """Stated and true action values at some states and actions.

    Attributes
    ----------
    mean, std : ndarray, shape (N,)
        What the agent states.
    truth : ndarray, shape (N,)
    error : ndarray, shape (N,)
        Standard error of the truth; 0 where it is exact.
    """

    mean: Array
    std: Array
    truth: Array
    error: Array

    def coverage(self, level: float | Array) -> Array:
        """Share of true values inside the central intervals of this probability."""
        reach = norm.ppf(0.5 + np.atleast_1d(level)[:, None] / 2.0) * self.std
        inside: Array = np.mean(np.abs(self.truth - self.mean) <= reach, axis=1)
        return inside

    @property
    def discrepancy(self) -> float:
        """Mean distance of the coverage from the level it should have, over all `LEVELS`."""
        return float(np.mean(np.abs(self.coverage(LEVELS) - LEVELS)))


def calibrate(
    agent: Agent, *, states: int = 40, rollouts: int = 16, seed: int = 0, longest: int = 2000
) -> Calibration:
    """Compare what an agent states with what is true.

    Parameters
    ----------
    agent : Agent
        One with a posterior.
    states : int
        How many of the states that it visits, apart from the chain walk, where all count.
    rollouts : int
        Returns that the truth of a state and action is the mean of.
    seed : int
        Of the environment.
    longest : int
        Steps of a rollout at the most; it ends sooner where the discount makes the rest small.
    """
    if agent.posterior is None:
        raise ValueError(
            f"{type(agent).__name__} states no intervals to be checked: train an agent of the "
            "class RBLSPI"
        )
    check.count("states", states)
    check.count("rollouts", rollouts)
    env = agent.env.unwrapped
    if isinstance(env, ChainWalk) and agent.discount < 1.0:
        everywhere = np.arange(len(env.rewards))
        stated = agent.action_values(everywhere)
        truth = env.exact_action_values(np.argmax(stated.mean, axis=1), agent.discount)
        return _collect(stated.mean, stated.std, truth, np.zeros_like(truth))
    copies, observations = _visited(agent, states, seed)
    stated = agent.action_values(observations)
    # Two rollouts tell whether chance plays a part; where it does not, they are enough.
    few = min(2, rollouts)
    returns = _rollouts(agent, copies, few, seed, longest)
    if few < rollouts and np.ptp(returns, axis=2).any():
        returns = _rollouts(agent, copies, rollouts, seed, longest)
    return _collect(stated.mean, stated.std, *_mean_and_error(returns))


def _collect(mean: Array, std: Array | None, truth: Array, error: Array) -> Calibration:
    assert std is not None
    return Calibration(mean.ravel(), std.ravel(), truth.ravel(), error.ravel())


def _visited(agent: Agent, states: int, seed: int) -> tuple[list[Any], Array]:
    """Copies of the environment in states that the policy visits, and their observations."""
    with spare_environment(agent) as env:
        return _copies_on_the_way(agent, env, states, seed)


def _copies_on_the_way(
    agent: Agent, env: gym.Env[Any, Any], states: int, seed: int
) -> tuple[list[Any], Array]:
    rng = np.random.default_rng(seed)
    copies: list[Any] = []
    observations = []
    observation, _ = env.reset(seed=seed)
    skip = 0
    while len(copies) < states:
        if skip == 0:
            copies.append(_copied(env.unwrapped))
            observations.append(np.array(observation, dtype=np.float64))
            skip = int(rng.integers(1, 40))
        action, _ = agent.predict(observation, deterministic=bool(rng.random() < 0.5))
        observation, _, terminated, truncated, _ = env.step(action)
        skip -= 1
        if terminated or truncated:
            observation, _ = env.reset()
            skip = int(rng.integers(0, 5))
    return copies, np.array(observations)


def _copied(env: Any) -> Any:
    try:
        return copy.deepcopy(env)
    except Exception as error:  # whatever an environment holds that cannot be copied
        raise ValueError(
            f"{env} cannot be copied, so the true values of its states cannot be found: {error}"
        ) from error


def _rollouts(agent: Agent, copies: list[Any], rollouts: int, seed: int, longest: int) -> Array:
    """Discounted returns of the policy after each action, shape (states, actions, rollouts).

    All copies go on in step, so that the agent is asked for all of their actions at once.
    """
    shape = (len(copies), agent.actions, rollouts)
    start = int(agent.env.action_space.start)  # type: ignore[attr-defined]
    rngs = np.random.default_rng(seed).spawn(math.prod(shape))
    envs = [_copied(copies[i]) for i in np.repeat(np.arange(shape[0]), shape[1] * shape[2])]
    for env, rng in zip(envs, rngs, strict=True):
        env.np_random = rng
    actions = np.tile(np.repeat(np.arange(shape[1]), shape[2]), shape[0]) + start
    returns = np.zeros(len(envs))
    alive = np.arange(len(envs))
    weight = 1.0
    for _ in range(longest):
        observations, running = [], []
        for i, action in zip(alive, actions, strict=True):
            observation, reward, terminated, _, _ = envs[i].step(int(action))
            returns[i] += weight * float(reward)
            if not terminated:
                running.append(i)
                observations.append(observation)
        alive = np.array(running, dtype=np.int64)
        weight *= agent.discount
        if not len(alive) or weight < 1e-4:
            break
        actions, _ = agent.predict(np.array(observations), deterministic=True)
    return returns.reshape(shape)


def _mean_and_error(returns: Array) -> tuple[Array, Array]:
    """Means over the rollouts, and their standard errors."""
    rollouts = returns.shape[2]
    mean = returns.mean(axis=2)
    if rollouts == 1:
        return mean, np.zeros_like(mean)
    return mean, returns.std(axis=2, ddof=1) / math.sqrt(rollouts)


def sentence(result: Calibration) -> str:
    """The result in one sentence."""
    (inside,) = result.coverage(0.95)
    noise = float(np.median(result.error))
    return (
        f"{inside:.0%} of {len(result.truth)} true action values lie in their 95% interval; over "
        f"all levels the coverage is off by {result.discrepancy:.2f} (the true values have a "
        f"standard error of {noise:.2g}, the stated deviations are {np.median(result.std):.2g})"
    )


def draw(result: Calibration) -> Figure:
    """Draw stated against true values, and the coverage of intervals of every level."""
    figure = Figure(figsize=(7.4, 3.5), layout="constrained")
    scatter, curve = figure.subplots(1, 2)
    low = min(result.truth.min(), result.mean.min())
    high = max(result.truth.max(), result.mean.max())
    scatter.plot([low, high], [low, high], color=ink.GREY, lw=1, ls="--", zorder=1)
    scatter.errorbar(
        result.truth,
        result.mean,
        xerr=2.0 * result.error if result.error.any() else None,
        yerr=2.0 * result.std,
        fmt="o",
        color=ink.BLUE,
        markersize=3,
        elinewidth=0.6,
        alpha=0.6,
    )
    scatter.set_xlabel("true action value")
    scatter.set_ylabel("stated action value ± 2 std")
    scatter.set_title("Stated and true values", fontweight="bold")

    levels = np.linspace(0.0, 0.995, 200)
    curve.plot([0, 1], [0, 1], color=ink.GREY, lw=1, ls="--", label="as stated")
    curve.plot(levels, result.coverage(levels), color=ink.VERMILLION, lw=1.8, label="found")
    (inside,) = result.coverage(0.95)
    curve.plot([0.95], [inside], "o", color=ink.VERMILLION, markersize=5)
    curve.annotate(
        f"{inside:.0%} in the 95% interval",
        (0.95, inside),
        xytext=(0.93, max(inside - 0.12, 0.05) if inside > 0.3 else inside + 0.15),
        ha="right",
        fontsize=8,
    )
    curve.set(xlim=(0, 1), ylim=(0, 1.02))
    curve.set_xlabel("probability of the interval")
    curve.set_ylabel("share of true values inside")
    curve.set_title("Coverage", fontweight="bold")
    curve.legend(loc="upper left")
    return figure
