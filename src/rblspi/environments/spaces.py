"""Spaces as plain data, and back: Box, Discrete and MultiDiscrete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete


def describe_space(space: gym.Space[Any]) -> dict[str, Any]:
    """Everything that `space_from` needs."""
    if isinstance(space, Discrete):
        return {"space": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        return {
            "space": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
        }
    if isinstance(space, Box):
        return {
            "space": "Box",
            "low": space.low.ravel().tolist(),
            "high": space.high.ravel().tolist(),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    raise TypeError(
        f"space {space} is neither Box nor Discrete nor MultiDiscrete: flatten it first"
    )


def space_from(description: Mapping[str, Any]) -> gym.Space[Any]:
    """The space of a description.

    Raises
    ------
    ValueError, TypeError, LookupError
        If it does not describe a space.
    """
    match description["space"]:
        case "Discrete":
            return Discrete(int(description["n"]), start=int(description["start"]))
        case "MultiDiscrete":
            start = np.array(description["start"], np.int64)
            return MultiDiscrete(np.array(description["nvec"], np.int64), start=start)
        case "Box":
            shape = tuple(int(size) for size in description["shape"])
            dtype = np.dtype(description["dtype"])
            if dtype.kind not in "fiu":
                raise ValueError(f"a Box of {dtype} does not hold numbers")
            low, high = (
                np.array(description[name], np.float64).reshape(shape).astype(dtype)
                for name in ("low", "high")
            )
            return Box(low, high, shape, dtype.type)
        case other:
            raise ValueError(
                f"space {str(other)[:60]!r} is neither Box, Discrete nor MultiDiscrete"
            )
