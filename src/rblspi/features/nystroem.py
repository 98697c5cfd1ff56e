"""Nyström features: the Gaussian kernel, as far as a few points span it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.spatial.distance import cdist

from rblspi.core.lattice import lattice
from rblspi.core.types import Matrix
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
from rblspi.features.primitives import CIRCLE, LINE, Stage, affine, gaussians_at, scale, turns


@dataclass(frozen=True)
class Nystroem(Basis):
    """Orthonormal combinations of Gaussians around some points, and a constant.

    With the kernel k(s, t) = exp(-|s - t|^2 / (2 width^2)), in units of the range, and the vector
    k(s) of its values at the points, whose matrix is K,

        phi(s)'phi(t) = 1 + k(s)'K^-1 k(t)

    which is 1 + k(s, t) where s or t is one of the points. Weights with a standard normal prior
    thus are a Gaussian process.

    Parameters
    ----------
    points : int or sequence of sequences of float
        The points, flattened; or how many, evenly spread over the range.
    width : float or sequence of float, optional
        As for `RandomFourier`.
    low, high, angles
        As for `RandomFourier`.

    References
    ----------
    C. Williams and M. Seeger (2001). Using the Nyström method to speed up kernel machines. NIPS.
    """

    points: int | Sequence[Sequence[float]] = 50
    width: float | Sequence[float] | None = None
    low: Bound = None
    high: Bound = None
    angles: Angles = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high, self.angles)
        shape, units = observation_shape(space), self._units(low, high)
        if isinstance(self.points, int):
            (count,) = counts_per_dimension("points", self.points, 1)
            points = low + (high - low) * lattice(count, len(low))
        else:
            points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(low) or not np.isfinite(points).all():
            raise ValueError(
                f"points of shape {points.shape} must be finite, with a row of {len(low)} numbers "
                "for every point"
            )
        self._require_feasible(len(points) + 1)
        centres = composed(shape, *units)(points)
        values, vectors = np.linalg.eigh(kernel(centres, centres))
        known = values > len(values) * np.finfo(np.float64).eps * values[-1]
        root = vectors[:, known] / np.sqrt(values[known])
        return composed(shape, *units, gaussians_at(centres), affine(root), one=True)

    def scaled(self, space: gym.Space[Any], observations: Matrix) -> Matrix:
        """Observations in coordinates in which the kernel has the width 1."""
        units = self._units(*bounds(space, self.low, self.high, self.angles))
        return composed(observation_shape(space), *units)(observations)

    def _units(self, low: Matrix, high: Matrix) -> tuple[Stage, Stage, Stage]:
        circular = circles(low, high, self.angles)
        given = math.sqrt(len(low) / 6.0) if self.width is None else self.width
        width = widths_per_dimension(given, len(low))
        along = np.repeat(width, np.where(circular, 2, 1))
        kinds = turns(np.where(circular, CIRCLE, LINE))
        return scale(low, 1.0 / (high - low)), kinds, scale(np.zeros(len(along)), 1.0 / along)


def kernel(s: Matrix, t: Matrix) -> Matrix:
    """The kernel exp(-|s - t|^2 / 2) of all pairs of rows."""
    values: Matrix = np.exp(-0.5 * cdist(s, t, "sqeuclidean"))
    return values
