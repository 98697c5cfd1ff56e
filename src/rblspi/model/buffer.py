"""The latest transitions, held back until there are enough of them for matrix products.

Nothing is lost by waiting: the policy under evaluation does not change before they are absorbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.types import Integers, Matrix, Vector

#: the most transitions that a buffer holds: rows of this many fill the processor's cache
CAPACITY = 64

#: next action of a transition whose next state is terminal
TERMINAL = -1


class Buffer(NamedTuple):
    """Transitions of the policy under evaluation that the sums do not include yet."""

    x: Matrix  # phi(s)                         (capacity, n)
    y: Matrix  # phi(s')                        (capacity, n)
    reward: Vector  #                           (capacity,)
    action: Integers  #                         (capacity,)
    next_action: Integers  # or TERMINAL        (capacity,)
    size: Integers  #                           (1,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that compiled code can use as indices, by field."""
        return {
            "size": (0, len(self.action) - 1),
            "action": (0, actions - 1),
            "next_action": (TERMINAL, actions - 1),
        }


def new_buffer(capacity: int, features: int) -> Buffer:
    """An empty buffer."""
    x, y = np.zeros((2, capacity, features))
    action, next_action = np.zeros((2, capacity), np.int64)
    return Buffer(x, y, np.zeros(capacity), action, next_action, np.zeros(1, np.int64))


@jit_inlined
def append(
    buffer: Buffer, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> None:
    """Add a transition; ``next_action`` is TERMINAL where the next state is."""
    xs, ys, rewards, actions, next_actions, size = buffer
    i = size[0]
    for j in range(len(x)):
        xs[i, j] = x[j]
        ys[i, j] = y[j]
    rewards[i] = reward
    actions[i] = action
    next_actions[i] = next_action
    size[0] = i + 1


@jit_inlined
def is_full(buffer: Buffer) -> bool:
    """Whether the transitions must be absorbed before the next one comes."""
    return bool(buffer.size[0] == len(buffer.action))


@jit_borrowing
def gather(
    buffer: Buffer, discount: float, action: int, start: int, rows_x: Matrix, rows_d: Matrix
) -> int:
    """Write rows x and [d, r] of one action's transitions from ``start`` on; return the end.

    d = e_a (x) x - gamma e_a' (x) y, without the second term where the next state is terminal.
    """
    xs, ys, rewards, actions, next_actions, size = buffer
    n, last = xs.shape[1], rows_d.shape[1] - 1
    row = start
    for i in range(size[0]):
        if actions[i] != action:
            continue
        for j in range(last):
            rows_d[row, j] = 0.0
        for j in range(n):
            rows_x[row, j] = xs[i, j]
            rows_d[row, action * n + j] = xs[i, j]
        if next_actions[i] >= 0:
            first = next_actions[i] * n
            for j in range(n):
                rows_d[row, first + j] -= discount * ys[i, j]
        rows_d[row, last] = rewards[i]
        row += 1
    return row
