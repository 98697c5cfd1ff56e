"""Calls of an environment in Python, whose answers are those that Gymnasium asks for."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


def reset(env: gym.Env[Any, Any], seed: int | None) -> tuple[Any, dict[str, Any]]:
    """Begin an episode; an observation of two numbers must not pass for (observation, info).

    Raises
    ------
    TypeError
        If the environment returns anything else than a tuple ``(observation, info)``.
    """
    result = env.reset(seed=seed)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise TypeError(_sentence("reset", env, "(observation, info)", result))
    return result


def step(env: gym.Env[Any, Any], action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
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
