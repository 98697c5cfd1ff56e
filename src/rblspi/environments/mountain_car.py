"""Mountain car: an underpowered car must swing back and forth to climb out of a valley.

The velocity and the position follow

    v <- clip(v + force a - gravity cos(3 p), -max_speed, max_speed),  a in {-1, 0, 1}
    p <- p + v,  stopped (v = 0) at the left wall

Standard: -1 for every step and 0 for the one that reaches the goal. Sparse: 1 for the step
that reaches the goal and 0 otherwise.

References
----------
Moore (1990); Sutton and Barto (1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit
from rblspi.core.types import Array
from rblspi.environments.base import Domain
from rblspi.environments.rendering import BLUE, GREEN, GREY, INK, PALE, RED, Canvas, placed


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start at rest, somewhere in the valley."""
    state[0] = rng.uniform(parameters[5], parameters[6])
    state[1] = 0.0


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Accelerate, move, and stop at the wall."""
    force, gravity, max_speed, wall, goal, _, _, step_reward, goal_reward = parameters
    velocity = state[1] + force * (action - 1) - gravity * math.cos(3.0 * state[0])
    velocity = min(max(velocity, -max_speed), max_speed)
    position = state[0] + velocity
    if position <= wall:
        position = wall
        velocity = 0.0
    reached = position >= goal
    state[0] = min(position, goal)
    state[1] = velocity
    return (goal_reward if reached else step_reward), reached, False


@dataclass(eq=False, repr=False)
class MountainCar(Domain):
    """Mountain car; the rewards of a step and of the goal are arguments.

    Parameters
    ----------
    force, gravity, max_speed, wall, goal : float
        Constants of the dynamics.
    start : (float, float)
        The car starts at rest, uniformly between these positions.
    step_reward, goal_reward : float
        Standard: -1 and 0. Sparse: 0 and 1.
    """

    functions = reset, step
    actions = 3

    force: float = 0.001
    gravity: float = 0.0025
    max_speed: float = 0.07
    wall: float = -1.2
    goal: float = 0.5
    start: tuple[float, float] = (-0.6, -0.4)
    step_reward: float = -1.0
    goal_reward: float = 0.0

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        return [self.wall, -self.max_speed], [self.goal, self.max_speed]

    def draw(self, canvas: Canvas) -> None:
        """Draw the car on its hill, with a wall on the left and a flag at the goal."""
        position = self.state[0]
        goal, bumper = self.goal, self.wall - 0.11  # the position is the middle of the car
        canvas.view(bumper - 0.06, goal + 0.14, -0.46, 0.76)
        road = np.linspace(canvas.left, canvas.right, 200)
        outline = np.column_stack([road, _height(road)])
        corners = [(canvas.right, canvas.bottom), (canvas.left, canvas.bottom)]
        canvas.polygon(np.vstack([outline, corners]), fill="#e4ebe1")
        canvas.line(outline, GREEN, 3)

        edge = [(bumper, canvas.bottom), (bumper, canvas.top)]
        canvas.polygon([*edge, (canvas.left, canvas.top), (canvas.left, canvas.bottom)], fill=PALE)
        canvas.line(edge, GREY, 2.5)

        foot = float(_height(goal))
        canvas.line([(goal, foot), (goal, foot + 0.26)], INK, 2.5)
        canvas.polygon(
            [(goal, foot + 0.26), (goal + 0.1, foot + 0.22), (goal, foot + 0.18)], fill=RED
        )

        at, slope = (position, float(_height(position))), math.atan(math.cos(3.0 * position))
        body = [
            *[(-0.1, 0.035), (0.1, 0.035), (0.1, 0.068), (0.092, 0.08), (0.055, 0.086)],
            *[(0.025, 0.128), (-0.055, 0.128), (-0.08, 0.086), (-0.1, 0.08)],
        ]
        window = [(-0.065, 0.086), (-0.048, 0.117), (0.018, 0.117), (0.04, 0.086)]
        canvas.polygon(placed(body, at, slope), fill=BLUE)
        canvas.polygon(placed(window, at, slope), fill="#dcebfa")
        for x in (-0.056, 0.056):
            ((wheel_x, wheel_y),) = placed([(x, 0.034)], at, slope)
            canvas.circle((wheel_x, wheel_y), 0.031, fill=INK)
            canvas.circle((wheel_x, wheel_y), 0.012, fill=PALE)


def _height(position: float | Array) -> Array:
    """Give the hill a slope of cos(3 p), as gravity in the dynamics has it."""
    return np.sin(3.0 * np.asarray(position)) / 3.0
