"""Puddle world: walk to the upper right corner of a square, around two puddles.

The state is a point (x, y) of the unit square. The actions 0 to 3 move it up, down, left and
right by ``move``; normal noise is added to both coordinates, which are then clipped to the
square. A puddle is everything within ``radius`` of a line segment. The reward is

    -1 - penalty max(0, radius - distance to the nearest segment)

at the point arrived at, and 0 for the step that reaches x + y >= 1.9, which ends the episode.
Episodes start uniformly outside the puddles and the goal.

References
----------
Sutton (1996), Generalization in reinforcement learning: successful examples using sparse
coarse coding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit
from rblspi.core.types import Array
from rblspi.environments.base import Domain
from rblspi.environments.rendering import GREEN, GREY, INK, RED, Canvas, mixed

UP, DOWN, LEFT, RIGHT = 0, 1, 2, 3
_FIRST_PUDDLE = 7


@jit
def depth(parameters: Array, x: float, y: float) -> float:
    """Measure how deep in the puddles a point lies: at most the radius, and 0 outside."""
    deepest = 0.0
    for i in range(_FIRST_PUDDLE, len(parameters), 4):
        x1, y1, x2, y2 = parameters[i], parameters[i + 1], parameters[i + 2], parameters[i + 3]
        along_x, along_y = x2 - x1, y2 - y1
        squared_length = along_x**2 + along_y**2
        along = 0.0
        if squared_length > 0:
            along = ((x - x1) * along_x + (y - y1) * along_y) / squared_length
            along = min(max(along, 0.0), 1.0)
        distance = math.hypot(x - x1 - along * along_x, y - y1 - along * along_y)
        deepest = max(deepest, parameters[3] - distance)
    return deepest


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start outside the puddles and the goal."""
    goal = parameters[2]
    while True:
        state[0] = rng.random()
        state[1] = rng.random()
        if state[0] + state[1] < goal and depth(parameters, state[0], state[1]) == 0.0:
            return


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Move, add noise, and pay for the depth arrived at."""
    move, noise, goal, _, penalty, step_reward, goal_reward = parameters[:_FIRST_PUDDLE]
    x = state[0] + rng.normal(0.0, noise)
    y = state[1] + rng.normal(0.0, noise)
    if action == UP:
        y += move
    elif action == DOWN:
        y -= move
    elif action == LEFT:
        x -= move
    else:
        x += move
    x = min(max(x, 0.0), 1.0)
    y = min(max(y, 0.0), 1.0)
    state[0] = x
    state[1] = y
    if x + y >= goal:
        return goal_reward, True, False
    return step_reward - penalty * depth(parameters, x, y), False, False


@dataclass(eq=False, repr=False)
class PuddleWorld(Domain):
    """Puddle world; actions 0, 1, 2, 3 move up, down, left, right.

    Parameters
    ----------
    move, noise : float
        Length of a move, and standard deviation of the noise on each coordinate.
    goal : float
        The goal is x + y >= goal.
    radius, penalty : float
        Radius of every puddle, and penalty for each unit of depth in it.
    step_reward, goal_reward : float
    puddles : sequence of (x1, y1, x2, y2)
        The segment in the middle of each puddle.
    """

    metadata = Domain.metadata | {"render_fps": 10}
    functions = reset, step
    actions = 4

    move: float = 0.05
    noise: float = 0.01
    goal: float = 1.9
    radius: float = 0.1
    penalty: float = 400.0
    step_reward: float = -1.0
    goal_reward: float = 0.0
    puddles: Sequence[tuple[float, float, float, float]] = (
        (0.1, 0.75, 0.45, 0.75),
        (0.45, 0.4, 0.45, 0.8),
    )

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        return [0.0, 0.0], [1.0, 1.0]

    def depth(self, x: float, y: float) -> float:
        """Measure how deep in the puddles a point lies: at most the radius, and 0 outside."""
        return depth(self.dynamics.parameters, x, y)

    def draw(self, canvas: Canvas) -> None:
        """Draw the square from above: the deeper a puddle the darker, and the goal green."""
        x, y = self.state
        canvas.view(-0.04, 1.04, -0.08, 1.04)
        square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
        canvas.polygon(square, fill="white")
        # Contours run from the rim to the middle; each level draws all puddles, so that their union
        # shows.
        for level in np.linspace(0.0, 1.0, 20, endpoint=False):
            shade = mixed("#deebf7", "#4280bb", level)
            for puddle in np.reshape(self.puddles, (-1, 4)):
                canvas.polygon(_capsule(puddle, (1 - level) * self.radius), fill=shade)
        low = self.goal - 1.0
        if 0 <= low < 1:
            canvas.polygon([(low, 1.0), (1.0, low), (1.0, 1.0)], fill=GREEN)
        canvas.polygon(square, outline=INK, width=2)
        for mark in (0.0, 0.5, 1.0):
            canvas.text((mark, -0.045), f"{mark:g}", 13, GREY)
            canvas.text((-0.03, mark), f"{mark:g}", 13, GREY, ha="right")
        canvas.circle((x, y), 0.025, fill="white")
        canvas.circle((x, y), 0.02, fill=RED)


def _capsule(segment: Array, radius: float) -> Array:
    """Outline everything within a distance of a segment."""
    start, end = segment[:2], segment[2:]
    direction = math.atan2(end[1] - start[1], end[0] - start[0])
    half_turn = np.linspace(-math.pi / 2, math.pi / 2, 30)
    cap = radius * np.column_stack([np.cos(half_turn + direction), np.sin(half_turn + direction)])
    return np.vstack([end + cap, start - cap])
