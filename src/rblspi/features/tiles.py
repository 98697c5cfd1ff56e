"""Tile coding: several overlapping grids over the observation space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Vector
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import Bound, bounds, counts_per_dimension, observation_shape


@jit
def _tile_coding(parameters: Vector, observation: Vector, out: Vector) -> None:
    """Each tiling has ``active`` for the tile of the observation, 0 elsewhere; then a constant 1.

    ``parameters`` holds the number of tilings and ``active``; for every dimension the number of
    tiles, low and 1 / width of a tile; for every tiling its displacement along every dimension.
    """
    dimensions = len(observation)
    tilings = int(parameters[0])
    tiling_size = (len(out) - 1) // tilings
    displacement = 2 + 3 * dimensions
    for i in range(len(out)):
        out[i] = 0.0
    for tiling in range(tilings):
        index = 0
        for d in range(dimensions):
            tiles = int(parameters[2 + 3 * d])
            place = (observation[d] - parameters[3 + 3 * d]) * parameters[4 + 3 * d]
            place += parameters[displacement + d]
            # An observation outside the bounds falls into the outermost tile.
            index *= tiles
            if place >= tiles:
                index += tiles - 1
            elif place > 0.0:
                index += int(place)
        out[tiling * tiling_size + index] = parameters[1]
        displacement += dimensions
    out[len(out) - 1] = 1.0


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
        tiles = counts_per_dimension("tiles", self.tiles, len(low))
        (tilings,) = counts_per_dimension("tilings", self.tilings, 1)
        size = self._require_feasible(tilings * math.prod(tiles) + 1)
        per_tile = (np.array(tiles) - 1.0 + 1.0 / tilings) / (high - low)
        # A displacement that shared a divisor with the number of tilings would repeat too soon.
        moves = islice((n for n in count(1, 2) if math.gcd(n, tilings) == 1), len(low))
        displacements = np.outer(np.arange(tilings), list(moves)) % tilings / tilings
        parameters = np.concatenate(
            [
                [tilings, 1.0 / math.sqrt(tilings)],
                np.column_stack([tiles, low, per_tile]).ravel(),
                displacements.ravel(),
            ]
        )
        return Features(
            *(_tile_coding, parameters, size, observation_shape(space)),
            constant=constant_at(-1, size),
        )
