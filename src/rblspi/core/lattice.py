"""Points that cover a box evenly, without any randomness."""

from __future__ import annotations

import numpy as np

from rblspi.core.types import Matrix


def lattice(size: int, dimensions: int) -> Matrix:
    """Points of the unit cube: multiples of powers of a number, modulo 1.

    The number is the root of g^(d + 1) = g + 1, the golden ratio in one dimension.
    """
    root = 1.5
    for _ in range(100):
        root = (1.0 + root) ** (1.0 / (dimensions + 1.0))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    points: Matrix = (0.5 + np.arange(1.0, size + 1.0)[:, None] * steps) % 1.0
    return points
