"""One feature for each discrete observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.environments.spaces import finite_values, observation_shape, states_of
from rblspi.features.base import Basis, Features
from rblspi.features.composition import composed
from rblspi.features.primitives import cells, scale


@dataclass(frozen=True)
class OneHot(Basis):
    """An indicator of each value of a discrete observation.

    In a Discrete space this makes the value function a table, without approximation error. Where
    an observation has several discrete components, every component has its own indicators; with
    ``joint``, every combination of values has one, which makes a table of them. There is no
    separate constant because the indicators of a component add up to 1. For a value outside the
    space all indicators are 0.

    Parameters
    ----------
    joint : bool
        Whether every combination of the values of all components has an indicator.
    whole : bool
        Whether the numbers of a bounded Box of floats are whole ones.
    """

    joint: bool = False
    whole: bool = False

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a space of finitely many observations."""
        found = finite_values(space, self.whole)
        if found is None:
            raise TypeError(
                f"OneHot needs a Discrete or MultiDiscrete observation space, not {space}: "
                "choose another basis, for example TileCoding()"
            )
        start, values = found
        counts = values.astype(int)
        size = (states_of(space, self.whole) or 0) if self.joint else int(counts.sum())
        self._require_feasible(size)
        # One grid over all components, or one over each, whose indicators add up to 1.
        grids = counts.reshape(1 if self.joint else -1, -1 if self.joint else 1)
        first = np.arange(len(grids))
        start = start - 0.5 * self.whole  # what rounding left beside a whole number is the same
        stages = scale(start, np.ones_like(start)), cells(grids, np.zeros(grids.shape), first)
        constant = np.full(size, 1.0 / len(grids))
        return composed(observation_shape(space), *stages, constant=constant)


#: the table of a Box of floats whose observations are whole numbers
WHOLE = OneHot(joint=True, whole=True)
