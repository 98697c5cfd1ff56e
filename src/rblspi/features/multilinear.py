"""Linear interpolation between the vertices of a regular grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.features.angles import (
    LINE,
    PAIR,
    AnglesAndPairs,
    components,
    coordinates,
    first_components,
    kinds_of_coordinates,
)
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape

#: in all, where their number is not given: a plan on them takes a tenth of a second
VERTICES = 10_000
#: numbers in the parameters for every coordinate: vertices, low, 1 / spacing, and its kind
NUMBERS = 4


@jit
def _multilinear(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_g(s) = prod_d max(0, 1 - |v_d - g_d|), where v is s in units of the spacing, clipped.

    ``parameters`` holds, for every coordinate: the number of vertices, low, 1 / spacing, its kind.
    """
    for i in range(len(out)):
        out[i] = 0.0
    corners = 2 ** len(observation)
    places, shares = np.empty(corners, np.int64), np.empty(corners)
    interpolate(parameters, observation, places, shares)
    for i in range(corners):
        out[places[i]] += shares[i]


@jit
def _multilinear_with_angles(parameters: Vector, observation: Vector, out: Vector) -> None:
    """The same of the coordinates of s; |v_d - g_d| is the shorter way around a circle."""
    point = np.empty(len(parameters) // NUMBERS)
    coordinates(parameters[NUMBERS - 1 :: NUMBERS], observation, point)
    _multilinear(parameters, point, out)


@jit_borrowing
def interpolate(parameters: Vector, point: Vector, places: Integers, shares: Vector) -> None:
    """The vertices around a point, which may have shares of 0, and what share each has in it.

    Both are written for the 2^d corners of the cell. ``parameters`` are those of the features.
    """
    count = 1
    places[0], shares[0] = 0, 1.0
    for d in range(len(point)):
        vertices = int(parameters[NUMBERS * d])
        along = (point[d] - parameters[NUMBERS * d + 1]) * parameters[NUMBERS * d + 2]
        cell, share = 0, 0.0  # also of what is not a number
        if parameters[NUMBERS * d + 3] != LINE:
            along %= vertices
            if along < vertices:  # it is equal for -1e-20
                cell = int(along)
                share = along - cell
        elif along >= vertices - 1.0:
            cell, share = vertices - 2, 1.0
        elif along > 0.0:
            cell = int(along)
            share = along - cell
        following = cell + 1 if cell + 1 < vertices else 0
        for i in range(count):
            places[count + i] = places[i] * vertices + following
            shares[count + i] = shares[i] * share
            places[i] = places[i] * vertices + cell
            shares[i] *= 1.0 - share
        count *= 2


class Grid(NamedTuple):
    """The lines of a grid: a number for every coordinate in each field."""

    vertices: Vector
    low: Vector
    slope: Vector  # 1 / spacing
    kinds: Vector  # as in `angles`

    @classmethod
    def of(cls, features: Features) -> Self:
        """The grid of features that `Multilinear` made."""
        return cls(*features.parameters.reshape(-1, NUMBERS).T)

    @property
    def parameters(self) -> Vector:
        """The grid as compiled code has it."""
        return np.column_stack(self).ravel()

    @property
    def turning(self) -> Mask:
        """Which coordinates go around a circle."""
        turning: Mask = self.kinds != LINE
        return turning

    @property
    def cells(self) -> Vector:
        """Their number along every coordinate: around a circle, one for every vertex."""
        return np.where(self.turning, self.vertices, self.vertices - 1.0)

    def points(self) -> Matrix:
        """All vertices, in the order of the features, shape (n, d)."""
        lines = zip(self.vertices, self.low, self.slope, strict=True)
        axes = [low + np.arange(count) / slope for count, low, slope in lines]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def scaled(self, points: Matrix) -> Matrix:
        """Coordinates in units of the range, from low on; those on a circle are below 1."""
        found = (points - self.low) * (self.slope / self.cells)
        found[:, self.turning] %= 1.0
        found[:, self.turning] %= 1.0  # of -1e-20 it was 1
        return found


@dataclass(frozen=True)
class Multilinear(Basis):
    """Linear interpolation between the vertices of a regular grid: a feature for every vertex.

    The features of an observation are the shares that the corners of its cell have in it. They are
    not negative and sum to 1, and the weights are values at the vertices. Observations outside the
    bounds are treated as if they lay on them. The grid goes around the circle of an angle; where
    two components are its cosine and sine, it has one dimension for both.

    Parameters
    ----------
    vertices : int or sequence of int or None
        Their number along each dimension of the grid, at least 2. On a line the first lies at low
        and the last at high; on a circle low and high are the same vertex. None: the same number
        along each, about 10,000 in all.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.
    angles : sequence of int and of pairs of int, optional
        Components that are a circle, of the length high - low, or 2 pi where there are no bounds;
        and pairs of neighbours that are the cosine and the sine of an angle: ``((0, 1), 4)``. By
        default those with the bounds -pi and pi, and in an agent all pairs that lie on the unit
        circle in the first thousand observations.
    """

    vertices: int | Sequence[int] | None = 10
    low: Bound = None
    high: Bound = None
    angles: AnglesAndPairs = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high, components(self.angles))
        kinds = kinds_of_coordinates(low, high, self.angles)
        firsts = first_components(kinds)
        low = np.where(kinds == PAIR, -np.pi, low[firsts])
        high = np.where(kinds == PAIR, np.pi, high[firsts])
        usual = max(2, round(VERTICES ** (1.0 / len(low))))
        given = usual if self.vertices is None else self.vertices
        vertices = counts_per_dimension("vertices", given, len(low), least=2)
        size = self._require_feasible(math.prod(vertices))
        grid = Grid(np.array(vertices, np.float64), low, np.ones_like(low), kinds)
        grid = grid._replace(slope=grid.cells / (high - low))
        function = _multilinear_with_angles if grid.turning.any() else _multilinear
        return Features(
            *(function, grid.parameters, size, observation_shape(space)), constant=np.ones(size)
        )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The basis of some settings; those of before there were angles have none."""
        return cls(**{"angles": (), **settings})
