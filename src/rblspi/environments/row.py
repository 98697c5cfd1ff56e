"""States in a row, in which an action moves one place to the left, one to the right, or not at all.

Such an environment is a table: for every state and action a reward, and up to three moves with
their probabilities. Its steps, its transition probabilities and its picture follow from the table.
A move beyond an end stays there, and no step is terminal.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Array, Matrix
from rblspi.environments.base import Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import BLUE, GREY, INK, ORANGE, RED, Canvas, box, placed

LEFT, RIGHT = 0, 1
#: a threshold that every number is below, so that none is drawn
ALWAYS = np.inf

#: parameters before the table: the number of states, the first of them, the limit of steps
_HEAD = 3
#: numbers of a state and action in the table: the reward, two thresholds, and three moves
_ENTRY = 6
_CELLS_IN_A_ROW = 25


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start in the given state, or in any; a second number of the state counts steps."""
    state[:] = 0.0
    state[0] = parameters[1] if parameters[1] >= 0.0 else rng.integers(0, int(parameters[0]))


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Move; the reward is that of the state left."""
    here = int(state[0])
    entry = _HEAD + _ENTRY * (2 * here + action)
    reward, first, second = parameters[entry], parameters[entry + 1], parameters[entry + 2]
    outcome = entry + 3
    if first != ALWAYS:
        chance = rng.random()
        if chance >= first:
            outcome += 1 if chance < second else 2
    state[0] = min(max(here + parameters[outcome], 0.0), parameters[0] - 1.0)
    if len(state) == 1:
        return reward, False, False
    state[1] += 1.0
    return reward, False, state[1] >= parameters[2]


class Row(FiniteEnvironment):
    """States in a row; action 0 tries to go left, 1 right.

    Parameters
    ----------
    rewards : ndarray, shape (states, 2)
        For taking an action in a state.
    moves : ndarray, shape (states, 2, 3)
        By how many places the outcomes of an action move.
    below : ndarray, shape (states, 2, 2)
        A uniform number below the first of these leads to the first outcome, one below the second
        to the second, and any other to the third.
    start : int, optional
        By default any state.
    limit : int, optional
        Steps until an episode is truncated. The state has a second number that counts them.
    """

    metadata = FiniteEnvironment.metadata | {"render_fps": 5}

    def __init__(
        self,
        rewards: Matrix,
        moves: Array,
        below: Array,
        start: int | None = None,
        limit: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._rewards, self._moves, self._below = rewards, moves, below
        table = np.concatenate([rewards[:, :, None], below, moves], axis=2)
        head = (len(rewards), -1 if start is None else start, limit or np.inf)
        super().__init__(
            Dynamics(reset, step, np.array([*head, *table.ravel()]), 1 if limit is None else 2),
            gym.spaces.Discrete(len(rewards)),
            gym.spaces.Discrete(2),
            render_mode,
        )

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        states = len(self._rewards)
        shares = np.diff(np.minimum(self._below, 1.0), prepend=0.0, append=1.0)
        after = np.clip(np.arange(states)[:, None, None] + self._moves, 0, states - 1).astype(int)
        by_state = (shares[..., None] * np.eye(states)[after]).sum(axis=2)
        return np.swapaxes(by_state, 0, 1)

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        return self._rewards.copy()

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells: rewarded ones are tinted, the present one holds a disc.

        States that do not fit go on in further rows below.
        """
        rewards, here = self._rewards.max(axis=1), int(self.state[0])
        states, columns = len(rewards), min(len(rewards), _CELLS_IN_A_ROW)
        canvas.view(-1.0, columns, -2.0 - 2.4 * ((states - 1) // columns), 2.0)
        largest = max(np.abs(rewards).max(), 1e-12)
        cell = box(1.0, 1.0) - (0.0, 0.5)
        # Labels need about 24 pixels of width each.
        every = max(1, round(24 * (canvas.right - canvas.left) / canvas.width + 0.5) - 1)
        for state, reward in enumerate(rewards):
            x, y = state % columns, -2.4 * (state // columns)
            tint = (ORANGE if reward > 0 else RED, 0.43 * abs(reward) / largest)
            corners = placed(cell, (x, y))
            canvas.polygon(corners, fill="white")
            canvas.polygon(corners, fill=tint, outline=INK, width=1.2)
            if reward:
                canvas.text((x, y + 0.85), f"{reward:+g}", 14, ORANGE if reward > 0 else INK)
            if state % every == 0 or state in (here, states - 1):
                canvas.text((x, y - 0.85), str(state), 12, INK if state == here else GREY)
            if state == here:
                canvas.circle((x, y), 0.33, fill=BLUE)


def straight(states: int) -> tuple[Array, Array]:
    """Moves and thresholds of a row in which no move fails."""
    moves = np.zeros((states, 2, 3))
    moves[:, LEFT], moves[:, RIGHT] = -1.0, 1.0
    return moves, np.full((states, 2, 2), ALWAYS)
