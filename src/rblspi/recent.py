"""The latest transitions, put aside until there are enough of them for matrix products.

Nothing is lost by waiting: the policy under evaluation stays the same until they are used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.compiled import jit

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]


class Recent(NamedTuple):
    """Transitions of the policy under evaluation that are not in the sums yet."""

    x: Matrix  # phi(s)                     (capacity, n)
    y: Matrix  # phi(s')                    (capacity, n)
    reward: Vector  #                       (capacity,)
    action: Integers  #                     (capacity,)
    next_action: Integers  # -1: terminal   (capacity,)
    size: Integers  #                       (1,)


def new_recent(capacity: int, features: int) -> Recent:
    """Room for so many transitions, and none in it."""
    return Recent(
        np.zeros((capacity, features)),
        np.zeros((capacity, features)),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(1, np.int64),
    )


@jit
def remember(
    recent: Recent, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> None:
    """Put a transition aside; ``next_action`` is -1 where the next state is terminal."""
    i = recent.size[0]
    recent.x[i] = x
    recent.y[i] = y
    recent.reward[i] = reward
    recent.action[i] = action
    recent.next_action[i] = next_action
    recent.size[0] = i + 1


@jit
def is_full(recent: Recent) -> bool:
    """Whether the transitions must be used before the next one comes."""
    return bool(recent.size[0] == len(recent.action))


@jit
def gather(
    recent: Recent, discount: float, action: int, start: int, rows_x: Matrix, rows_d: Matrix
) -> int:
    """Write rows x and [d, r] of one action's transitions, from ``start`` on; where they stop.

    d = e_a (x) x - gamma e_a' (x) y, without the second term where the next state is terminal.
    """
    n = recent.x.shape[1]
    row = start
    for i in range(recent.size[0]):
        if recent.action[i] != action:
            continue
        rows_x[row] = recent.x[i]
        d = rows_d[row]
        d[:] = 0.0
        d[action * n : (action + 1) * n] = recent.x[i]
        if recent.next_action[i] >= 0:
            first = recent.next_action[i] * n
            for j in range(n):
                d[first + j] -= discount * recent.y[i, j]
        d[-1] = recent.reward[i]
        row += 1
    return row
