"""Angles in observations, and coordinates in which every angle is one number.

An angle is either one component, a number on a circle, or two neighbouring components: its cosine
and its sine, in either order. The coordinates of an observation are its components, with atan2 of
every such pair in place of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rblspi.core.types import Mask, Matrix, Vector
from rblspi.features.bounds import circles, is_unbounded
from rblspi.features.primitives import CIRCLE, LINE, PAIR, first_components

#: components that are angles, such as 2, and pairs of them that are one, such as (0, 1)
AnglesAndPairs = int | Sequence[int | Sequence[int]] | None

#: of x^2 + y^2 = 1 where x and y are rounded to float32
ROUNDING = 1e-6


def components(angles: AnglesAndPairs) -> tuple[int, ...] | None:
    """All components that are an angle or belong to one; None where angles are not given."""
    if angles is None:
        return None
    given = angles if isinstance(angles, Sequence) else (angles,)
    parts = (angle if isinstance(angle, Sequence) else (angle,) for angle in given)
    return tuple(component for part in parts for component in part)


def kinds_of_coordinates(low: Vector, high: Vector, angles: AnglesAndPairs) -> Vector:
    """What each coordinate is, for components with these bounds; see `circles`."""
    single = circles(low, high, components(angles))
    given = angles if isinstance(angles, Sequence) else ()
    pairs = [tuple(angle) for angle in given if isinstance(angle, Sequence)]
    firsts = {pair[0] for pair in pairs if len(pair) == 2 and pair[1] == pair[0] + 1}
    if len(set(components(given) or ())) < len(components(given) or ()) or len(firsts) < len(pairs):
        raise ValueError(
            f"angles={angles}: a pair is two neighbouring components, such as (0, 1), and no "
            "component belongs to two angles"
        )
    return np.array(
        [
            PAIR if d in firsts else CIRCLE if single[d] else LINE
            for d in range(len(low))
            if d - 1 not in firsts
        ],
        np.float64,
    )


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

    Those are components with the bounds -pi and pi, and neighbours that lie on the unit circle in
    all that ``scout`` returns, shape (N, d). It is called only where the bounds allow such pairs.
    """
    single = circles(low, high)
    free = (np.isclose(low, -1.0) & np.isclose(high, 1.0)) | is_unbounded(low, high)
    pairs = _on_unit_circle(scout(), free) if (free[1:] & free[:-1]).any() else []
    return (*np.flatnonzero(single).tolist(), *pairs)


def _on_unit_circle(seen: Matrix, free: Mask) -> list[tuple[int, int]]:
    """Neighbours that lie on the unit circle, and on more of it than two indicators do."""
    pairs: list[tuple[int, int]] = []
    for d in range(seen.shape[1] - 1):
        x, y = seen[:, d], seen[:, d + 1]
        taken = bool(pairs) and pairs[-1][1] == d
        on_circle = (np.abs(x * x + y * y - 1.0) <= ROUNDING).all()
        if free[d] and free[d + 1] and not taken and on_circle and len(np.unique(x)) > 2:
            pairs.append((d, d + 1))
    return pairs
