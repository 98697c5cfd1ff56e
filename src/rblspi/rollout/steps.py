"""Acting in any environment, step by step, in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi.core.types import Matrix
from rblspi.environments.vectors import as_vector

#: From an observation to an action of the environment's action space.
Act = Callable[[Any], Any]


class Step(NamedTuple):
    """One transition, as the environment gave it."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool  # by the environment or a limit of steps; False where terminated
    number: int  # in its episode, from 1 on

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


def rollout(
    env: gym.Env[Any, Any], act: Act, *, seed: int | None = None, longest: int | None = None
) -> Iterator[Step]:
    """Act without end; where an episode is over, the next step begins another one.

    Parameters
    ----------
    env : gymnasium.Env
    act : callable
    seed : int, optional
        Of the first reset.
    longest : int, optional
        Steps after which an episode counts as truncated.
    """
    while True:
        observation, _ = env.reset(seed=seed)
        seed, number, ended = None, 0, False
        while not ended:
            action = act(observation)
            after, reward, terminated, truncated, _ = env.step(action)
            number += 1
            cut = bool(truncated) or number == longest
            ended = bool(terminated) or cut
            yield Step(
                observation,
                action,
                float(reward),
                after,
                bool(terminated),
                cut and not terminated,
                number,
            )
            observation = after


def episodes(
    env: gym.Env[Any, Any],
    act: Act,
    count: int,
    *,
    seed: int | None = None,
    longest: int | None = None,
) -> Iterator[list[Step]]:
    """Whole episodes, one after the other."""
    steps = rollout(env, act, seed=seed, longest=longest)
    for _ in range(count):
        episode = [next(steps)]
        while not episode[-1].ended:
            episode.append(next(steps))
        yield episode


def observe_random_actions(
    env: gym.Env[Any, Any], seed: np.random.SeedSequence, steps: int = 1000
) -> Matrix:
    """Observations that random actions come across, shape (steps, d)."""
    reset_seed, action_seed = (int(s) for s in seed.generate_state(2) >> 1)
    env.action_space.seed(action_seed)
    walk = rollout(env, lambda observation: env.action_space.sample(), seed=reset_seed)
    space = env.observation_space
    return np.array([as_vector(space, next(walk).observation) for _ in range(steps)])
