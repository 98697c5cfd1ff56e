"""Gaussian radial basis functions on a regular grid, plus a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Vector
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import (
    Angles,
    Bound,
    bounds,
    circles,
    counts_per_dimension,
    observation_shape,
    per_dimension,
)


@jit
def _rbf_grid(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_i(s) = exp(-1/2 sum_d ((s_d - c_id) / sigma_d)^2), then a constant 1.

    A Gaussian on a grid is a product of one-dimensional Gaussians. Along one dimension, let f be
    the distance from a centre and h the spacing, both in units of sigma. Then

        exp(-(f - (m + 1) h)^2 / 2) = exp(-(f - m h)^2 / 2) * exp(h f) * exp(-h^2 (m + 1/2)).

    The last factor does not depend on the observation, so one exponential for each dimension and
    one for the whole grid suffice. Starting from the nearest centre, no factor exceeds 1 and
    nothing overflows.

    The grid is built from the last dimension, which varies fastest, to the first. Each dimension
    writes copies of the block computed so far, multiplied by its own Gaussians; the block itself
    is overwritten last.

    ``parameters`` holds, for every dimension in reverse order: the number of centres, 1 / sigma,
    h, 1 / spacing, the centres, and exp(-h^2 (m + 1/2)) for m = 0, 1, ...
    """
    size = 1
    out[0] = 1.0
    distance = 0.0
    position = 0
    for d in range(len(observation) - 1, -1, -1):
        cells = int(parameters[position])
        centres = position + 4
        decays = centres + cells

        nearest = 0
        cell = (observation[d] - parameters[centres]) * parameters[position + 3] + 0.5
        if cell >= cells:
            nearest = cells - 1
        elif cell > 0.0:
            nearest = int(cell)

        f = (observation[d] - parameters[centres + nearest]) * parameters[position + 1]
        distance += f * f
        at_nearest = 1.0 if d > 0 else math.exp(-0.5 * distance)
        # Where the exponent is limited to 700, the Gaussians are below 1e-80 and may become 0.
        up = math.exp(min(max(parameters[position + 2] * f, -700.0), 700.0))
        down = 1.0 / up

        factor = at_nearest
        for j in range(nearest + 1, cells):
            factor *= up * parameters[decays + j - nearest - 1]
            _multiply_block(out, size, factor, j)
        factor = at_nearest
        for j in range(nearest, 0, -1):
            _multiply_block(out, size, factor, j)
            factor *= down * parameters[decays + nearest - j]
        _multiply_block(out, size, factor, 0)

        size *= cells
        position = decays + cells
    out[size] = 1.0


@jit
def _rbf_grid_with_angles(parameters: Vector, observation: Vector, out: Vector) -> None:
    """The same grid, where some dimensions are a circle.

    On a circle with the angle t and a centre c, the factor of a Gaussian is that of the distance
    between (cos t, sin t) and (cos c, sin c), which is

        exp(-|(cos t, sin t) - (cos c, sin c)|^2 / (2 sigma^2)) = exp((cos(t - c) - 1) / sigma^2).

    ``parameters`` holds, for every dimension in reverse order: the number of centres, the factor
    that makes angles of observations, or 0 on a line, 1 / sigma^2, and the centres.
    """
    size = 1
    out[0] = 1.0
    position = 0
    for d in range(len(observation) - 1, -1, -1):
        cells = int(parameters[position])
        turn, precision = parameters[position + 1], parameters[position + 2]
        for j in range(cells - 1, -1, -1):
            distance = observation[d] - parameters[position + 3 + j]
            exponent = -0.5 * distance * distance
            if turn > 0.0:
                exponent = math.cos(turn * distance) - 1.0
            _multiply_block(out, size, math.exp(precision * exponent), j)
        size *= cells
        position += 3 + cells
    out[size] = 1.0


@jit
def _multiply_block(out: Vector, size: int, factor: float, to: int) -> None:
    """Write the first ``size`` values times ``factor`` to block number ``to``."""
    # Unsigned indices spare compiled code the check for negative ones.
    start = np.uint64(to) * np.uint64(size)
    for i in range(np.uint64(size)):
        out[start + i] = factor * out[i]


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
        width = per_dimension("width", self.width, len(low))
        if not ((width > 0) & np.isfinite(width)).all():
            raise ValueError(f"width={self.width} must be positive")
        size = self._require_feasible(math.prod(cells) + 1)
        circular = circles(low, high, self.angles)
        parameters: list[float] = []
        for d in reversed(range(len(low))):
            centres, delta = self._centres(low[d], high[d], cells[d], bool(circular[d]))
            if circular.any():
                turn = 2.0 * math.pi / (high[d] - low[d]) if circular[d] else 0.0
                sigma = width[d] * delta * (turn or 1.0)
                parameters += [cells[d], turn, sigma**-2, *centres]
            else:
                spacing = 1.0 / width[d]
                decays = np.exp(-(spacing**2) * (np.arange(cells[d]) + 0.5))
                parameters += [cells[d], spacing / delta, spacing, 1.0 / delta, *centres, *decays]
        return Features(
            _rbf_grid_with_angles if circular.any() else _rbf_grid,
            *(np.array(parameters), size, observation_shape(space)),
            constant=constant_at(-1, size),
        )

    def _centres(self, low: float, high: float, count: int, circular: bool) -> tuple[Vector, float]:
        if self.centres == "edge" and not circular:
            return np.linspace(low, high, count), (high - low) / (count - 1)
        delta = (high - low) / count
        first = 0.0 if self.centres == "edge" else 0.5  # of a circle, low and high are one edge
        return low + (np.arange(count, dtype=np.float64) + first) * delta, delta
