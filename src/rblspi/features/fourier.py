"""The Fourier cosine basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.compiled import jit
from rblspi.features.base import Basis, Features, Vector
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape


@jit
def _fourier(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_c(s) = cos(pi c . u) with u_d = (s_d - low_d) / (high_d - low_d) clipped to [0, 1].

    The angles add up over the dimensions, so the block of cosines made so far is turned by
    each multiple of the next dimension's angle; the last dimension varies fastest. Turning
    needs the sines as well: they sit at ``sines``, where the last turn overwrites them.

    ``parameters`` holds for every dimension its order, low and 1 / (high - low).
    """
    sines = len(out) // (int(parameters[0]) + 1)
    out[0] = 1.0
    out[sines] = 0.0
    size = 1
    for d in range(len(observation) - 1, -1, -1):
        order = int(parameters[3 * d])
        u = (observation[d] - parameters[3 * d + 1]) * parameters[3 * d + 2]
        if u < 0.0:
            u = 0.0
        elif u > 1.0:
            u = 1.0
        cosine, sine = math.cos(math.pi * u), math.sin(math.pi * u)
        more = d > 0
        c, s = cosine, sine
        for j in range(2, order + 1):
            c, s = c * cosine - s * sine, s * cosine + c * sine
            _turn_block(out, size, sines, j, c, s, more)
        # In the last turn the sines are in the very place of block 1: it goes last.
        _turn_block(out, size, sines, 1, cosine, sine, more)
        size *= order + 1


@jit
def _turn_block(
    out: Vector, size: int, sines: int, to: int, cosine: float, sine: float, more: bool
) -> None:
    """Write the first block, turned by an angle, over block ``to``; its sines if ``more``."""
    # An unsigned index spares compiled code the test for a negative one.
    start = np.uint64(to) * np.uint64(size)
    offset = np.uint64(sines)
    for i in range(np.uint64(size)):
        c, s = out[i], out[offset + i]
        out[start + i] = c * cosine - s * sine
        if more:
            out[offset + start + i] = s * cosine + c * sine


@dataclass(frozen=True)
class Fourier(Basis):
    """Cosines of every combination of frequencies up to an order, the constant among them.

    phi_c(s) = cos(pi c . u), for all vectors c of whole numbers from 0 to the order, where u
    is the observation scaled to [0, 1] in every dimension, and clipped to it.

    Parameters
    ----------
    order : int or sequence of int
        The largest frequency, 1 or more, one for all dimensions or one for each.
    low, high : float or sequence of float, optional
        Bounds; those of the observation space unless given.

    References
    ----------
    G. Konidaris, S. Osentoski and P. Thomas (2011). Value function approximation in
    reinforcement learning using the Fourier basis. AAAI.
    """

    order: int | Sequence[int] = 3
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a bounded space."""
        low, high = bounds(space, self.low, self.high)
        order = counts_per_dimension("order", self.order, len(low))
        size = self._require_feasible(math.prod(n + 1 for n in order))
        parameters = np.column_stack([order, low, 1.0 / (high - low)]).ravel()
        return Features(_fourier, parameters, size, observation_shape(space))
