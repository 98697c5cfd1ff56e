"""Sums with eligibility traces in place of features, as LSTD(lambda) needs them.

With phi_t = phi(s_t, a_t) and d_t = phi_t - gamma phi(s_t', a_t'), the traces and the sums are

    z_t = c_t z_{t-1} + phi_t       A = sum z d'       b = sum z r       C = sum z z'

c_t is lambda gamma where row t goes on where row t - 1 led, with the action of the policy under
evaluation; it is 0 elsewhere. A trace runs across actions, so the sums have a single block of k
features. They are those of `rblspi.model.statistics` with z for x and z - d for gamma y.

Rows whose sums were computed on their own may follow other rows, and inherit their last trace.
`Continuation` knows what this adds to the sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.compiled import jit
from rblspi.core.types import Integers, Matrix, Vector
from rblspi.model.statistics import Statistics, TDErrorSums, accumulate


class Step(NamedTuple):
    """An observation and the action that was, or would be, taken there."""

    observation: NDArray[Any]
    action: int


class Continuation(NamedTuple):
    """How sums over rows change if they inherit a trace z_0: row t then has z_t + p_t z_0."""

    errors: Vector  # sum of p_t (d_t, r_t)   (k + 1,)
    traces: Vector  # sum of p_t z_t          (k,)
    square: float  # sum of p_t^2
    last: Vector  # z_t of the last row       (k,)
    share: float  # p_t of the last row
    decay: float  # lambda gamma^tau of the last row
    first: Step  # s and a of the first row
    next: Step | None  # s' and a' of the last row; None if the episode ended there
    continued: int  # rows that go on where the row before them led
    feature_square: float  # sum of |phi_t|^2

    def then(
        self, other: Continuation, statistics: Statistics, td_errors: TDErrorSums
    ) -> Continuation:
        """Let other rows follow these; what they inherit is added to the sums, in place."""
        follows = self.next is not None and np.array_equal(self.next[0], other.first[0])
        same_action = self.next is not None and self.next.action == other.first.action
        decay = self.decay if follows and same_action else 0.0
        inherited, share = decay * self.last, decay * self.share
        other._inherit(inherited, statistics, td_errors)
        return Continuation(
            errors=self.errors + share * other.errors,
            traces=self.traces + share * (other.traces + other.square * inherited),
            square=self.square + share**2 * other.square,
            last=other.last + other.share * inherited,
            share=share * other.share,
            decay=other.decay,
            first=self.first,
            next=other.next,
            continued=self.continued + int(follows) + other.continued,
            feature_square=self.feature_square + other.feature_square,
        )

    def _inherit(self, trace: Vector, statistics: Statistics, td_errors: TDErrorSums) -> None:
        """Replace every z_t of the sums by z_t + p_t z_0."""
        constant = self.square * np.outer(trace, trace)
        statistics.cross[0] += np.outer(trace, self.errors)
        statistics.gram[0] += _symmetric(trace, self.traces) + constant
        td_errors.next_gram[0] += _symmetric(trace, self.traces - self.errors[:-1]) + constant
        td_errors.next_reward[0] += trace * self.errors[-1]


def _symmetric(u: Vector, v: Vector) -> Matrix:
    """The matrix uv' + vu'."""
    product: Matrix = np.outer(u, v)
    return product + product.T


class Rows(NamedTuple):
    """Transitions in features, in the order in which they happened."""

    x: Matrix  # phi(s)   (N, n)
    y: Matrix  # phi(s')  (N, n)
    actions: Integers
    next_actions: Integers  # of the policy under evaluation; -1 where s' is terminal
    rewards: Vector
    discounts: Vector  # gamma^tau
    goes_on: NDArray[np.bool_]  # whether the episode does, after this row
    first: NDArray[Any]  # s of the first row
    next: NDArray[Any]  # s' of the last row


def accumulate_traces(
    statistics: Statistics,
    td_errors: TDErrorSums,
    rows: Rows,
    trace_decay: float,
    before: Continuation | None = None,
) -> Continuation:
    """Add rows to sums of one block of k features, in place.

    Parameters
    ----------
    statistics, td_errors
        Updated in place.
    rows : Rows
        If the episode goes on after a row, the next row has to continue it.
    trace_decay : float
        lambda.
    before : Continuation, optional
        Of the rows that are in the sums.
    """
    size, k = len(rows.x), statistics.features
    decays = trace_decay * rows.discounts * rows.goes_on
    same_action = rows.next_actions[:-1] == rows.actions[1:]
    traces, ahead, shares = np.empty((size, k)), np.empty((size, k)), np.ones(size)
    columns = rows.x, rows.y, rows.actions, rows.next_actions, rows.discounts
    _trace(*columns, decays[:-1] * same_action, traces, ahead, shares)
    block = np.zeros(size, np.int64)
    accumulate(statistics, traces, block, rows.rewards, ahead, block, 1.0)
    td_errors.add(ahead, block, rows.rewards, 1.0)
    head = slice(0, np.count_nonzero(shares))  # z_0 does not reach the other rows
    errors = np.column_stack([traces[head] - ahead[head], rows.rewards[head]])
    added = Continuation(
        errors=shares[head] @ errors,
        traces=shares[head] @ traces[head],
        square=float(shares @ shares),
        last=traces[-1].copy(),
        share=float(shares[-1]),
        decay=float(decays[-1]),
        first=Step(rows.first, int(rows.actions[0])),
        next=Step(rows.next, int(rows.next_actions[-1])) if rows.goes_on[-1] else None,
        continued=int(rows.goes_on[:-1].sum()),
        feature_square=float(np.vdot(rows.x, rows.x)),
    )
    return added if before is None else before.then(added, statistics, td_errors)


@jit
def _trace(
    x: Matrix,
    y: Matrix,
    actions: Integers,
    next_actions: Integers,
    discounts: Vector,
    decays: Vector,
    traces: Matrix,
    ahead: Matrix,
    shares: Vector,
) -> None:
    """Write z_t, z_t - d_t and p_t of every row, where z_0 = 0 and p_0 = 1 before the first."""
    n, k = x.shape[1], traces.shape[1]
    for t in range(len(x)):
        for j in range(k):
            ahead[t, j] = decays[t - 1] * traces[t - 1, j] if t > 0 else 0.0
            traces[t, j] = ahead[t, j]
        if t > 0:
            shares[t] = decays[t - 1] * shares[t - 1]
        for j in range(n):
            traces[t, actions[t] * n + j] += x[t, j]
            if next_actions[t] >= 0:
                ahead[t, next_actions[t] * n + j] += discounts[t] * y[t, j]
