"""Random Fourier features: smooth functions of observations with too many dimensions for a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.special import ndtri

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
from rblspi.features.primitives import CIRCLE, LINE, affine, scale, turns, waves


@dataclass(frozen=True)
class RandomFourier(Basis):
    """Cosines and sines of random frequencies, and a constant.

    For two observations, in units of the range,

        phi(s)'phi(t) = 1 + mean_i cos(w_i . (s - t))  ->  1 + exp(-|s - t|^2 / (2 width^2)),

    so that least squares in these features come close to those with Gaussians around every
    observation. Their number does not depend on the dimension. The functions continue in the same
    way beyond the bounds; low and high only set the units.

    Parameters
    ----------
    features : int
        The number of cosines and sines together, which is even: each frequency has one of both.
    width : float or sequence of float, optional
        Standard deviation of the Gaussian in units of high - low: one number for all dimensions, or
        one for each. By default (d / 6)^1/2 in d dimensions, which is the root mean square of the
        distance between two points in the unit cube.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.
    angles : sequence of int, optional
        Dimensions that are a circle, of the length high - low, or 2 pi where there are no bounds.
        By default those with the bounds -pi and pi.
    seed : int
        Seed of the frequencies. The same seed gives the same ones with every version of NumPy.

    References
    ----------
    A. Rahimi and B. Recht (2007). Random features for large-scale kernel machines. NIPS.
    """

    features: int = 256
    width: float | Sequence[float] | None = None
    low: Bound = None
    high: Bound = None
    angles: Angles = None
    seed: int = 0

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high, self.angles)
        circular = circles(low, high, self.angles)
        given = math.sqrt(len(low) / 6.0) if self.width is None else self.width
        width = widths_per_dimension(given, len(low))
        (size,) = counts_per_dimension("features", self.features, 1, least=2)
        if size % 2:
            raise ValueError(
                f"features={size} must be even: every frequency has a cosine and a sine"
            )
        self._require_feasible(size + 1)
        along = np.repeat(width, np.where(circular, 2, 1))
        frequencies = normal_draws(self.seed, (len(along), size // 2)) / along[:, None]
        units = scale(low, 1.0 / (high - low)), turns(np.where(circular, CIRCLE, LINE))
        phases = affine(frequencies), waves(size // 2)
        return composed(observation_shape(space), *units, *phases, one=True)


def normal_draws(seed: int, shape: tuple[int, int]) -> Matrix:
    """Standard normal numbers, from bits that NumPy promises never to change."""
    (checked,) = counts_per_dimension("seed", seed, 1, least=0)
    bits = np.random.PCG64(checked).random_raw(shape[0] * shape[1])
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    draws: Matrix = np.asarray(ndtri(uniform), dtype=np.float64).reshape(shape)
    return draws
