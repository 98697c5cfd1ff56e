"""Sufficient statistics of least squares: sums over a set of transitions.

A transition (s, a, r, s') with next action a' has x = phi(s), y = phi(s') (zero if s' is
terminal) and d = e_a (x) x - gamma e_a' (x) y, k = n |A| long. For every action a:

    C_a = sum x x'          A_a = sum x d'          b_a = sum x r

The Gram matrix of the action features is block-diagonal, so only its blocks are stored; the
rewards are one more column of d. Statistics of the same policy and discount merge by adding.

Transitions that take different times tau have a discount each, gamma^tau in place of gamma.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.kernels import add_product
from rblspi.core.types import Array, Integers, Matrix, Vector
from rblspi.model.buffer import TERMINAL

#: rows that are sorted by action at a time, so that their features stay in the processor's cache
SORTED_ROWS = 2048


class Statistics(NamedTuple):
    """Sums over transitions, one block for every action."""

    gram: Array  # C_a, without any ridge    (actions, n, n)
    cross: Array  # [A_a, b_a]               (actions, n, k + 1)
    count: Integers  # type: ignore[assignment]  # transitions  (actions,)

    @property
    def actions(self) -> int:
        """|A|."""
        return len(self.gram)

    @property
    def features(self) -> int:
        """n, the number of state features."""
        return int(self.gram.shape[1])

    @property
    def weights(self) -> int:
        """The number of weights, k = n |A|."""
        return self.actions * self.features

    @property
    def drift(self) -> Matrix:
        """A, shape (k, k): the blocks A_a below one another."""
        return self.cross.reshape(self.weights, -1)[:, :-1]

    @property
    def reward(self) -> Vector:
        """The sums b, shape (k,)."""
        return self.cross.reshape(self.weights, -1)[:, -1]

    def merge(self, other: Statistics) -> Statistics:
        """Sums over both sets of transitions."""
        if self.gram.shape != other.gram.shape:
            raise ValueError(
                f"statistics of {self.actions} actions x {self.features} features do not merge "
                f"with those of {other.actions} x {other.features}"
            )
        return Statistics(
            self.gram + other.gram, self.cross + other.cross, self.count + other.count
        )


class TDErrorSums(NamedTuple):
    """Sums that make the squared TD errors of any weights known, together with `Statistics`.

    The TD error of a transition is delta = r - d'theta, so the sum of its squares is

        sum delta^2 = sum r^2 - 2 theta'(b - c) + theta'(A + A' - C + G) theta

    where G has the blocks sum gamma^2 y y', and c the parts sum gamma y r, over the transitions
    that go on with each action.
    """

    next_gram: Array  # G                 (actions, n, n)
    next_reward: Matrix  # c              (actions, n)
    reward_square: Vector  # sum of r^2   (1,)

    @classmethod
    def empty(cls, actions: int, features: int) -> TDErrorSums:
        """The sums over no transitions."""
        shape = (actions, features)
        return cls(np.zeros((*shape, features)), np.zeros(shape), np.zeros(1))

    def add(
        self, y: Matrix, next_actions: Integers, rewards: Vector, discount: float | Vector
    ) -> None:
        """Add a batch of transitions to the sums, in place; the arguments are `accumulate`'s."""
        y, discount = _discounted(y, discount)
        for action in range(len(self.next_gram)):
            rows = np.flatnonzero(next_actions == action)
            ahead = discount * y[rows]
            self.next_gram[action] += ahead.T @ ahead
            self.next_reward[action] += rewards[rows] @ ahead
        self.reward_square[0] += rewards @ rewards

    def merge(self, other: TDErrorSums) -> TDErrorSums:
        """Sums over both sets of transitions."""
        return TDErrorSums(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))

    def squared_td_errors(self, statistics: Statistics, theta: Vector) -> float:
        """The sum of the squared TD errors of some weights, shape (k,), never below 0."""
        blocks = theta.reshape(statistics.actions, -1)
        curvature = 2.0 * theta @ (statistics.drift @ theta) + sum(
            float(block @ (ahead - gram) @ block)
            for block, ahead, gram in zip(blocks, self.next_gram, statistics.gram, strict=True)
        )
        slope = theta @ (statistics.reward - self.next_reward.ravel())
        return max(float(self.reward_square[0] - 2.0 * slope + curvature), 0.0)


def empty(actions: int, features: int) -> Statistics:
    """The sums over no transitions."""
    return Statistics(
        np.zeros((actions, features, features)),
        np.zeros((actions, features, actions * features + 1)),
        np.zeros(actions, np.int64),
    )


def accumulate(
    statistics: Statistics,
    x: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    y: ArrayLike,
    next_actions: ArrayLike,
    discount: float | Vector,
) -> None:
    """Add a batch of transitions to the sums, in place.

    With X_a the features of the rows in which a was taken and X_aa', Y_aa' those of them which
    go on with a',

        C_a += X_a'X_a       A_a += [X_a'X_a in block a] - gamma [X_aa''Y_aa' in block a']
        b_a += X_a'r

    Parameters
    ----------
    statistics : Statistics
        Changed, unless something is wrong with the batch.
    x, y : array-like, shape (N, n)
        Features of the states and of the next states, finite also where these are terminal.
    actions, rewards : array-like, shape (N,)
    next_actions : array-like of int, shape (N,)
        What the policy under evaluation does next; -1 where the next state is terminal.
    discount : float, or ndarray of shape (N,)
        gamma, the same for all transitions in the sums, or that of each.
    """
    for name in ("gram", "cross"):
        sums: Array = getattr(statistics, name)
        if not (sums.flags.c_contiguous and sums.dtype == np.float64):
            raise ValueError(
                f"the sums {name} have to be float64 and stored by rows, as `empty` makes them"
            )
    x, y = _numbers("x", x, 2), _numbers("y", y, 2)
    rewards = _numbers("rewards", rewards, 1)
    actions = _choices("actions", actions, 0, statistics.actions)
    next_actions = _choices("next_actions", next_actions, TERMINAL, statistics.actions)
    for name, features in (("x", x), ("y", y)):
        if features.shape[1] != statistics.features:
            raise ValueError(
                f"{name} has {features.shape[1]} columns, but the sums are over "
                f"{statistics.features} features"
            )
    columns = {"actions": actions, "rewards": rewards, "y": y, "next_actions": next_actions}
    for name, column in columns.items():
        if len(column) != len(x):
            raise ValueError(f"{name} has {len(column)} rows, but x has {len(x)}")
    y, discount = _discounted(y, discount)
    _accumulate(statistics, x, actions, rewards, y, next_actions, discount)


def _discounted(y: Matrix, discount: float | Vector) -> tuple[Matrix, float]:
    """Features of next states and a discount of all, also if every transition has its own."""
    if np.ndim(discount) == 0:
        return y, check.fraction("discount", discount)
    discounts = _numbers("discount", discount, 1)
    if discounts.shape != y.shape[:1]:
        raise ValueError(f"discount has {len(discounts)} rows, but y has {len(y)}")
    wrong = ~((discounts >= 0.0) & (discounts <= 1.0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"discount in row {row} is {discounts[row]}: it must be from 0 to 1")
    return discounts[:, None] * y, 1.0


def _numbers(name: str, values: ArrayLike, axes: int) -> Array:
    """Finite numbers, by rows."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != axes:
        raise ValueError(f"{name} of shape {array.shape} must have {axes} axes")
    if array.size == 0:
        raise ValueError(f"{name} of shape {array.shape} is empty: give at least one transition")
    row = _first_not_finite(array.reshape(len(array), -1))
    if row >= 0:
        raise ValueError(f"{name} in row {row} is not finite: {array[row].tolist()}")
    return array


def _choices(name: str, values: ArrayLike, least: int, actions: int) -> Integers:
    """Whole numbers from ``least`` to the last action."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} of shape {array.shape} must have 1 axis")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} of type {array.dtype} must be whole numbers")
    wrong = (array < least) | (array >= actions)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} in row {row} is {array[row]}: it must lie between {least} and {actions - 1}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


@jit_borrowing
def _first_not_finite(matrix: Matrix) -> int:
    """The first row that holds NaN or infinity, or -1."""
    for i in range(len(matrix)):
        if not la.all_finite(matrix[i]):
            return i
    return -1


@jit
def _accumulate(
    statistics: Statistics,
    x: Matrix,
    actions: Integers,
    rewards: Vector,
    y: Matrix,
    next_actions: Integers,
    discount: float,
) -> None:
    """Add the rows some at a time, sorted by action and next action."""
    choices, n = statistics.gram.shape[:2]
    size = min(SORTED_ROWS, len(x))
    sorted_x = np.empty((size, n))
    sorted_y = np.empty((size, n))
    product = np.zeros((n, n))
    for start in range(0, len(x), size):
        stop = min(start + size, len(x))
        starts = _sort(
            x[start:stop],
            y[start:stop],
            actions[start:stop],
            next_actions[start:stop],
            choices,
            sorted_x,
            sorted_y,
        )
        for a in range(choices):
            _add_products(statistics, a, starts[a], sorted_x, sorted_y, discount, product)
        for i in range(start, stop):
            _add_reward(statistics.cross[actions[i]], x[i], rewards[i])


@jit
def _sort(
    x: Matrix,
    y: Matrix,
    actions: Integers,
    next_actions: Integers,
    choices: int,
    sorted_x: Matrix,
    sorted_y: Matrix,
) -> Integers:
    """Copy the rows, ordered by action and then by next action, terminal ones first.

    Returns where the rows of every pair start, shape (actions, actions + 2); the last entry of
    each row is where the rows of that action end.
    """
    starts = np.zeros((choices, choices + 2), np.int64)
    for i in range(len(x)):
        starts[actions[i], next_actions[i] + 2] += 1
    total = 0
    for a in range(choices):
        for pair in range(choices + 2):
            total += starts[a, pair]
            starts[a, pair] = total
    place = starts.copy()
    for i in range(len(x)):
        to = place[actions[i], next_actions[i] + 1]
        place[actions[i], next_actions[i] + 1] = to + 1
        sorted_x[to] = x[i]
        sorted_y[to] = y[i]
    return starts


@jit
def _add_products(
    statistics: Statistics,
    a: int,
    starts: Integers,
    x: Matrix,
    y: Matrix,
    discount: float,
    product: Matrix,
) -> None:
    """Add C_a and A_a of one action's rows; ``product`` is a workspace."""
    n = x.shape[1]
    first, last = starts[0], starts[-1]
    if first == last:
        return
    statistics.count[a] += last - first
    la.clear(product)
    add_product(1.0, x[first:last], x[first:last], product)
    statistics.gram[a] += product
    _add_to_columns(statistics.cross[a], a * n, 1.0, product)
    for b in range(len(starts) - 2):
        first, last = starts[b + 1], starts[b + 2]
        if first < last:
            cross = statistics.cross[a, :, b * n : (b + 1) * n]
            add_product(-discount, x[first:last], y[first:last], cross)


@jit
def _add_to_columns(matrix: Matrix, first: int, factor: float, block: Matrix) -> None:
    """Add a multiple of a block to the columns of a matrix that begin at ``first``."""
    for i in range(len(block)):
        for j in range(block.shape[1]):
            matrix[i, first + j] += factor * block[i, j]


@jit
def _add_reward(cross: Matrix, x: Vector, reward: float) -> None:
    """Add one row to b_a, the last column."""
    if reward != 0.0:
        for j in range(len(x)):
            cross[j, -1] += x[j] * reward
