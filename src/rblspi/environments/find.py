"""Environments by name, with a helpful word where the name is not known."""

from __future__ import annotations

import difflib
from typing import Any

import gymnasium as gym


def make(env: gym.Env[Any, Any] | str, **arguments: Any) -> gym.Env[Any, Any]:
    """The environment itself, or the one with this id.

    Raises
    ------
    ValueError
        Where no environment has this id; the message suggests the nearest.
    """
    if isinstance(env, gym.Env):
        return env
    if not isinstance(env, str):
        raise TypeError(f"env={env!r} is neither a Gymnasium environment nor the id of one")
    try:
        return gym.make(env, **arguments)
    except (gym.error.UnregisteredEnv, gym.error.Error) as error:
        near = difflib.get_close_matches(env, list(gym.registry), n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "see `rblspi list`"
        if isinstance(error, gym.error.UnregisteredEnv):
            raise ValueError(f"no environment is called {env!r}: {hint}") from None
        raise
