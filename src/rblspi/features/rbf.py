"""Gaussian radial basis functions on a regular grid, plus a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from rblspi.core.types import Vector
from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import (
    Angles,
    Bound,
    bounds,
    circles,
    counts_per_dimension,
    widths_per_dimension,
)
from rblspi.features.composition import composed
from rblspi.features.primitives import Bumps, bumps, gaussians, products


@dataclass(frozen=True)
class RBFGrid(Basis):
    """Gaussians on a regular grid over the range of the observations, and a constant.

    Parameters
    ----------
    cells : int or sequence of int
        The number of Gaussians along each dimension.
    centres : {"cell", "edge"}
        ``"cell"``: in the middle of equal cells, at low + (i + 1/2) delta with
        delta = (high - low) / cells, as in the paper. ``"edge"``: evenly spaced from low to
        high, with spacing delta.
    width : float or sequence of float
        Standard deviation in units of delta: one number for all dimensions, or one for each.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.
    angles : sequence of int, optional
        Dimensions that are a circle, of the length high - low, or 2 pi where there are no bounds.
        By default those with the bounds -pi and pi.
    """

    cells: int | Sequence[int] = 8
    centres: Literal["cell", "edge"] = "cell"
    width: float | Sequence[float] = 1.0
    low: Bound = None
    high: Bound = None
    angles: Angles = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        if self.centres not in ("cell", "edge"):
            raise ValueError(f"centres={self.centres!r} is neither 'cell' nor 'edge'")
        low, high = bounds(space, self.low, self.high, self.angles)
        least = 2 if self.centres == "edge" else 1
        cells = counts_per_dimension("cells", self.cells, len(low), least)
        width = widths_per_dimension(self.width, len(low))
        self._require_feasible(math.prod(cells) + 1)
        circular = circles(low, high, self.angles)
        lines = [
            self._centres(low[d], high[d], cells[d], bool(circular[d])) for d in range(len(low))
        ]
        centres, spacing = [line for line, _ in lines], np.array([delta for _, delta in lines])
        shape = observation_shape(space)
        if not circular.any():
            return composed(shape, gaussians(centres, spacing, width), one=True)
        turns = np.where(circular, 2.0 * math.pi / (high - low), 0.0)
        sigma = width * spacing * np.where(circular, turns, 1.0)
        axes = [Bumps(*axis) for axis in zip(centres, sigma**-2, turns, strict=True)]
        return composed(shape, bumps(axes), products(cells), one=True)

    def _centres(self, low: float, high: float, count: int, circular: bool) -> tuple[Vector, float]:
        if self.centres == "edge" and not circular:
            return np.linspace(low, high, count), (high - low) / (count - 1)
        delta = (high - low) / count
        first = 0.0 if self.centres == "edge" else 0.5  # of a circle, low and high are one edge
        return low + (np.arange(count, dtype=np.float64) + first) * delta, delta
