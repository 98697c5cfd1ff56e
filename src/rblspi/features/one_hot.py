"""One feature for each discrete observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.compiled import jit
from rblspi.features.base import Basis, Features, Vector
from rblspi.features.bounds import discrete_values, observation_shape


@jit
def _one_hot(parameters: Vector, observation: Vector, out: Vector) -> None:
    """``parameters`` holds for every component its first value and its number of values."""
    for i in range(len(out)):
        out[i] = 0.0
    first = 0
    for d in range(len(observation)):
        value = observation[d] - parameters[2 * d]
        values = int(parameters[2 * d + 1])
        if 0.0 <= value < values:
            out[first + int(value)] = 1.0
        first += values


@dataclass(frozen=True)
class OneHot(Basis):
    """An indicator of each value of a discrete observation: a table, exact and without bias.

    For a MultiDiscrete space every component has its own indicators, side by side. There is
    no constant: the indicators of a component add up to it. A value that is not in the space
    has all features 0.
    """

    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a Discrete or MultiDiscrete space."""
        if not isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
            raise TypeError(
                f"OneHot needs a Discrete or MultiDiscrete observation space, not {space}: "
                "choose another basis, for example TileCoding()"
            )
        start, values = discrete_values(space)
        size = self._require_feasible(int(values.sum()))
        parameters = np.column_stack([start, values]).ravel()
        return Features(_one_hot, parameters, size, observation_shape(space))
