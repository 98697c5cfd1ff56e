"""The range of each dimension of an observation, and which dimensions are angles.

An angle is either one component, a number on a circle, or two neighbouring components: its cosine
and its sine, in either order. The coordinates of an observation are its components, with atan2 of
every such pair in place of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.types import Mask, Matrix, Vector
from rblspi.environments.spaces import is_unbounded, limits
from rblspi.features.primitives import CIRCLE, LINE, PAIR, first_components

Bound = float | Sequence[float] | None
Counts = int | Sequence[int]
Angles = int | Sequence[int] | None
#: components that are angles, such as 2, and pairs that are the cosine and the sine of one: (0, 1)
AnglesAndPairs = int | Sequence[int | Sequence[int]] | None

#: error of x^2 + y^2 = 1 where x and y are rounded to float32
_ROUNDING = 1e-6


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


def per_dimension(name: str, given: float | Sequence[float], size: int) -> Vector:
    """One value for each dimension, given a single value for all of them or one for each."""
    value = np.asarray(given, dtype=np.float64)
    if value.ndim > 0 and value.shape != (size,):
        raise ValueError(
            f"{name}={given} has {value.size} values, but an observation has {size} dimensions"
        )
    return np.broadcast_to(value, (size,)).copy()


def widths_per_dimension(given: float | Sequence[float], size: int) -> Vector:
    """The width of a Gaussian along each dimension."""
    width = per_dimension("width", given, size)
    if not ((width > 0) & np.isfinite(width)).all():
        raise ValueError(f"width={given} must be positive")
    return width


def counts_per_dimension(name: str, given: Counts, size: int, least: int = 1) -> list[int]:
    """One whole number for each dimension, at least ``least``."""
    value = per_dimension(name, given, size)
    if not ((value >= least) & (value == np.floor(value)) & np.isfinite(value)).all():
        raise ValueError(f"{name}={given} must be whole numbers, {least} or more")
    return [int(count) for count in value]


# Angles -------------------------------------------------------------------------------------------


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


def components(angles: AnglesAndPairs) -> tuple[int, ...] | None:
    """All components that are an angle or belong to one; None where angles are not given."""
    if angles is None:
        return None
    given = angles if isinstance(angles, Sequence) else (angles,)
    parts = (angle if isinstance(angle, Sequence) else (angle,) for angle in given)
    return tuple(component for part in parts for component in part)


def kinds_of_coordinates(low: Vector, high: Vector, angles: AnglesAndPairs) -> Vector:
    """LINE, CIRCLE or PAIR for each coordinate of observations with these bounds."""
    single = circles(low, high, components(angles))
    given = angles if isinstance(angles, Sequence) else ()
    pairs = [tuple(angle) for angle in given if isinstance(angle, Sequence)]
    firsts = {pair[0] for pair in pairs if len(pair) == 2 and pair[1] == pair[0] + 1}
    if len(set(components(given) or ())) < len(components(given) or ()) or len(firsts) < len(pairs):
        raise ValueError(
            f"angles={angles}: a pair is two neighbouring components, such as (0, 1), and no "
            "component belongs to two angles"
        )
    kinds = [
        PAIR if d in firsts else CIRCLE if single[d] else LINE
        for d in range(len(low))
        if d - 1 not in firsts
    ]
    return np.array(kinds, np.float64)


def coordinates_of(observations: Matrix, kinds: Vector) -> Matrix:
    """The coordinates of observations, shape (N, d), as rows."""
    x = observations[:, first_components(kinds)].astype(np.float64)
    pairs = kinds == PAIR
    x[:, pairs] = np.arctan2(observations[:, first_components(kinds)[pairs] + 1], x[:, pairs])
    return x


def find_angles(
    low: Vector, high: Vector, scout: Callable[[], Matrix]
) -> tuple[int | tuple[int, int], ...]:
    """The angles in observations within these bounds, which may be infinite.

    Angles are components with the bounds -pi and pi, and neighbours that lie on the unit circle in
    all observations that ``scout`` returns, shape (N, d). ``scout`` is called only if the bounds
    allow such pairs.
    """
    single = circles(low, high)
    free = (np.isclose(low, -1.0) & np.isclose(high, 1.0)) | is_unbounded(low, high)
    pairs = _on_unit_circle(scout(), free) if (free[1:] & free[:-1]).any() else []
    return (*np.flatnonzero(single).tolist(), *pairs)


def find_useless(seen: Matrix, angles: AnglesAndPairs) -> tuple[int, ...]:
    """Components that tell nothing beside those before them, in observations, shape (N, d).

    They never change, or are linear functions of components before them, but for rounding. An
    angle made of two components is left out only as a whole. If nothing changes, nothing is.
    """
    useless, directions = set(), np.empty((len(seen), 0))
    for d, column in enumerate(seen.T):
        left = column - column.mean()
        for _ in range(2):  # once leaves an error of rounding in what is left
            left = left - directions @ (directions.T @ left)
        if np.linalg.norm(left) <= _ROUNDING * np.linalg.norm(column):
            useless.add(d)
        else:
            directions = np.column_stack([directions, left / np.linalg.norm(left)])
    pairs = [a for a in angles if isinstance(a, Sequence)] if isinstance(angles, Sequence) else []
    for pair in pairs:
        if not useless.issuperset(pair):
            useless.difference_update(pair)
    return tuple(sorted(useless)) if len(useless) < seen.shape[1] else ()


def _on_unit_circle(seen: Matrix, free: Mask) -> list[tuple[int, int]]:
    """Neighbours on the unit circle; one-hot indicators, with two values each, do not count."""
    pairs: list[tuple[int, int]] = []
    for d in range(seen.shape[1] - 1):
        x, y = seen[:, d], seen[:, d + 1]
        taken = bool(pairs) and pairs[-1][1] == d
        on_circle = (np.abs(x * x + y * y - 1.0) <= _ROUNDING).all()
        if free[d] and free[d + 1] and not taken and on_circle and len(np.unique(x)) > 2:
            pairs.append((d, d + 1))
    return pairs
