"""One feature for each discrete observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Vector
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import finite_values, observation_shape, states_of


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


@jit
def _one_hot_joint(parameters: Vector, observation: Vector, out: Vector) -> None:
    """The same parameters; combinations are counted with the last component fastest."""
    for i in range(len(out)):
        out[i] = 0.0
    place = 0
    for d in range(len(observation)):
        value = observation[d] - parameters[2 * d]
        values = int(parameters[2 * d + 1])
        if not 0.0 <= value < values:
            return
        place = place * values + int(value)
    out[place] = 1.0


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
    """

    joint: bool = False

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a space of finitely many observations."""
        found = finite_values(space)
        if found is None:
            raise TypeError(
                f"OneHot needs a Discrete or MultiDiscrete observation space, not {space}: "
                "choose another basis, for example TileCoding()"
            )
        start, values = found
        parameters = np.column_stack([start, values]).ravel()
        shape = observation_shape(space)
        if self.joint:
            size = self._require_feasible(states_of(space) or 0)
            return Features(_one_hot_joint, parameters, size, shape, constant=np.ones(size))
        size = self._require_feasible(int(values.sum()))
        constant = np.full(size, 1.0 / len(values))  # the indicators of a component add up to 1
        return Features(_one_hot, parameters, size, shape, constant=constant)
