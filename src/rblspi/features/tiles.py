"""Tile coding: several overlapping grids over the observation space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import Bound, bounds, counts_per_dimension
from rblspi.features.composition import composed
from rblspi.features.primitives import cells, scale


@dataclass(frozen=True)
class TileCoding(Basis):
    """Several displaced grids of tiles, each with one active tile, and a constant.

    Along a dimension, a tile has the width (high - low) / (tiles - 1 + 1 / tilings), so that every
    displaced grid covers the range with the same number of tiles. From one tiling to the next,
    the grid moves by 1, 3, 5, ... times (tile width / tilings) in dimension 1, 2, 3, ...; unequal
    displacements spread the tilings evenly. The active features equal 1 / sqrt(tilings), so that
    their vector has length 1. Observations outside the bounds are treated as if they lay on them.

    Parameters
    ----------
    tiles : int or sequence of int
        The number of tiles along each dimension, in each tiling.
    tilings : int
        The number of grids. A power of two that is at least four times the number of dimensions
        spreads them best.
    low, high : float or sequence of float, optional
        Bounds; by default those of the observation space.

    References
    ----------
    R. S. Sutton and A. G. Barto (2018). Reinforcement learning: an introduction, section 9.5.4.
    """

    tiles: int | Sequence[int] = 8
    tilings: int = 8
    low: Bound = None
    high: Bound = None

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a bounded space."""
        low, high = bounds(space, self.low, self.high)
        counts = counts_per_dimension("tiles", self.tiles, len(low))
        (tilings,) = counts_per_dimension("tilings", self.tilings, 1)
        self._require_feasible(tilings * math.prod(counts) + 1)
        per_tile = (np.array(counts) - 1.0 + 1.0 / tilings) / (high - low)
        # A displacement that shared a divisor with the number of tilings would repeat too soon.
        moves = islice((n for n in count(1, 2) if math.gcd(n, tilings) == 1), len(low))
        displacements = np.outer(np.arange(tilings), list(moves)) % tilings / tilings
        grids, first = np.tile(counts, (tilings, 1)), np.zeros(tilings, np.int64)
        active = 1.0 / math.sqrt(tilings)
        found = cells(grids, displacements, first, active=active, clipped=True)
        return composed(observation_shape(space), scale(low, per_tile), found, one=True)
