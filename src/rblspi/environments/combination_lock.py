"""Combination lock: one right action at every position, and a small reward for every wrong one.

The lock has H positions in a row and A actions. At each position one action, drawn once, leads on
to the next; at the last position it opens the lock for a reward of 1. Any other action pays a small
bribe and leads into a dead end of the same length, from which the lock cannot be reached any more
and in which all rewards are 0. With probability ``slip`` the action that is carried out is drawn at
random. An episode terminates after H steps.

The observation is the position h, or H + h in the dead end. An agent that acts at random opens the
lock once in about A^H episodes, and the bribes teach it not to try.

References
----------
Kakade (2003), On the sample complexity of reinforcement learning, chapter 2.
Misra, Henaff, Krishnamurthy and Langford (2020), Kinematic state abstraction and provably
efficient rich-observation reinforcement learning.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.core.types import Integers
from rblspi.environments.finite import FiniteEnvironment, Table
from rblspi.environments.rendering import BLUE, GREEN, GREY, INK, PALE, RED, Canvas, box, placed


class CombinationLock(FiniteEnvironment):
    """Combination lock with a dead end, misleading rewards and slips.

    Parameters
    ----------
    length : int
        H, the number of positions.
    actions : int
        A, the number of actions.
    slip : float
        Probability with which the action that is carried out is drawn at random.
    bribe : float
        Reward for a wrong action, once an episode. The larger it is, the more it misleads. Below 1,
        and without a discount, the combination is the best policy, because the bribe can also be
        taken later.
    combination_seed : int
        Seed for the draw of the right actions.
    """

    def __init__(
        self,
        length: int = 10,
        actions: int = 4,
        slip: float = 0.05,
        bribe: float = 0.05,
        combination_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.length = check.count("length", length)
        self.actions = check.count("actions", actions, least=2)
        check.fraction("slip", slip)
        check.not_negative("bribe", bribe)
        rng = np.random.default_rng(check.seed("combination_seed", combination_seed))
        self.combination: Integers = rng.integers(self.actions, size=self.length)
        super().__init__(self._table(bribe), slip=slip, render_mode=render_mode)

    def _table(self, bribe: float) -> Table:
        """After the last step the position stays the last one."""
        positions, length = np.arange(self.length), self.length
        ahead = np.minimum(positions + 1, length - 1)
        following = np.repeat(length + np.tile(ahead, 2)[:, None], self.actions, axis=1)
        following[positions, self.combination] = ahead
        rewards = np.zeros((2 * length, self.actions))
        rewards[:length] = bribe
        rewards[positions, self.combination] = positions == length - 1
        table = Table.certain(rewards, following)
        table.terminal[[length - 1, -1]] = True
        return table

    def draw(self, canvas: Canvas) -> None:
        """Draw the positions with their right actions above, the dead end below."""
        length, here = self.length, int(self.state[0])
        canvas.view(-1.0, length + 0.5, -2.0, 2.0)
        cell = box(0.8, 0.8) - (0.0, 0.4)
        for position in range(length):
            for place, height in ((position, 0.6), (length + position, -0.6)):
                corners = placed(cell, (position, height))
                fill = "white" if place < length else PALE
                canvas.polygon(
                    corners, fill=fill, outline=INK if place < length else GREY, width=1.2
                )
                if place == here:
                    canvas.circle((position, height), 0.3, fill=BLUE if place < length else RED)
            action = str(self.combination[position])
            canvas.text((position, 1.25), action, min(15.0, 300 / length), GREEN)
        canvas.text((length - 0.3, 0.6), "+1", 16, GREEN)
        canvas.text(
            (canvas.left, canvas.top), "  right actions above", 14, GREY, ha="left", va="top"
        )
