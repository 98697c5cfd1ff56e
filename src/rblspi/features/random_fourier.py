"""Random Fourier features: smooth functions in dimensions that are too many for a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.special import ndtri

from rblspi.core.compiled import jit
from rblspi.core.types import Matrix, Vector
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
def _random_fourier(parameters: Vector, observation: Vector, out: Vector) -> None:
    """m^-1/2 cos(w_i . u) for all i, then m^-1/2 sin(w_i . u), then a constant 1.

    The products w_i . u are collected in the place of the cosines, one dimension after the other.
    On a circle the angle t stands for two dimensions, cos(t) / (2 pi) and sin(t) / (2 pi).

    ``parameters`` holds, for every dimension, whether it is a circle, low and 1 / (high - low);
    then the m components of the frequencies along each dimension, and along both of a circle.
    """
    m = len(out) // 2
    for i in range(m):
        out[i] = 0.0
    start = 3 * len(observation)
    for d in range(len(observation)):
        u = (observation[d] - parameters[3 * d + 1]) * parameters[3 * d + 2]
        if parameters[3 * d] > 0.0:
            turn = 2.0 * math.pi * u
            _add_multiple(out, m, math.cos(turn) / (2.0 * math.pi), parameters, start)
            start += m
            u = math.sin(turn) / (2.0 * math.pi)
        _add_multiple(out, m, u, parameters, start)
        start += m
    scale = 1.0 / math.sqrt(m)
    for i in range(m):
        phase = out[i]
        out[i] = scale * math.cos(phase)
        out[m + i] = scale * math.sin(phase)
    out[2 * m] = 1.0


@jit
def _add_multiple(out: Vector, m: int, factor: float, parameters: Vector, start: int) -> None:
    """Add a multiple of m parameters to the first m entries."""
    first = np.uint64(start)  # unsigned indices spare compiled code the check for negative ones
    for i in range(np.uint64(m)):
        out[i] += factor * parameters[first + i]


@dataclass(frozen=True)
class RandomFourier(Basis):
    """Cosines and sines of random frequencies, and a constant.

    For two observations, in units of the range,

        phi(s)'phi(t) = 1 + mean_i cos(w_i . (s - t))  ->  1 + exp(-|s - t|^2 / (2 width^2)),

    so that least squares in these features come close to those with Gaussians around every
    observation. Their number does not depend on the dimension. Beyond the bounds the functions go
    on in the same way; low and high only give the units.

    Parameters
    ----------
    features : int
        How many cosines and sines, an even number; there are half as many frequencies.
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
        Of the frequencies. The same seed gives the same ones with every version of NumPy.

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
        width = per_dimension("width", given, len(low))
        if not ((width > 0) & np.isfinite(width)).all():
            raise ValueError(f"width={self.width} must be positive")
        (size,) = counts_per_dimension("features", self.features, 1, least=2)
        if size % 2:
            raise ValueError(
                f"features={size} must be even: every frequency has a cosine and a sine"
            )
        size = self._require_feasible(size + 1)
        lines = np.column_stack([circular, low, 1.0 / (high - low)])
        along = np.repeat(width, np.where(circular, 2, 1))
        frequencies = _normal_draws(self.seed, (len(along), size // 2)) / along[:, None]
        parameters = np.concatenate([lines.ravel(), frequencies.ravel()])
        return Features(
            *(_random_fourier, parameters, size, observation_shape(space)),
            constant=constant_at(-1, size),
        )


def _normal_draws(seed: int, shape: tuple[int, int]) -> Matrix:
    """Standard normal numbers, from bits that NumPy promises never to change."""
    (checked,) = counts_per_dimension("seed", seed, 1, least=0)
    bits = np.random.PCG64(checked).random_raw(shape[0] * shape[1])
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    draws: Matrix = np.asarray(ndtri(uniform), dtype=np.float64).reshape(shape)
    return draws
