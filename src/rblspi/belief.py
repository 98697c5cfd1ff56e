"""The posterior over weights, kept up to date exactly while transitions come in.

With R'R = Sigma + lambda I, lambda = alpha / beta, the posterior of the paper's equation (3) is

    m = R^-1 R'^-1 g          S = beta^-1 (R'R)^-1

where Sigma = sum_a A_a' C_a^-1 A_a and g = sum_a A_a' C_a^-1 b_a. Rewards are one more column
of A (see `statistics`), so one *moment* matrix [Sigma g; g' h] holds both.

Three routes lead from transitions to R. All are exact; how many transitions come between two
improvements decides which is the shortest.

- `AFRESH`, for many: at an improvement the moment is derived from the sums and factored.
- `UPDATE`, for fewer: the transitions of one action, rows X and D, change the moment by

      D'D - E'E,   E = T^-1 (D - X C^-1 A),   T T' = I + X C^-1 X'

  all taken before the change; at an improvement the moment is factored.
- `EXCHANGE`, for few: rows of D and E are rank-one exchanges of the factor R itself.

The sums stay exact. What the last two derive from them recursively is rebuilt from them now and
then, and whenever an exchange fails.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi import linear_algebra as la
from rblspi.compiled import jit, jit_borrowing
from rblspi.recent import Recent, gather
from rblspi.statistics import Statistics, empty

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]


class Scratch(NamedTuple):
    """Room to work in; holds nothing between calls."""

    x: Matrix  # X, rows by action          (capacity, n)
    u: Matrix  # X C^-1, whitened or not    (capacity, n)
    d: Matrix  # D and rewards              (capacity, k + 1)
    e: Matrix  # E                          (capacity, k + 1)
    small: Matrix  # I + X C^-1 X'          (capacity, capacity)
    whitened: Matrix  # R_a, R_a'^-1 [A_a b_a], rows by action  (k, n + k + 1)


class Belief(NamedTuple):
    """All an agent of this library knows of a policy's action values.

    On the route `AFRESH` only the statistics are kept up to date between improvements.
    """

    statistics: Statistics
    gram_factor: Matrix  # factor of C_a + ridge I    (actions, n, n)
    moment: Matrix  # [Sigma g; . h], upper triangle  (k + 1, k + 1)
    factor: Matrix  # R, and R'^-1 g behind it        (k, k + 1)
    residual: Vector  # h - g'(R'R)^-1 g              (1,)
    ridge: float
    penalty: float  # lambda
    route: int  # AFRESH, UPDATE or EXCHANGE
    tally: Integers  # transitions, rebuilds, failed exchanges, lifted factors
    lift: Vector  # the most ever added to a diagonal to make it positive definite, (1,)
    scratch: Scratch


#: values of `Belief.route`
AFRESH, UPDATE, EXCHANGE = range(3)

#: places in `Belief.tally`
TRANSITIONS, REBUILDS, FAILED_EXCHANGES, LIFTED = range(4)

#: transitions after which what is kept recursively is rebuilt from the sums
REBUILD_EVERY = 10_000

#: transitions put aside at the most before they are absorbed
BLOCK = 64


def shortest_route(period: int, weights: int) -> int:
    """The route that takes the least time, for improvements this far apart."""
    if weights < 3 * period:
        return AFRESH
    return EXCHANGE if weights > 24 * period else UPDATE


def new_belief(
    actions: int, features: int, ridge: float, penalty: float, capacity: int, route: int
) -> Belief:
    """The belief before any transition: R'R = lambda I and a mean of zero."""
    k = actions * features
    belief = Belief(
        statistics=empty(actions, features),
        gram_factor=np.zeros((actions, features, features)),
        moment=np.zeros((k + 1, k + 1)),
        factor=np.zeros((k, k + 1)),
        residual=np.zeros(1),
        ridge=float(ridge),
        penalty=float(penalty),
        route=int(route),
        tally=np.zeros(4, np.int64),
        lift=np.zeros(1),
        scratch=Scratch(
            np.zeros((capacity, features)),
            np.zeros((capacity, features)),
            np.zeros((capacity, k + 1)),
            np.zeros((capacity, k + 1)),
            np.zeros((capacity, capacity)),
            np.zeros((k, features + k + 1)),
        ),
    )
    for a in range(actions):
        np.fill_diagonal(belief.gram_factor[a], np.sqrt(ridge))
    np.fill_diagonal(belief.factor[:, :k], np.sqrt(penalty))
    return belief


@jit_borrowing
def absorb(belief: Belief, recent: Recent, discount: float) -> None:
    """Move the recent transitions into the sums, and what is derived from them along."""
    stop = 0
    rows_x, rows_d = belief.scratch.x, belief.scratch.d
    for action in range(len(belief.gram_factor)):
        start = stop
        stop = gather(recent, discount, action, start, rows_x, rows_d)
        if stop > start:
            _absorb_action(belief, action, start, stop)
    recent.size[0] = 0
    before = belief.tally[TRANSITIONS] // REBUILD_EVERY
    belief.tally[TRANSITIONS] += stop
    if belief.route == AFRESH:
        return
    due = belief.tally[TRANSITIONS] // REBUILD_EVERY > before
    if belief.route == EXCHANGE:
        due = due or not _exchange(belief, rows_d[:stop], belief.scratch.e[:stop])
    else:
        la.add_square(1.0, rows_d[:stop], 1.0, belief.moment)
        la.add_square(-1.0, belief.scratch.e[:stop], 1.0, belief.moment)
    if due:
        rebuild(belief)


@jit_borrowing
def _absorb_action(belief: Belief, action: int, start: int, stop: int) -> None:
    """Add the rows of one action to its sums; E before and the factor after, where needed."""
    statistics = belief.statistics
    x, d = belief.scratch.x[start:stop], belief.scratch.d[start:stop]
    if belief.route != AFRESH:
        _find_e(belief, action, x, d, belief.scratch.e[start:stop])
    la.add_product_tn(1.0, x, d, 1.0, statistics.cross[action])
    la.add_product_tn(1.0, x, x, 1.0, statistics.gram[action])
    statistics.count[action] += len(x)
    if belief.route == AFRESH:
        return
    if 20 * len(x) < x.shape[1]:
        for i in range(len(x)):
            la.rank_one_update(belief.gram_factor[action], x[i])
    else:
        _factor_gram(belief, action)


@jit_borrowing
def _find_e(belief: Belief, action: int, x: Matrix, d: Matrix, e: Matrix) -> None:
    """E = T^-1 (D - X C^-1 A), T T' = I + X C^-1 X', for the rows of one action."""
    p = len(x)
    upper, u, small = belief.gram_factor[action], belief.scratch.u[:p], belief.scratch.small[:p]
    la.copy(x, u)
    la.whiten_rows(upper, u)
    la.add_product_nt(1.0, u, u, 0.0, small)
    for i in range(p):
        small[i, i] += 1.0
    la.unwhiten_rows(upper, u)
    la.copy(d, e)
    la.add_product(-1.0, u, belief.statistics.cross[action], 1.0, e)
    la.factor(small, p, p)
    la.whiten_columns(small, e)


@jit_borrowing
def _factor_gram(belief: Belief, action: int) -> None:
    gram, cross = belief.statistics.gram[action], belief.statistics.cross[action]
    _lifted_factor(belief, gram, cross, belief.ridge, belief.gram_factor[action])


@jit_borrowing
def _lifted_factor(
    belief: Belief, matrix: Matrix, behind: Matrix, diagonal: float, upper: Matrix
) -> None:
    """Factor of F + diagonal I; more is added to the diagonal if rounding demands it.

    Behind the factor comes R'^-1 B, B being what is to stand ``behind``, if there is room.

    What is added starts at the size of the rounding errors in F and grows until the factor
    exists. It is counted and the largest is kept, so that the user can be told. Only a matrix
    that is not finite has no factor at all.
    """
    n, stop = upper.shape
    lift = 0.0
    while True:
        largest = 0.0
        for i in range(n):
            la.copy_vector(matrix[i, i:n], upper[i, i:n])
            la.copy_vector(behind[i], upper[i, n:])
            largest = max(largest, upper[i, i])
            upper[i, i] += diagonal + lift
        if la.factor(upper, n, stop) or not math.isfinite(lift):
            break
        belief.tally[LIFTED] += 1
        lift = max(10.0 * lift, n * 2.2e-16 * (largest + diagonal), 1e-300)
        belief.lift[0] = max(belief.lift[0], lift)


@jit_borrowing
def _exchange(belief: Belief, d: Matrix, e: Matrix) -> bool:
    """Keep R up to date by one rank-one exchange a row; False, with R spoilt, where one fails."""
    for i in range(len(d)):
        if not la.rank_one_exchange(belief.factor, d[i], e[i]):
            belief.tally[FAILED_EXCHANGES] += 1
            return False
        belief.residual[0] += d[i, -1] * d[i, -1] - e[i, -1] * e[i, -1]
    return True


@jit_borrowing
def rebuild(belief: Belief) -> None:
    """Derive from the sums what is kept recursively."""
    belief.tally[REBUILDS] += 1
    _derive_moment(belief)
    if belief.route == EXCHANGE:
        _factor_moment(belief)


@jit_borrowing
def fade(belief: Belief, fraction: float) -> None:
    """Let every transition so far count for a fraction of what it did."""
    for sums in (belief.statistics.gram, belief.statistics.cross):
        for a in range(len(sums)):
            for i in range(sums.shape[1]):
                for j in range(sums.shape[2]):
                    sums[a, i, j] *= fraction
    if belief.route != AFRESH:
        rebuild(belief)


@jit_borrowing
def _derive_moment(belief: Belief) -> None:
    """[Sigma g; . h] = W'W, where W are the rows R_a'^-1 [A_a b_a] and R_a'R_a = C_a + ridge I."""
    actions, n = belief.gram_factor.shape[:2]
    gram, cross = belief.statistics.gram, belief.statistics.cross
    for a in range(actions):
        rows = belief.scratch.whitened[a * n : (a + 1) * n]
        _lifted_factor(belief, gram[a], cross[a], belief.ridge, rows)
        la.copy(rows[:, :n], belief.gram_factor[a])
    la.add_square(1.0, belief.scratch.whitened[:, n:], 0.0, belief.moment)


@jit_borrowing
def _factor_moment(belief: Belief) -> None:
    """R of Sigma + lambda I, with R'^-1 g behind it."""
    k, moment = len(belief.factor), belief.moment
    _lifted_factor(belief, moment, moment[:, k:], belief.penalty, belief.factor)
    residual = moment[k, k]
    for i in range(k):
        residual -= belief.factor[i, k] ** 2
    belief.residual[0] = residual


@jit_borrowing
def improve(belief: Belief, direction: Vector, mean: Vector, sampled: Vector) -> None:
    """The mean m, and m + R^-1 direction: a sample where the direction is beta^-1/2 z."""
    if belief.route == AFRESH:
        _derive_moment(belief)
    if belief.route != EXCHANGE:
        _factor_moment(belief)
    k = len(belief.factor)
    for i in range(k):
        mean[i] = belief.factor[i, k]
        sampled[i] = belief.factor[i, k] + direction[i]
    la.back_substitute_two(belief.factor, mean, sampled)


@jit
def draw_direction(direction: Vector, spread: float, rng: Any) -> None:
    """A standard normal z, times a spread: beta^-1/2 makes a sample of the posterior of it."""
    for i in range(len(direction)):
        direction[i] = spread * rng.standard_normal()
