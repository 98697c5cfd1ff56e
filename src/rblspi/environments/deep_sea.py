"""Deep sea: a treasure at the end of one long sequence of actions that cost something.

The states are the cells of an N x N grid. Episodes start at the top left, and every step goes one
row down and one column to the left or to the right, as far as the grid reaches. Which of the two
actions goes right is drawn for each cell. Going right costs 0.01 / N; going right in the bottom
right cell, which only an agent that has always gone right comes to, finds the treasure of 1. An
episode terminates after N steps.

In the stochastic variant a move to the right fails with probability 1 / N and leaves the column as
it is, and what is found in the two corners at the bottom has standard normal noise.

An episode is bad if the agent went left in a cell of the diagonal. Without chance, these are the
episodes that do not find the treasure.

References
----------
Osband, Van Roy, Russo and Wen (2019), Deep exploration via randomized value functions.
Osband et al. (2020), Behaviour suite for reinforcement learning: the stochastic variant.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit
from rblspi.core.types import Array, Integers, Matrix
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import BLUE, GREY, INK, ORANGE, PALE, Canvas, box, mixed, placed

#: places in the state: the cell, counted row by row, and whether the episode is bad
CELL, BAD = range(2)
_FIRST_CELL = 4


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start at the top left."""
    state[CELL] = 0.0
    state[BAD] = 0.0


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Dive one row; after the last one the cell is that of the column arrived at."""
    size, cell = int(parameters[0]), int(state[CELL])
    cost, failure, noise = parameters[1], parameters[2], parameters[3]
    row, column = cell // size, cell % size
    bottom, edge = row == size - 1, column == size - 1
    reward = 0.0
    if noise > 0.0 and bottom and (edge or column == 0):
        reward += noise * rng.standard_normal()
    if action == int(parameters[_FIRST_CELL + cell]):  # goes right
        reward += (1.0 if bottom and edge else 0.0) - cost
        if failure == 0.0 or rng.random() >= failure:
            column = min(column + 1, size - 1)
    else:
        if row == column:
            state[BAD] = 1.0
        column = max(column - 1, 0)
    state[CELL] = min(row + 1, size - 1) * size + column
    return reward, bottom, False


class DeepSea(FiniteEnvironment):
    """Deep sea; the observation is the number of the cell, counted row by row from the top left.

    After an episode, ``state[BAD]`` of the environment says whether it was a bad one. An agent has
    its environment's state in ``session.episode.state``, where a callback can read it.

    Parameters
    ----------
    size : int
        N.
    stochastic : bool
        Whether moves to the right may fail, and the corners at the bottom are noisy.
    move_cost : float
        Of an episode that always goes right.
    randomise_actions : bool
        Whether the action that goes right is drawn for each cell; otherwise it is 1.
    mapping_seed : int
        Of this draw.
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}
    terminates = True

    def __init__(
        self,
        size: int = 10,
        stochastic: bool = False,
        move_cost: float = 0.01,
        randomise_actions: bool = True,
        mapping_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.size = check.count("size", size, least=2)
        self.shape = (self.size, self.size)
        check.boolean("stochastic", stochastic)
        self.right_actions: Integers = np.ones(self.size**2, np.int64)
        if check.boolean("randomise_actions", randomise_actions):
            rng = np.random.default_rng(check.seed("mapping_seed", mapping_seed))
            self.right_actions = rng.integers(2, size=self.size**2)
        chance = (1.0 / self.size, 1.0) if stochastic else (0.0, 0.0)
        constants = (self.size, check.not_negative("move_cost", move_cost) / self.size, *chance)
        super().__init__(
            Dynamics(reset, step, np.array([*constants, *self.right_actions]), state_size=2),
            gym.spaces.Discrete(self.size**2),
            gym.spaces.Discrete(2),
            render_mode,
        )

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'.

        Rows of the bottom are zero: every step from there terminates.
        """
        cells, failure = np.arange(self.size * (self.size - 1)), self.dynamics.parameters[2]
        below, column = cells - cells % self.size + self.size, cells % self.size
        right = self.right_actions[cells]
        transitions = np.zeros((2, self.size**2, self.size**2))
        transitions[1 - right, cells, below + np.maximum(column - 1, 0)] = 1.0
        transitions[right, cells, below + column] = failure
        transitions[right, cells, below + np.minimum(column + 1, self.size - 1)] += 1.0 - failure
        return transitions

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        rewards, cells = np.zeros((self.size**2, 2)), np.arange(self.size**2)
        rewards[cells, self.right_actions] = -self.dynamics.parameters[1]
        rewards[-1, self.right_actions[-1]] += 1.0
        return rewards

    def draw(self, canvas: Canvas) -> None:
        """Draw the sea, darker with depth, the treasure, the diver, and where the actions lead."""
        size, cell = self.size, int(self.state[CELL])
        row, column = cell // size, cell % size
        canvas.view(-1.0, size, -size, 1.0)
        for depth in range(size):
            surface = placed(box(size, 1.0), ((size - 1) / 2, -depth - 0.5))
            canvas.polygon(surface, fill=mixed("#e2f0fa", "#9ec2e0", depth / size))
        for line in np.arange(size + 1) - 0.5:
            canvas.line([(line, 0.5), (line, 0.5 - size)], PALE, 1)
            canvas.line([(-0.5, -line), (size - 0.5, -line)], PALE, 1)
        canvas.line([(-0.5, 0.5), (size - 0.5, 0.5 - size)], GREY, 1.2, dash=5)
        chest = placed(box(0.62, 0.5), (size - 1, 0.75 - size))
        canvas.polygon(chest, fill=ORANGE, outline=INK, width=1)
        canvas.circle((column, -row), max(0.33, size / 60), fill=BLUE, outline="white", width=1.5)
        right = int(self.right_actions[cell])
        words = f"{right}: right\n{1 - right}: left"
        canvas.text((size, 0.0), words, 14, ha="left", va="top")
