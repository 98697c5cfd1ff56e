"""Linear interpolation between the vertices of a regular grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import (
    AnglesAndPairs,
    Bound,
    bounds,
    components,
    coordinates_of,
    counts_per_dimension,
    kinds_of_coordinates,
)
from rblspi.features.composition import composed
from rblspi.features.primitives import (
    AFFINE,
    LINE,
    NUMBERS,
    PAIR,
    affine,
    first_components,
    interpolation,
    turns,
)

#: default number of vertices in all: planning on them takes a tenth of a second
VERTICES = 10_000


class Grid(NamedTuple):
    """The lines of a grid; the first four fields have a number for each coordinate."""

    vertices: Vector
    low: Vector
    slope: Vector  # 1 / spacing
    kinds: Vector  # as in `angles`
    kept: Integers | None = None  # components that the coordinates are made of; None: all

    @classmethod
    def of(cls, features: Features) -> Self:
        """The grid of features that `Multilinear` made."""
        first, lines = features.stages[0], features.stages[-1].parameters.reshape(-1, NUMBERS)
        vertices, low, slope, kinds = lines.T
        if first.code != AFFINE:
            return cls(vertices, low, slope, kinds)
        choice = first.parameters[first.size :].reshape(-1, first.size)
        return cls(vertices, low, slope, kinds, choice.argmax(axis=0))

    @property
    def parameters(self) -> Vector:
        """The grid as parameters for compiled code."""
        lines = self.vertices, self.low, self.slope, self.kinds
        return np.column_stack(lines).ravel()

    @property
    def turning(self) -> Mask:
        """The coordinates that go around a circle."""
        turning: Mask = self.kinds != LINE
        return turning

    @property
    def cells(self) -> Vector:
        """The number of cells along every coordinate; around a circle, one for every vertex."""
        return np.where(self.turning, self.vertices, self.vertices - 1.0)

    def points(self) -> Matrix:
        """All vertices, in the order of the features, shape (n, d)."""
        lines = zip(self.vertices, self.low, self.slope, strict=True)
        axes = [low + np.arange(count) / slope for count, low, slope in lines]
        return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)

    def coordinates(self, observations: NDArray[Any]) -> Matrix:
        """The coordinates of observations, shape (N, d)."""
        rows = observations.reshape(len(observations), -1)
        return coordinates_of(rows if self.kept is None else rows[:, self.kept], self.kinds)

    def places(self, observations: NDArray[Any]) -> Matrix:
        """Where observations are, in units of the range, shape (N, d)."""
        return self.scaled(self.coordinates(observations))

    def scaled(self, points: Matrix) -> Matrix:
        """Coordinates in units of the range, from low on; those on a circle are below 1."""
        found = (points - self.low) * (self.slope / self.cells)
        found[:, self.turning] %= 1.0
        found[:, self.turning] %= 1.0  # the first remainder of -1e-20 is 1
        return found


@dataclass(frozen=True)
class Multilinear(Basis):
    """Linear interpolation between the vertices of a regular grid: a feature for every vertex.

    The features of an observation are the interpolation weights of the corners of its cell. They
    are not negative and sum to 1, so the learnt weights are values at the vertices. Observations
    outside the bounds are treated as if they lay on them. The grid goes around the circle of an
    angle; where two components are its cosine and sine, it has one dimension for both.

    Parameters
    ----------
    vertices : int or sequence of int or None
        Number of vertices along each dimension of the grid, at least 2. On a line the first lies at
        low and the last at high; on a circle low and high are the same vertex. None: the same
        number along each, about 10,000 in all.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.
    angles : sequence of int and of pairs of int, optional
        Components that are a circle, of the length high - low, or 2 pi where there are no bounds;
        and pairs of neighbours that are the cosine and the sine of an angle: ``((0, 1), 4)``. By
        default those with the bounds -pi and pi, and in an agent all pairs that lie on the unit
        circle in the first thousand observations.
    left_out : sequence of int or None
        Components that the grid does not span. In an agent, None leaves out those that never
        change, or are linear functions of others, in the first thousand observations.
    """

    vertices: int | Sequence[int] | None = 10
    low: Bound = None
    high: Bound = None
    angles: AnglesAndPairs = None
    left_out: Sequence[int] | None = ()

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high, components(self.angles))
        kept = self.kept(len(low))
        choice = [affine(np.eye(len(low))[:, kept])] if self.left_out else []
        low, high = low[kept], high[kept]
        kinds = kinds_of_coordinates(low, high, _renumbered(self.angles, kept.tolist()))
        firsts = first_components(kinds)
        low = np.where(kinds == PAIR, -np.pi, low[firsts])
        high = np.where(kinds == PAIR, np.pi, high[firsts])
        usual = max(2, round(VERTICES ** (1.0 / len(low))))
        given = usual if self.vertices is None else self.vertices
        vertices = counts_per_dimension("vertices", given, len(low), least=2)
        size = self._require_feasible(math.prod(vertices))
        grid = Grid(np.array(vertices, np.float64), low, np.ones_like(low), kinds)
        grid = grid._replace(slope=grid.cells / (high - low))
        angles = [turns(np.where(kinds == PAIR, PAIR, LINE))] if PAIR in kinds else []
        stages = *choice, *angles, interpolation(grid.parameters)
        return composed(observation_shape(space), *stages, constant=np.ones(size))

    def kept(self, components: int) -> Integers:
        """The components that the grid spans, of so many."""
        left_out = np.asarray(self.left_out or (), np.float64)
        if not np.isin(left_out, np.arange(components)).all() or len(left_out) >= components:
            raise ValueError(
                f"left_out={self.left_out} must be some, but not all, of the numbers of components "
                f"from 0 to {components - 1}"
            )
        return np.setdiff1d(np.arange(components), left_out)


def _renumbered(angles: AnglesAndPairs, kept: list[int]) -> AnglesAndPairs:
    """The angles among the components that are kept, by their places there."""
    if angles is None:
        return None
    given = angles if isinstance(angles, Sequence) else (angles,)
    pairs = [angle if isinstance(angle, Sequence) else (angle,) for angle in given]
    places = [tuple(kept.index(c) for c in pair) for pair in pairs if set(pair) <= set(kept)]
    return tuple(place if len(place) > 1 else place[0] for place in places)
