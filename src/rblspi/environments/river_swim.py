"""River swim: swim against the current to a large reward, or rest downstream with a small one.

States are places in a river from left to right. Going left, with the current, always succeeds.
Going right moves ahead with probability 0.35, stays with 0.6 and drifts back with 0.05. In the
leftmost state it moves ahead with probability 0.6, and in the rightmost it stays with 0.6;
otherwise it stays and drifts back, respectively. The reward is 0.005 for going left in the leftmost
state and 1 for going right in the rightmost, and 0 otherwise. Episodes start in the leftmost state
and never end by themselves.

With six states, always going right has the largest mean reward, 0.429 a step. A policy that does
not plan to explore finds the rightmost state after thousands of steps, if at all.

References
----------
Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision
processes.
Osband, Russo and Van Roy (2013), (More) efficient reinforcement learning via posterior sampling:
these numbers.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.environments.rendering import Canvas
from rblspi.environments.row import LEFT, RIGHT, Row, straight

#: probabilities of moving ahead and back between the ends, and of success at either end
AHEAD, BACK, AT_END = 0.35, 0.05, 0.6


class RiverSwim(Row):
    """River swim; action 0 goes left, with the current, and 1 right, against it.

    `optimal_average_reward` is the largest possible mean reward per step.

    Parameters
    ----------
    states : int
    left_reward, right_reward : float
        For going left in the leftmost state, and for going right in the rightmost.
    """

    def __init__(
        self,
        states: int = 6,
        left_reward: float = 0.005,
        right_reward: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.states = check.count("states", states, least=3)
        rewards = np.zeros((self.states, 2))
        rewards[0, LEFT], rewards[-1, RIGHT] = left_reward, right_reward
        moves, below = straight(self.states)
        moves[:, RIGHT], below[:, RIGHT] = (1.0, 0.0, -1.0), (AHEAD, 1.0 - BACK)
        below[0, RIGHT], below[-1, RIGHT] = (AT_END, 1.0), (0.0, 1.0 - (1.0 - AT_END))
        super().__init__(rewards, moves, below, 0, render_mode=render_mode)

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells with the rewards of the ends; the current runs from right to left."""
        super().draw(canvas)
        canvas.line([(self.states - 0.6, -1.35), (-0.4, -1.35)], "#9cc3e6", 3)
        canvas.polygon([(-0.5, -1.35), (-0.3, -1.25), (-0.3, -1.45)], fill="#9cc3e6")
        canvas.text(((self.states - 1) / 2, -1.55), "current", 13, "#5b8fc0")
