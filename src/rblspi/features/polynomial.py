"""Monomials of the observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.compiled import jit
from rblspi.features.base import Basis, Features, Vector
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape


@jit
def _polynomial(parameters: Vector, observation: Vector, out: Vector) -> None:
    """1, then u_d = (s_d - low_d) * slope_d, then each monomial: a smaller one times some u_d.

    ``parameters`` holds low and slope for every dimension, then for every monomial of degree
    two or more the two places in ``out`` whose product it is.
    """
    dimensions = len(observation)
    out[0] = 1.0
    for d in range(dimensions):
        out[1 + d] = (observation[d] - parameters[2 * d]) * parameters[2 * d + 1]
    position = 2 * dimensions
    for i in range(1 + dimensions, len(out)):
        out[i] = out[int(parameters[position])] * out[int(parameters[position + 1])]
        position += 2


@dataclass(frozen=True)
class Polynomial(Basis):
    """Products of powers of the observation's dimensions, up to a total degree.

    The dimensions enter as u_d = scale (s_d - low_d) / (high_d - low_d); with one dimension
    the features are 1, u, u^2, ..., with more they are ordered by degree: 1, u_1, u_2, u_1^2,
    u_1 u_2, u_2^2, ... Observations outside the bounds are not clipped.

    Parameters
    ----------
    degree : int
        The largest total degree, 1 or more.
    scale : float
        What u_d is at the upper bound.
    low, high : float or sequence of float, optional
        Bounds; those of the observation space unless given.

    Examples
    --------
    The chain walk's basis in Lagoudakis and Parr (2003), powers of 10 (s + 1) / 20 for the
    states s = 0, ..., 19, is ``Polynomial(4, scale=10, low=-1, high=19)``.
    """

    degree: int = 4
    scale: float = 1.0
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a bounded space."""
        low, high = bounds(space, self.low, self.high)
        (degree,) = counts_per_dimension("degree", self.degree, 1)
        if not (math.isfinite(self.scale) and self.scale != 0):
            raise ValueError(f"scale={self.scale} must be finite and not 0")
        size = self._require_feasible(math.comb(len(low) + degree, degree))
        slope = self.scale / (high - low)
        # A monomial is the sorted tuple of the dimensions it multiplies.
        monomials = [
            monomial
            for total in range(degree + 1)
            for monomial in combinations_with_replacement(range(len(low)), total)
        ]
        place = {monomial: i for i, monomial in enumerate(monomials)}
        products = [
            place[factor]
            for monomial in monomials[1 + len(low) :]
            for factor in (monomial[:-1], monomial[-1:])
        ]
        parameters = np.concatenate([np.column_stack([low, slope]).ravel(), products])
        return Features(_polynomial, parameters, size, observation_shape(space))
