"""Linear interpolation between the vertices of a regular grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Integers, Vector
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape


@jit
def _multilinear(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_g(s) = prod_d max(0, 1 - |v_d - g_d|), where v is s in units of the spacing, clipped.

    ``parameters`` holds, for every dimension: the number of vertices, low, and 1 / spacing.
    """
    for i in range(len(out)):
        out[i] = 0.0
    corners = 2 ** len(observation)
    places, shares = np.empty(corners, np.int64), np.empty(corners)
    interpolate(parameters, observation, places, shares)
    for i in range(corners):
        out[places[i]] += shares[i]


@jit_borrowing
def interpolate(parameters: Vector, point: Vector, places: Integers, shares: Vector) -> None:
    """The vertices around a point, which may have shares of 0, and what share each has in it.

    Both are written for the 2^d corners of the cell. ``parameters`` are those of the features.
    """
    count = 1
    places[0], shares[0] = 0, 1.0
    for d in range(len(point)):
        vertices = int(parameters[3 * d])
        along = (point[d] - parameters[3 * d + 1]) * parameters[3 * d + 2]
        cell, share = 0, 0.0  # also of what is not a number
        if along >= vertices - 1.0:
            cell, share = vertices - 2, 1.0
        elif along > 0.0:
            cell = int(along)
            share = along - cell
        for i in range(count):
            places[count + i] = places[i] * vertices + cell + 1
            shares[count + i] = shares[i] * share
            places[i] = places[i] * vertices + cell
            shares[i] *= 1.0 - share
        count *= 2


@dataclass(frozen=True)
class Multilinear(Basis):
    """Linear interpolation between the vertices of a regular grid: a feature for every vertex.

    The features of an observation are the shares that the corners of its cell have in it. They are
    not negative and sum to 1, and the weights are values at the vertices. Observations outside the
    bounds are treated as if they lay on them.

    Parameters
    ----------
    vertices : int or sequence of int
        Their number along each dimension, at least 2. The first lies at low, the last at high.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.
    """

    vertices: int | Sequence[int] = 10
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high)
        vertices = counts_per_dimension("vertices", self.vertices, len(low), least=2)
        size = self._require_feasible(math.prod(vertices))
        slope = (np.array(vertices) - 1.0) / (high - low)
        parameters = np.column_stack([vertices, low, slope]).ravel()
        return Features(
            *(_multilinear, parameters, size, observation_shape(space)), constant=np.ones(size)
        )
