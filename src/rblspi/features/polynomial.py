"""Monomials of the observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import Bound, bounds, counts_per_dimension
from rblspi.features.composition import composed
from rblspi.features.primitives import monomials, scale


@dataclass(frozen=True)
class Polynomial(Basis):
    """Products of powers of the observation's dimensions, up to a total degree.

    The variables are u_d = scale (s_d - low_d) / (high_d - low_d). With one dimension the
    features are 1, u, u^2, ...; with several they are ordered by degree: 1, u_1, u_2, u_1^2,
    u_1 u_2, u_2^2, ... Observations outside the bounds are not clipped.

    Parameters
    ----------
    degree : int
        The highest total degree, at least 1.
    scale : float
        The value of u_d at the upper bound.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.

    Examples
    --------
    Lagoudakis and Parr (2003) use powers of 10 (s + 1) / 20 for the states s = 0, ..., 19 of the
    chain walk: ``Polynomial(4, scale=10, low=-1, high=19)``.
    """

    degree: int = 4
    scale: float = 1.0
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high)
        (degree,) = counts_per_dimension("degree", self.degree, 1)
        if not (math.isfinite(self.scale) and self.scale != 0):
            raise ValueError(f"scale={self.scale} must be finite and not 0")
        size = self._require_feasible(math.comb(len(low) + degree, degree))
        slope = self.scale / (high - low)
        # A monomial is written as the sorted tuple of the dimensions whose product it is.
        every = [
            monomial
            for total in range(degree + 1)
            for monomial in combinations_with_replacement(range(len(low)), total)
        ]
        place = {monomial: i for i, monomial in enumerate(every)}
        pairs = [(place[monomial[:-1]], place[monomial[-1:]]) for monomial in every[1 + len(low) :]]
        stages = scale(low, slope), monomials(len(low), np.array(pairs, int).reshape(-1, 2))
        return composed(observation_shape(space), *stages, constant=constant_at(0, size))
