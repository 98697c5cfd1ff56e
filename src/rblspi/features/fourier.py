"""The Fourier cosine basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import Bound, bounds, counts_per_dimension
from rblspi.features.composition import composed
from rblspi.features.primitives import cosines, scale


@dataclass(frozen=True)
class Fourier(Basis):
    """Cosines of every combination of frequencies up to an order, including a constant.

    phi_c(s) = cos(pi c . u) for all vectors c of whole numbers from 0 to the order. u is the
    observation, with every dimension scaled and clipped to [0, 1].

    Parameters
    ----------
    order : int or sequence of int
        The highest frequency, at least 1: one number for all dimensions, or one for each.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.

    References
    ----------
    G. Konidaris, S. Osentoski and P. Thomas (2011). Value function approximation in
    reinforcement learning using the Fourier basis. AAAI.
    """

    order: int | Sequence[int] = 3
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high)
        order = counts_per_dimension("order", self.order, len(low))
        size = self._require_feasible(math.prod(n + 1 for n in order))
        stages = scale(low, 1.0 / (high - low), 0.0, 1.0), cosines(order)
        return composed(observation_shape(space), *stages, constant=constant_at(0, size))
