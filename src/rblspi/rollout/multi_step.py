"""Transitions over several steps, from the single ones in a memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Integers, Vector
from rblspi.rollout.memory import CONTINUES, KEPT, TERMINATED, Memory


class Returns(NamedTuple):
    """What happens from the state of one row of the memory to the state after another.

    With n steps from s to s', t = r + gamma r' + ... of these steps, and g = gamma^n, or 0 if the
    episode terminated there.
    """

    rewards: Vector  # t
    discounts: Vector  # g
    last: Integers  # the row of the last step, whose next observation is s'


@jit
def multi_step(memory: Memory, rows: Integers, steps: int, discount: float, copies: int) -> Returns:
    """Up to so many steps from each of these rows, fewer where the episode or the memory ends.

    Rows must be in the order in which they were observed, by so many copies of an environment. The
    next step of an episode is then among the next ``copies`` rows.
    """
    rewards, discounts = np.zeros(len(rows)), np.ones(len(rows))
    last = rows.copy()
    for i in range(len(rows)):
        row = rows[i]
        for _ in range(steps):
            rewards[i] += discounts[i] * memory.rewards[row]
            discounts[i] *= discount
            last[i] = row
            if memory.ends[row] == TERMINATED:
                discounts[i] = 0.0
            if memory.ends[row] != CONTINUES:
                break
            row = _following(memory, row, copies)
            if row < 0:
                break
    return Returns(rewards, discounts, last)


@jit
def _following(memory: Memory, row: int, copies: int) -> int:
    """The row of the next step of the same episode, or -1."""
    for other in range(row + 1, min(row + 1 + copies, memory.counters[KEPT])):
        if memory.episodes[other] == memory.episodes[row]:
            return other if memory.steps[other] == memory.steps[row] + 1 else -1
    return -1
