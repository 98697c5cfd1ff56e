"""Spaces as plain data, and back: all that consist of a fixed number of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

#: how deep Tuple and Dict spaces may lie in one another
_DEEPEST = 8


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
    if isinstance(space, MultiBinary):
        n = list(space.shape) if isinstance(space.n, tuple) else int(space.n)
        return {"space": "MultiBinary", "n": n}
    if isinstance(space, Tuple):
        return {"space": "Tuple", "parts": [describe_space(part) for part in space.spaces]}
    if isinstance(space, Dict):
        parts = [[name, describe_space(part)] for name, part in space.spaces.items()]
        return {"space": "Dict", "parts": parts}
    raise TypeError(f"space {space} does not hold a fixed number of numbers: wrap the environment")


def space_from(description: Mapping[str, Any], depth: int = 0) -> gym.Space[Any]:
    """The space of a description, which lies inside ``depth`` others.

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
        case "MultiBinary":
            n = description["n"]
            return MultiBinary([int(size) for size in n] if isinstance(n, list) else int(n))
        case "Tuple" if depth < _DEEPEST:
            return Tuple([space_from(part, depth + 1) for part in description["parts"]])
        case "Dict" if depth < _DEEPEST:
            parts = description["parts"]
            return Dict([(str(name), space_from(part, depth + 1)) for name, part in parts])
        case other:
            raise ValueError(f"space {str(other)[:60]!r} is none that a file may describe")
