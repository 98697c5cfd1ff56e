"""Where observations live: a box, read from an observation space or given by the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Bound = float | Sequence[float] | None


def input_size(space: gym.Space[Any]) -> int:
    """The length of an observation of this space as a vector of floats."""
    if isinstance(space, gym.spaces.Discrete):
        return 1
    if isinstance(space, gym.spaces.Box):
        return int(np.prod(space.shape))
    raise TypeError(
        f"observation space {space} is neither Box nor Discrete: flatten it first, for example "
        "with gymnasium.wrappers.FlattenObservation"
    )


def bounds(
    space: gym.Space[Any], low: Bound = None, high: Bound = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper bound of every dimension; what the user gives goes before the space's.

    Raises
    ------
    ValueError
        If a dimension stays unbounded or empty; the message says how to give bounds.
    """
    size = input_size(space)
    if isinstance(space, gym.spaces.Box):
        own_low, own_high = space.low.ravel(), space.high.ravel()
    else:
        assert isinstance(space, gym.spaces.Discrete)
        own_low, own_high = np.array([space.start]), np.array([space.start + space.n - 1])
    lower = _per_dimension("low", low, own_low.astype(np.float64), size)
    upper = _per_dimension("high", high, own_high.astype(np.float64), size)
    # A Box of float32 writes "no bound" as the largest float32.
    unbounded = (np.abs(lower) > 1e30) | (np.abs(upper) > 1e30) | ~np.isfinite(lower + upper)
    if unbounded.any():
        raise ValueError(
            f"observation dimensions {np.flatnonzero(unbounded).tolist()} have no bounds: give "
            f"the range of interest, for example low={np.where(unbounded, -1.0, lower).tolist()}, "
            f"high={np.where(unbounded, 1.0, upper).tolist()}"
        )
    if not (lower < upper).all():
        raise ValueError(
            f"low={lower.tolist()} must lie below high={upper.tolist()} in every dimension"
        )
    return lower, upper


def _per_dimension(
    name: str, given: Bound, default: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    if given is None:
        return default.copy()
    value = np.asarray(given, dtype=np.float64)
    if value.ndim > 0 and value.shape != (size,):
        raise ValueError(
            f"{name} has {value.size} values, but an observation has {size} dimensions"
        )
    return np.broadcast_to(value, (size,)).copy()
