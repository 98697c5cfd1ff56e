"""One feature for each discrete observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Vector
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import discrete_values, observation_shape


@jit
def _one_hot(parameters: Vector, observation: Vector, out: Vector) -> None:
    """``parameters`` holds the first value and the number of values of every component."""
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
    """An indicator of each value of a discrete observation.

    In a Discrete space this makes the value function a table, without approximation error. In a
    MultiDiscrete space every component has its own indicators. There is no separate constant
    because the indicators of a component add up to 1. For a value outside the space all
    indicators are 0.
    """

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a Discrete or MultiDiscrete space."""
        if not isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
            raise TypeError(
                f"OneHot needs a Discrete or MultiDiscrete observation space, not {space}: "
                "choose another basis, for example TileCoding()"
            )
        start, values = discrete_values(space)
        size = self._require_feasible(int(values.sum()))
        parameters = np.column_stack([start, values]).ravel()
        constant = np.full(size, 1.0 / len(values))  # the indicators of a component add up to 1
        return Features(*(_one_hot, parameters, size, observation_shape(space)), constant=constant)
