"""Chain walk: states in a row, two noisy moves, and a reward for being at either end.

An action moves one state to the left or to the right; with probability ``failure`` it moves the
other way. A move beyond an end stays there. The reward belongs to the state in which the action is
taken, and an episode never ends by itself.

References
----------
Lagoudakis and Parr (2003), Least-squares policy iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rblspi.core.types import Array
from rblspi.environments.row import LEFT, RIGHT, Row


class ChainWalk(Row):
    """Chain walk with one observation, and one reward, per state; action 0 is left, 1 is right.

    Parameters
    ----------
    states : int
    failure : float
        Probability of moving the other way.
    rewards : array-like, shape (states,), optional
        Reward for being in each state: by default 1 at both ends and 0 between them.
    """

    def __init__(
        self,
        states: int = 20,
        failure: float = 0.1,
        rewards: Sequence[float] | Array | None = None,
        render_mode: str | None = None,
    ) -> None:
        if states < 2:
            raise ValueError(f"states={states}: a chain has at least two")
        if not 0 <= failure <= 1:
            raise ValueError(f"failure={failure} is not a probability")
        if rewards is None:
            rewards = np.zeros(states)
            rewards[[0, -1]] = 1.0
        if len(rewards) != states:
            raise ValueError(f"rewards has {len(rewards)} entries for states={states}")
        self.rewards = np.array(rewards, dtype=np.float64)
        moves = np.zeros((states, 2, 3))
        moves[:, LEFT], moves[:, RIGHT] = (1.0, -1.0, 0.0), (-1.0, 1.0, 0.0)
        below = np.tile([failure, 1.0], (states, 2, 1))
        by_action = np.column_stack([self.rewards, self.rewards])
        super().__init__(by_action, moves, below, render_mode=render_mode)
