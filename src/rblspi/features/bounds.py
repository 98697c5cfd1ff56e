"""Bounds of the observations, from an observation space or from the user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete

from rblspi.core.types import Mask, Vector
from rblspi.environments.vectors import has_image, vector_space

Bound = float | Sequence[float] | None
Counts = int | Sequence[int]
Angles = int | Sequence[int] | None


def observation_shape(space: gym.Space[Any]) -> tuple[int, ...]:
    """The shape of one observation; () in a Discrete space, (d,) where parts are flattened."""
    return tuple(vector_space(space).shape or ())


def input_size(space: gym.Space[Any]) -> int:
    """The number of components of an observation in this space."""
    return math.prod(observation_shape(space))


def finite_values(space: gym.Space[Any]) -> tuple[Vector, Vector] | None:
    """The first value and the number of values of each component, if they are whole numbers.

    None where they are not, or where they have no bounds.
    """
    vectors = vector_space(space)
    if isinstance(vectors, Discrete):
        return _flat(vectors.start), _flat(vectors.n)
    if isinstance(vectors, MultiDiscrete):
        return _flat(vectors.start), _flat(vectors.nvec)
    low, high = _flat(vectors.low), _flat(vectors.high)
    if not np.issubdtype(vectors.dtype, np.integer) or is_unbounded(low, high).any():
        return None
    return low, high - low + 1.0


def states_of(space: gym.Space[Any]) -> int | None:
    """How many different observations there are; None where they are not finitely many."""
    found = finite_values(space)
    return None if found is None else math.prod(int(count) for count in found[1])


def limits(space: gym.Space[Any]) -> tuple[Vector, Vector]:
    """The lowest and the highest value of each dimension in the space; may be infinite."""
    vectors = vector_space(space)
    if has_image(space):
        raise TypeError(
            f"observation space {space} has images: these features are for a few numbers, such as "
            "positions and velocities. Wrap the environment so that it gives these, or pass a "
            "basis of your own, a function that makes a vector of features of an image"
        )
    if isinstance(vectors, Discrete | MultiDiscrete):
        lower, count = finite_values(vectors) or (np.empty(0), np.empty(0))
        return lower, lower + count - 1
    return _flat(vectors.low), _flat(vectors.high)


def is_unbounded(lower: Vector, upper: Vector) -> Mask:
    """Which dimensions lack a bound.

    A Box of float32 may mark a missing bound by the largest float32 instead of infinity. The
    negation makes NaN count as a missing bound.
    """
    return ~((np.abs(lower) < 1e30) & (np.abs(upper) < 1e30))


def bounds(
    space: gym.Space[Any], low: Bound = None, high: Bound = None, angles: Angles = None
) -> tuple[Vector, Vector]:
    """The lower and upper bound of each dimension; given bounds override those of the space.

    A dimension that is an angle and has no bounds goes from -pi to pi.
    """
    lower, upper = limits(space)
    if low is not None:
        lower = per_dimension("low", low, len(lower))
    if high is not None:
        upper = per_dimension("high", high, len(upper))
    unbounded = is_unbounded(lower, upper)
    if angles is not None:
        turning = unbounded & circles(lower, upper, angles)
        lower, upper = np.where(turning, -np.pi, lower), np.where(turning, np.pi, upper)
        unbounded &= ~turning
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


def circles(lower: Vector, upper: Vector, angles: Angles = None) -> Mask:
    """Which dimensions are a circle: those given, or those with the bounds -pi and pi."""
    if angles is None:  # bounds may be written with the precision of float32
        return np.isclose(lower, -np.pi, rtol=1e-6) & np.isclose(upper, np.pi, rtol=1e-6)
    given = np.atleast_1d(np.asarray(angles, dtype=np.float64))
    if given.size and not np.isin(given, np.arange(len(lower))).all():
        raise ValueError(
            f"angles={angles} must be numbers of dimensions, each from 0 to {len(lower) - 1}"
        )
    return np.isin(np.arange(len(lower)), given)


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
