"""Sufficient statistics of least squares: sums over a set of transitions.

A transition (s, a, r, s') with next action a' has x = phi(s), y = phi(s') (zero if s' is
terminal) and d = e_a (x) x - gamma e_a' (x) y, k = n |A| long. For every action a:

    C_a = sum x x'          A_a = sum x d'          b_a = sum x r

The Gram matrix of the action features is block-diagonal, so only its blocks are stored; the
rewards are one more column of d. Statistics of the same policy and discount merge by adding.

If transitions take different times tau, each has its own discount, gamma^tau.
"""

from __future__ import annotations

from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit
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
        return Statistics(*map(add, self, other))


class TDErrorSums(NamedTuple):
    """Sums that give, together with `Statistics`, the squared TD errors of any weights.

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
        return TDErrorSums(*map(add, self, other))

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

    With X_a the features of the rows in which a was taken and X_aa', Y_aa' the features before
    and after transitions from a to the next action a',

        C_a += X_a'X_a       A_a += [X_a'X_a in block a] - gamma [X_aa''Y_aa' in block a']
        b_a += X_a'r

    Parameters
    ----------
    statistics : Statistics
        Updated in place; unchanged if the batch is invalid.
    x, y : array-like, shape (N, n)
        Features of the states and of the next states, finite also where these are terminal.
    actions, rewards : array-like, shape (N,)
    next_actions : array-like of int, shape (N,)
        The next actions of the policy under evaluation; -1 where the next state is terminal.
    discount : float, or ndarray of shape (N,)
        gamma: one for all transitions in the sums, or one for each.
    """
    for name in ("gram", "cross"):
        sums: Array = getattr(statistics, name)
        if not (sums.flags.c_contiguous and sums.dtype == np.float64):
            raise ValueError(
                f"the sums {name} have to be float64 and stored by rows, as `empty` makes them"
            )
    features, choices = (statistics.features,), statistics.actions
    x = _numbers("x", x, (None, *features))
    y = _numbers("y", y, (len(x), *features))
    rewards = _numbers("rewards", rewards, (len(x),))
    actions = _choices("actions", actions, 0, choices, len(x))
    next_actions = _choices("next_actions", next_actions, TERMINAL, choices, len(x))
    y, discount = _discounted(y, discount)
    _add_rewards(statistics.cross, x, actions, rewards)
    product = np.empty((*features, *features))
    for start in range(0, len(x), SORTED_ROWS):
        rows = slice(start, start + SORTED_ROWS)
        pairs = actions[rows] * (choices + 1) + next_actions[rows] + 1
        order = np.argsort(pairs, kind="stable")
        starts = np.searchsorted(pairs[order], np.arange(choices * (choices + 1) + 1))
        _add_products(statistics, starts, x[rows][order], y[rows][order], discount, product)


def _discounted(y: Matrix, discount: float | Vector) -> tuple[Matrix, float]:
    """Features of next states and one discount; discounts of transitions scale the features."""
    if np.ndim(discount) == 0:
        return y, check.fraction("discount", discount)
    discounts = _numbers("discount", discount, y.shape[:1])
    _require("discount", discounts, (discounts >= 0.0) & (discounts <= 1.0), "be from 0 to 1")
    return discounts[:, None] * y, 1.0


def _numbers(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """Finite numbers in an array of this shape; None stands for any number of rows."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    _require_shape(name, array, shape)
    _require(name, array, np.isfinite(array), "be finite")
    return array


def _choices(name: str, values: ArrayLike, least: int, actions: int, rows: int) -> Integers:
    """Whole numbers from ``least`` to the last action."""
    array = np.asarray(values)
    _require_shape(name, array, (rows,))
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} of type {array.dtype} must be whole numbers")
    allowed = (array >= least) & (array < actions)
    _require(name, array, allowed, f"lie between {least} and {actions - 1}")
    return np.ascontiguousarray(array, dtype=np.int64)


def _require_shape(name: str, array: Array, shape: tuple[int | None, ...]) -> None:
    rows = shape[0] or max(1, len(array) if array.ndim else 1)
    if array.shape != (rows, *shape[1:]):
        words = ", ".join(str(size or "N > 0") for size in shape)
        raise ValueError(f"{name} of shape {array.shape} must have shape ({words})")


def _require(name: str, array: NDArray[Any], fine: NDArray[np.bool_], what: str) -> None:
    """Raise a ValueError that names the first invalid row."""
    if not fine.all():
        row = int(np.argmin(fine.reshape(len(array), -1).all(axis=1)))
        raise ValueError(f"{name} in row {row} is {array[row].tolist()}: it must {what}")


@jit
def _add_rewards(cross: Array, x: Matrix, actions: Integers, rewards: Vector) -> None:
    """Add the rows to b, the last column."""
    for i in range(len(x)):
        if rewards[i] != 0.0:
            for j in range(x.shape[1]):
                cross[actions[i], j, -1] += x[i, j] * rewards[i]


@jit
def _add_products(
    statistics: Statistics,
    starts: Integers,
    x: Matrix,
    y: Matrix,
    discount: float,
    product: Matrix,
) -> None:
    """Add C and A of rows that are sorted by action and then by next action, terminal ones first.

    The rows of every pair begin at ``starts``; ``product`` is a workspace.
    """
    choices, n = statistics.gram.shape[:2]
    for a in range(choices):
        first, last = starts[a * (choices + 1)], starts[(a + 1) * (choices + 1)]
        if first == last:
            continue
        statistics.count[a] += last - first
        la.clear(product)
        add_product(1.0, x[first:last], x[first:last], product)
        statistics.gram[a] += product
        statistics.cross[a, :, a * n : (a + 1) * n] += product
        for b in range(choices):
            pair = a * (choices + 1) + b + 1
            rows_x, rows_y = x[starts[pair] : starts[pair + 1]], y[starts[pair] : starts[pair + 1]]
            add_product(-discount, rows_x, rows_y, statistics.cross[a, :, b * n : (b + 1) * n])
