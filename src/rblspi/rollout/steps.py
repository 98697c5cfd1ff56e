"""Acting in any environment, step by step, in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi.core.types import Matrix
from rblspi.environments.actions import action_set
from rblspi.environments.spaces import action_mask, as_vector

#: Maps an observation to an action of the environment's action space. If the environment tells
#: which actions are allowed, ``action_masks`` is passed as well.
Act = Callable[..., Any]


class Step(NamedTuple):
    """One transition, as the environment gave it."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool  # by the environment or a limit of steps; False where terminated
    number: int  # in its episode, from 1 on
    next_mask: Any = None  # actions allowed next; None: all, or no action follows

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


def rollout(
    env: gym.Env[Any, Any], act: Act, *, seed: int | None = None, longest: int | None = None
) -> Iterator[Step]:
    """Act without end; after the end of an episode, the next step begins another one.

    Parameters
    ----------
    env : gymnasium.Env
    act : callable
    seed : int, optional
        Seed of the first reset.
    longest : int, optional
        Steps after which an episode counts as truncated.
    """
    if not takes_masks(act):
        act = _without_masks(act)
    while True:
        observation, info = checked_reset(env, seed)
        mask = action_mask(env.observation_space, observation, info)
        seed, number, ended = None, 0, False
        while not ended:
            action = act(observation, action_masks=mask) if mask is not None else act(observation)
            after, reward, terminated, truncated, info = checked_step(env, action)
            mask = None if terminated else action_mask(env.observation_space, after, info)
            number += 1
            cut = truncated or number == longest
            ended = terminated or cut
            yield Step(
                observation,
                action,
                reward,
                after,
                terminated,
                cut and not terminated,
                number,
                mask,
            )
            observation = after


def takes_masks(act: Callable[..., Any]) -> bool:
    """Whether a function has an argument ``action_masks``."""
    try:
        arguments = inspect.signature(act).parameters.values()
    except ValueError:  # some builtins have no signature
        return False
    return any(a.name == "action_masks" or a.kind is a.VAR_KEYWORD for a in arguments)


def _without_masks(act: Act) -> Act:
    return lambda observation, **masks: act(observation)


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


def random_act(env: gym.Env[Any, Any]) -> Act:
    """Allowed actions, drawn uniformly by the random numbers of the action space."""
    actions = action_set(env.action_space)

    def act(observation: Any, action_masks: Any = None) -> Any:
        return actions.sample(None if action_masks is None else np.asarray(action_masks, np.int8))

    return act


def observe_random_actions(
    env: gym.Env[Any, Any], seed: np.random.SeedSequence, steps: int = 1000
) -> Matrix:
    """Observations that random actions reach, shape (steps, d)."""
    reset_seed, action_seed = (int(s) for s in seed.generate_state(2) >> 1)
    env.action_space.seed(action_seed)
    walk = rollout(env, random_act(env), seed=reset_seed)
    space = env.observation_space
    return np.array([as_vector(space, next(walk).observation) for _ in range(steps)])


# Calls whose results are checked against Gymnasium's interface ------------------------------------


def checked_reset(env: gym.Env[Any, Any], seed: int | None) -> tuple[Any, dict[str, Any]]:
    """Begin an episode; two numbers of an observation must not pass for (observation, info).

    Raises
    ------
    TypeError
        If the environment returns anything other than a tuple ``(observation, info)``.
    """
    result = env.reset(seed=seed)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise TypeError(_sentence("reset", env, "(observation, info)", result))
    return result


def checked_step(
    env: gym.Env[Any, Any], action: Any
) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Make one step.

    Raises
    ------
    TypeError
        If the environment does not return ``(observation, reward, terminated, truncated, info)``
        with one number for a reward.
    """
    result: Any = env.step(action)
    if not (isinstance(result, tuple) and len(result) == 5):
        wanted = "(observation, reward, terminated, truncated, info)"
        raise TypeError(_sentence("step", env, wanted, result))
    observation, reward, terminated, truncated, info = result
    try:
        return observation, float(reward), bool(terminated), bool(truncated), info
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"step() of {env} must return one number for a reward, and true or false for "
            f"terminated and truncated, and not {reward!r}, {terminated!r} and {truncated!r}"
        ) from error


def _sentence(method: str, env: gym.Env[Any, Any], wanted: str, result: Any) -> str:
    got = f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__
    return f"{method}() of {env} must return {wanted}, as Gymnasium asks for, and not {got}"
