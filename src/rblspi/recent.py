"""The latest transitions, put aside until there are enough of them for matrix products.

Nothing is lost by waiting: the policy under evaluation stays the same until they are used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.compiled import jit_borrowing

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


@jit_borrowing
def remember(
    recent: Recent, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> None:
    """Put a transition aside; ``next_action`` is -1 where the next state is terminal."""
    xs, ys, rewards, actions, next_actions, size = recent
    i = size[0]
    for j in range(len(x)):
        xs[i, j] = x[j]
        ys[i, j] = y[j]
    rewards[i] = reward
    actions[i] = action
    next_actions[i] = next_action
    size[0] = i + 1


@jit_borrowing
def is_full(recent: Recent) -> bool:
    """Whether the transitions must be used before the next one comes."""
    return bool(recent.size[0] == len(recent.action))


@jit_borrowing
def gather(
    recent: Recent, discount: float, action: int, start: int, rows_x: Matrix, rows_d: Matrix
) -> int:
    """Write rows x and [d, r] of one action's transitions, from ``start`` on; where they stop.

    d = e_a (x) x - gamma e_a' (x) y, without the second term where the next state is terminal.
    """
    xs, ys, rewards, actions, next_actions, size = recent
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
