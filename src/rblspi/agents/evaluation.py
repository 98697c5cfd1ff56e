"""How good a policy is: its episodes, their mean, and how sure that mean is."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from rblspi import check
from rblspi.environments.find import make

if TYPE_CHECKING:
    from rblspi.agents.base import Agent

Array = NDArray[np.float64]

#: quantile of the standard normal for an interval of 95%
_Z = 1.959963984540054


class Interval(NamedTuple):
    """A mean and its 95% confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """As ``mean ± half the interval``."""
        return f"{self.mean:.4g} ± {self.high - self.mean:.2g}"


class Evaluation(NamedTuple):
    """Episodes of a policy that was not learning meanwhile.

    Attributes
    ----------
    lengths, returns : ndarray, shape (episodes,)
        Steps and undiscounted returns.
    """

    lengths: Array
    returns: Array

    @property
    def mean_return(self) -> Interval:
        """Mean return, with its confidence interval."""
        return _interval(self.returns)

    @property
    def mean_length(self) -> Interval:
        """Mean length of an episode, with its confidence interval."""
        return _interval(self.lengths)


def evaluate(
    agent: Agent,
    env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any] | str | None = None,
    episodes: int = 100,
    *,
    deterministic: bool = True,
    seed: int = 0,
    longest: int = 100_000,
) -> Evaluation:
    """Let an agent act without learning.

    Parameters
    ----------
    agent : Agent
        Stays as it is.
    env : gymnasium.Env, gymnasium.vector.VectorEnv or str, optional
        By default a new copy of the one it learns in. One that has no id, or is in a wrapper
        of the user's own, cannot be made anew: then the agent's own is borrowed. The episode
        under way is left, its random numbers go on as if nothing had been, and whatever else
        it or a wrapper remembers stays changed: pass another one to avoid that. Every part of
        a vector environment contributes the same number of episodes, so that short ones do
        not come first.
    episodes : int
    deterministic : bool
        True: greedy in the best estimate. False: as the agent explores.
    seed : int
        Of the environment.
    longest : int
        Steps after which an episode counts as ended, for environments that never do.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If one part of a vector environment needs a new episode after `longest` steps, and is
        of a kind that begins new episodes only in all parts at once.
    """
    check.count("episodes", episodes)
    check.count("longest", longest)
    drawn = agent.rng.bit_generator.state  # an agent that explores draws from its own numbers
    try:
        if isinstance(env, VectorEnv):
            return _evaluate_vector(agent, env, episodes, deterministic, seed, longest)
        with _environment(agent, env) as single:
            return _evaluate_single(agent, single, episodes, deterministic, seed, longest)
    finally:
        agent.rng.bit_generator.state = drawn


def _environment(
    agent: Agent, env: gym.Env[Any, Any] | str | None
) -> AbstractContextManager[gym.Env[Any, Any]]:
    """Where to evaluate: what was made for that is closed afterwards, the rest left as it was."""
    if env is None:
        return spare_environment(agent)
    if isinstance(env, str):
        return closing(make(env))
    return borrowed(agent) if env is agent.env else nullcontext(make(env))


def spare_environment(agent: Agent) -> AbstractContextManager[gym.Env[Any, Any]]:
    """An environment like the agent's: a copy, or its own where none can be made."""
    env = _copy_of_environment(agent)
    return borrowed(agent) if env is agent.env else closing(env)


def _copy_of_environment(agent: Agent) -> gym.Env[Any, Any]:
    """A copy of the environment the agent learns in, which is in the middle of an episode.

    The agent's own, to be used within `borrowed`, where it cannot be made anew: it has no id, or
    a wrapper that does not tell Gymnasium what it was made with.
    """
    if agent.env.spec is None or any(w.kwargs is None for w in agent.env.spec.additional_wrappers):
        return agent.env
    spec = copy.deepcopy(agent.env.spec)
    spec.kwargs.pop("render_mode", None)
    return gym.make(spec)


@contextmanager
def borrowed(agent: Agent) -> Iterator[gym.Env[Any, Any]]:
    """Use the environment an agent learns in for something else.

    Afterwards its random numbers are as they were, and the agent begins a new episode.
    """
    env: Any = agent.env.unwrapped
    generator, seed = getattr(env, "_np_random", None), getattr(env, "_np_random_seed", None)
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else None
    state: Any = None if bits is None else bits.state
    try:
        yield agent.env
    finally:
        if bits is not None:
            bits.state = state  # some environments seed it in place
        env._np_random, env._np_random_seed = generator, seed
        agent.leave_episode()


def _evaluate_single(
    agent: Agent,
    env: gym.Env[Any, Any],
    episodes: int,
    deterministic: bool,
    seed: int,
    longest: int,
) -> Evaluation:
    record = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        length, earned, ended = 0, 0.0, False
        while not ended and length < longest:
            action, _ = agent.predict(observation, deterministic=deterministic)
            observation, reward, terminated, truncated, _ = env.step(action)
            length += 1
            earned += float(reward)
            ended = bool(terminated or truncated)
        record.append((length, earned))
    lengths, returns = np.array(record, dtype=np.float64).T
    return Evaluation(lengths, returns)


def _evaluate_vector(
    agent: Agent,
    env: VectorEnv[Any, Any, Any],
    episodes: int,
    deterministic: bool,
    seed: int,
    longest: int,
) -> Evaluation:
    mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    wanted = (episodes + np.arange(env.num_envs)) // env.num_envs
    lengths, earned = np.zeros(env.num_envs), np.zeros(env.num_envs)
    record = []
    observations, _ = env.reset(seed=seed)
    resetting = np.zeros(env.num_envs, dtype=bool)
    while wanted.any():
        actions, _ = agent.predict(observations, deterministic=deterministic)
        observations, rewards, terminated, truncated, _ = env.step(actions)
        lengths += ~resetting
        earned += np.where(resetting, 0.0, rewards)
        ended = (terminated | truncated) & ~resetting
        over = ended | (lengths >= longest)
        for i in np.flatnonzero(over & (wanted > 0)):
            record.append((lengths[i], earned[i]))
            wanted[i] -= 1
        lengths[over] = earned[over] = 0.0
        resetting = ended & (mode == AutoresetMode.NEXT_STEP)
        unfinished = over & ~ended & (wanted > 0)
        if unfinished.any() and not _resets_parts(env):
            raise ValueError(
                f"an episode was not over after longest={longest} steps, and {env} cannot begin "
                "a new one in one part alone: pass a larger longest, or a SyncVectorEnv"
            )
        anew = unfinished | (ended & (mode == AutoresetMode.DISABLED))
        if anew.any():
            observations, _ = env.reset(options={"reset_mask": anew})
    table = np.array(record, dtype=np.float64)
    return Evaluation(table[:, 0], table[:, 1])


def _resets_parts(env: VectorEnv[Any, Any, Any]) -> bool:
    """Whether the environment heeds a ``reset_mask``; without automatic resets it has to."""
    return (
        isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        or env.metadata.get("autoreset_mode") == AutoresetMode.DISABLED
    )


def _interval(values: Array) -> Interval:
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = _Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)
