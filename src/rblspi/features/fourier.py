"""The Fourier cosine basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Vector
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape


@jit
def _fourier(parameters: Vector, observation: Vector, out: Vector) -> None:
    """phi_c(s) = cos(pi c . u) with u_d = (s_d - low_d) / (high_d - low_d) clipped to [0, 1].

    The angles of the dimensions add up. So for each further dimension, the block of cosines
    computed so far is rotated by every multiple of that dimension's angle; the last dimension
    varies fastest. A rotation also needs the sines. They are kept in ``out`` from index ``sines``
    on, where the last rotation overwrites them.

    ``parameters`` holds, for every dimension, its order, low and 1 / (high - low).
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
            _rotate_block(out, size, sines, j, c, s, more)
        # Block 1 goes last because in the last rotation it overwrites the sines.
        _rotate_block(out, size, sines, 1, cosine, sine, more)
        size *= order + 1


@jit
def _rotate_block(
    out: Vector, size: int, sines: int, to: int, cosine: float, sine: float, more: bool
) -> None:
    """Write the first block, rotated by an angle, to block ``to``; also its sines if ``more``."""
    # Unsigned indices spare compiled code the check for negative ones.
    start = np.uint64(to) * np.uint64(size)
    offset = np.uint64(sines)
    for i in range(np.uint64(size)):
        c, s = out[i], out[offset + i]
        out[start + i] = c * cosine - s * sine
        if more:
            out[offset + start + i] = s * cosine + c * sine


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
        parameters = np.column_stack([order, low, 1.0 / (high - low)]).ravel()
        return Features(
            *(_fourier, parameters, size, observation_shape(space)),
            constant=constant_at(0, size),
        )
