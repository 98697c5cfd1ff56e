"""Bounds of the observations, from an observation space or from the user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from rblspi.core.types import Mask, Vector

Bound = float | Sequence[float] | None
Counts = int | Sequence[int]


def observation_shape(space: gym.Space[Any]) -> tuple[int, ...]:
    """The shape of one observation; () in a Discrete space, whose observations are numbers."""
    if isinstance(space, Box | Discrete | MultiDiscrete):
        return tuple(space.shape or ())
    raise TypeError(
        f"observation space {space} is neither Box nor Discrete nor MultiDiscrete: flatten it "
        "first, for example with gymnasium.wrappers.FlattenObservation"
    )


def input_size(space: gym.Space[Any]) -> int:
    """The number of components of an observation in this space."""
    return math.prod(observation_shape(space))


def discrete_values(space: Discrete | MultiDiscrete) -> tuple[Vector, Vector]:
    """The first value and the number of values of each component of a discrete observation."""
    count = space.n if isinstance(space, Discrete) else space.nvec
    return _flat(space.start), _flat(count)


def limits(space: gym.Space[Any]) -> tuple[Vector, Vector]:
    """The lowest and the highest value of each dimension in the space; may be infinite."""
    if isinstance(space, Discrete | MultiDiscrete):
        lower, count = discrete_values(space)
        return lower, lower + count - 1
    observation_shape(space)
    assert isinstance(space, Box)
    return _flat(space.low), _flat(space.high)


def is_unbounded(lower: Vector, upper: Vector) -> Mask:
    """Which dimensions lack a bound.

    A Box of float32 may mark a missing bound by the largest float32 instead of infinity. The
    negation makes NaN count as a missing bound.
    """
    return ~((np.abs(lower) < 1e30) & (np.abs(upper) < 1e30))


def bounds(space: gym.Space[Any], low: Bound = None, high: Bound = None) -> tuple[Vector, Vector]:
    """The lower and upper bound of each dimension; given bounds override those of the space."""
    lower, upper = limits(space)
    if low is not None:
        lower = per_dimension("low", low, len(lower))
    if high is not None:
        upper = per_dimension("high", high, len(upper))
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
    """One value for each dimension, given a single value for all of them or one for each."""
    value = np.asarray(given, dtype=np.float64)
    if value.ndim > 0 and value.shape != (size,):
        raise ValueError(
            f"{name}={given} has {value.size} values, but an observation has {size} dimensions"
        )
    return np.broadcast_to(value, (size,)).copy()


def counts_per_dimension(name: str, given: Counts, size: int, least: int = 1) -> list[int]:
    """One whole number for each dimension, at least ``least``."""
    value = per_dimension(name, given, size)
    if not ((value >= least) & (value == np.floor(value)) & np.isfinite(value)).all():
        raise ValueError(f"{name}={given} must be whole numbers, {least} or more")
    return [int(count) for count in value]


def _flat(value: Any) -> Vector:
    return np.asarray(value, dtype=np.float64).ravel()
