"""Deep sea: a treasure at the end of one long sequence of actions that cost something.

The states are the cells of an N x N grid. Episodes start at the top left, and every step goes one
row down and one column to the left or to the right, within the grid. Which of the two actions goes
right is drawn for each cell. Going right costs 0.01 / N; going right in the bottom right cell,
which only an agent that has always gone right reaches, finds the treasure, a reward of 1. An
episode terminates after N steps.

In the stochastic variant a move to the right fails with probability 1 / N and leaves the column as
it is, and the rewards in the two bottom corners have standard normal noise.

An episode is bad if the agent went left in a cell of the diagonal. In the deterministic variant,
these are the episodes that do not find the treasure.

References
----------
Osband, Van Roy, Russo and Wen (2019), Deep exploration via randomized value functions.
Osband et al. (2020), Behaviour suite for reinforcement learning: the stochastic variant.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.core.types import Integers
from rblspi.environments.finite import COUNT, PLACE, FiniteEnvironment, Table
from rblspi.environments.rendering import BLUE, GREY, INK, ORANGE, PALE, Canvas, box, mixed, placed

#: places in the state: the cell, counted row by row, and whether the episode is bad
CELL, BAD = PLACE, COUNT


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
        Total cost of an episode that always goes right.
    randomise_actions : bool
        Whether the action that goes right is drawn for each cell; otherwise it is 1.
    mapping_seed : int
        Seed for this draw.
    """

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
        cost = check.not_negative("move_cost", move_cost) / self.size
        super().__init__(self._table(cost, stochastic), render_mode=render_mode)

    def _table(self, cost: float, stochastic: bool) -> Table:
        """Every step goes one row down; after the last row, the cell is that of the column."""
        size, right = self.size, self.right_actions
        cells = np.arange(size**2)
        row, column = cells // size, cells % size
        below, bottom = np.minimum(row + 1, size - 1) * size, row == size - 1
        to_the_right = below + np.minimum(column + 1, size - 1)
        following = np.empty((size**2, 2))
        following[cells, right] = to_the_right
        following[cells, 1 - right] = below + np.maximum(column - 1, 0)
        table = Table.certain(np.zeros((size**2, 2)), following)
        table.rewards[cells, right] = -cost
        table.rewards[-1, right[-1]] = 1.0 - cost
        table.terminal[bottom] = True
        table.counted[cells, 1 - right] = row == column  # an episode is bad once
        if stochastic:
            outcomes = np.stack([below + column, to_the_right, to_the_right], axis=1)
            table.outcomes[cells, right] = outcomes
            table.below[cells, right] = 1.0 / size, 1.0
            table.noise[bottom & ((column == 0) | (column == size - 1))] = 1.0
        return table

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
