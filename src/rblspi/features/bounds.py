"""Where observations live: a box, read from an observation space or given by the user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from numpy.typing import NDArray

from rblspi.features.base import Vector

Bound = float | Sequence[float] | None


def observation_shape(space: gym.Space[Any]) -> tuple[int, ...]:
    """Return the shape of one observation: () for the bare numbers of a Discrete space."""
    if isinstance(space, Box | Discrete | MultiDiscrete):
        return tuple(space.shape or ())
    raise TypeError(
        f"observation space {space} is neither Box nor Discrete nor MultiDiscrete: flatten it "
        "first, for example with gymnasium.wrappers.FlattenObservation"
    )


def input_size(space: gym.Space[Any]) -> int:
    """Return the length of an observation of this space as a vector of floats."""
    return math.prod(observation_shape(space))


def discrete_values(space: Discrete | MultiDiscrete) -> tuple[Vector, Vector]:
    """First value and number of values, for every component of a discrete observation."""
    count = space.n if isinstance(space, Discrete) else space.nvec
    return _flat(space.start), _flat(count)


def limits(space: gym.Space[Any]) -> tuple[Vector, Vector]:
    """Lowest and highest value of every dimension, as the space has them, infinity included."""
    if isinstance(space, Discrete | MultiDiscrete):
        lower, count = discrete_values(space)
        return lower, lower + count - 1
    observation_shape(space)
    assert isinstance(space, Box)
    return _flat(space.low), _flat(space.high)


def is_unbounded(lower: Vector, upper: Vector) -> NDArray[np.bool_]:
    """Which dimensions have no bounds.

    A Box of float32 writes "no bound" as the largest float32; the negation catches NaN as well.
    """
    return ~((np.abs(lower) < 1e30) & (np.abs(upper) < 1e30))


def bounds(space: gym.Space[Any], low: Bound = None, high: Bound = None) -> tuple[Vector, Vector]:
    """Lower and upper bound of every dimension; what the user gives goes before the space's.

    Raises
    ------
    ValueError
        If a dimension stays unbounded or empty; the message says how to give bounds.
    """
    size = input_size(space)
    lower, upper = limits(space)
    if low is not None:
        lower = per_dimension("low", low, size)
    if high is not None:
        upper = per_dimension("high", high, size)
    unbounded = is_unbounded(lower, upper)
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


def per_dimension(name: str, given: float | Sequence[float], size: int) -> Vector:
    """One value for each dimension, from one for all or one for each."""
    value = np.asarray(given, dtype=np.float64)
    if value.ndim > 0 and value.shape != (size,):
        raise ValueError(
            f"{name}={given} has {value.size} values, but an observation has {size} dimensions"
        )
    return np.broadcast_to(value, (size,)).copy()


def counts_per_dimension(
    name: str, given: int | Sequence[int], size: int, least: int = 1
) -> list[int]:
    """One whole number for each dimension, none below ``least``."""
    value = per_dimension(name, given, size)
    if not ((value >= least) & (value == np.floor(value)) & np.isfinite(value)).all():
        raise ValueError(f"{name}={given} must be whole numbers, {least} or more")
    return [int(count) for count in value]


def _flat(value: Any) -> Vector:
    return np.asarray(value, dtype=np.float64).ravel()
