"""Gaussian radial basis functions on a regular grid, plus a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.compiled import jit
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import Bound, bounds

Vector = NDArray[np.float64]


@jit
def _rbf_grid(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_i(s) = exp(-1/2 sum_d ((s_d - c_id) / sigma_d)^2), then a constant 1.

    A Gaussian on a grid is a product of one-dimensional Gaussians: the last dimension varies
    fastest, and the products are built up in place, from the end of the grid to its start.
    ``parameters`` holds, for every dimension, its number of centres, 1/sigma, and the centres.
    """
    size = 1
    out[0] = 1.0
    position = 0
    for d in range(len(observation)):
        cells = int(parameters[position])
        scale = parameters[position + 1]
        for i in range(size - 1, -1, -1):
            product = out[i]
            for j in range(cells):
                out[i * cells + j] = product
        for j in range(cells):
            z = (observation[d] - parameters[position + 2 + j]) * scale
            factor = math.exp(-0.5 * z * z)
            for i in range(size):
                out[i * cells + j] *= factor
        size *= cells
        position += 2 + cells
    out[size] = 1.0


@dataclass(frozen=True)
class RBFGrid(Basis):
    """Gaussians on a grid over the bounds of the observations, and a constant.

    Parameters
    ----------
    cells : int or sequence of int
        Gaussians along each dimension.
    centres : {"cell", "edge"}
        ``"cell"``: in the middle of equal cells, low + (i + 1/2) delta with
        delta = (high - low) / cells, as the paper's authors do. ``"edge"``: evenly spaced
        from bound to bound, the spacing being delta.
    width : float or sequence of float
        Standard deviation in units of delta, one for all dimensions or one for each.
    low, high : float or sequence of float, optional
        Bounds; those of the observation space unless given.
    """

    cells: int | Sequence[int] = 8
    centres: Literal["cell", "edge"] = "cell"
    width: float | Sequence[float] = 1.0
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a bounded space."""
        low, high = bounds(space, self.low, self.high)
        cells = per_dimension("cells", self.cells, len(low)).astype(int)
        width = per_dimension("width", self.width, len(low))
        if (cells < (2 if self.centres == "edge" else 1)).any():
            raise ValueError(f"cells={self.cells} is too few for {self.centres}-centred Gaussians")
        if not (width > 0).all():
            raise ValueError(f"width={self.width} must be positive")
        parameters: list[float] = []
        for d, count in enumerate(cells):
            centres, delta = self._centres(low[d], high[d], int(count))
            parameters += [count, 1.0 / (width[d] * delta), *centres]
        return Features(_rbf_grid, np.array(parameters), int(np.prod(cells)) + 1, len(low))

    def _centres(self, low: float, high: float, count: int) -> tuple[Vector, float]:
        if self.centres == "edge":
            return np.linspace(low, high, count), (high - low) / (count - 1)
        if self.centres == "cell":
            delta = (high - low) / count
            return low + (np.arange(count) + 0.5) * delta, delta
        raise ValueError(f"centres={self.centres!r} is neither 'cell' nor 'edge'")


def per_dimension(name: str, given: float | Sequence[float], size: int) -> Vector:
    """One value for each dimension, from one for all or one for each."""
    value = np.asarray(given, dtype=np.float64)
    if value.ndim > 0 and value.shape != (size,):
        raise ValueError(f"{name}={given} has {value.size} values for {size} dimensions")
    return np.broadcast_to(value, (size,))
