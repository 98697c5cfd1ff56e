"""States in a row, in which an action moves one place to the left, one to the right, or not at all.

A move beyond an end stays there, and no step is terminal.
"""

from __future__ import annotations

import numpy as np

from rblspi.core.types import Array, Matrix
from rblspi.environments.finite import ALWAYS, FiniteEnvironment, Table
from rblspi.environments.rendering import BLUE, GREY, INK, ORANGE, RED, Canvas, box, placed

LEFT, RIGHT = 0, 1

_CELLS_IN_A_ROW = 25


class Row(FiniteEnvironment):
    """States in a row; action 0 tries to go left, 1 right.

    Parameters
    ----------
    rewards : ndarray, shape (states, 2)
        For taking an action in a state.
    moves : ndarray, shape (states, 2, 3)
        Number of places that each outcome of an action moves.
    below : ndarray, shape (states, 2, 2)
        The thresholds of the outcomes, see `Table`.
    start : int, optional
        By default any state.
    limit : int, optional
        Steps until an episode is truncated. The state has a second number that counts them.
    """

    def __init__(
        self,
        rewards: Matrix,
        moves: Array,
        below: Array,
        start: int | None = None,
        limit: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        states = np.arange(len(rewards))
        outcomes = np.clip(states[:, None, None] + moves, 0, len(states) - 1)
        table = Table.certain(rewards, outcomes[:, :, 0])._replace(outcomes=outcomes, below=below)
        if limit is not None:
            table.counted[:] = 1.0
        super().__init__(table, start, limit=limit, render_mode=render_mode)

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells: rewarded ones are tinted, the present one holds a disc.

        States that do not fit continue in further rows below.
        """
        rewards, here = self.table.rewards.max(axis=1), int(self.state[0])
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
