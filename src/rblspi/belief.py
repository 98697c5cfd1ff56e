"""The posterior over weights, kept up to date exactly while transitions come in.

With R'R = Sigma + lambda I, lambda = alpha / beta, the posterior of the paper's equation (3) is

    m = R^-1 R'^-1 g          S = beta^-1 (R'R)^-1

where Sigma = sum_a A_a' C_a^-1 A_a and g = sum_a A_a' C_a^-1 b_a. Rewards are one more column
of A (see `statistics`), so one *moment* matrix [Sigma g; g' h] holds both.

A few transitions of one action, rows X and D, change the moment exactly by

    D'D - E'E,   E = T^-1 (D - X C^-1 A),   T T' = I + X C^-1 X'

all taken before the change. Many of them are matrix products and one Cholesky factor; few of
them are rank-one exchanges of the factor R itself. The sums stay exact; what is derived from
them recursively is rebuilt from them now and then, and whenever an exchange fails.
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
    cross: Matrix  # one action's A, b      (n, k + 1)
    y: Vector  # R'^-1 g                    (k,)


class Belief(NamedTuple):
    """All an agent of this library knows of a policy's action values."""

    statistics: Statistics
    gram_factor: Matrix  # factor of C_a + ridge I    (actions, n, n)
    moment: Matrix  # [Sigma g; . h], upper triangle  (k + 1, k + 1)
    factor: Matrix  # R, and R'^-1 g behind it        (k, k + 1)
    residual: Vector  # h - g'(R'R)^-1 g              (1,)
    ridge: float
    penalty: float  # lambda
    exchange: bool  # keep R by rank-one exchanges rather than the moment
    tally: Integers  # transitions, rebuilds, failed exchanges, lifted factors
    lift: Vector  # the most ever added to a diagonal to make it positive definite, (1,)
    scratch: Scratch


#: places in `Belief.tally`
TRANSITIONS, REBUILDS, FAILED_EXCHANGES, LIFTED = range(4)

#: transitions after which what is kept recursively is rebuilt from the sums
REBUILD_EVERY = 10_000

#: transitions put aside at the most before they are absorbed
BLOCK = 64


def exchange_is_cheaper(period: int, weights: int) -> bool:
    """Whether rank-one exchanges cost less than factoring, for improvements this far apart."""
    return 6 * 4 * period < weights


def new_belief(
    actions: int, features: int, ridge: float, penalty: float, capacity: int, exchange: bool
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
        exchange=bool(exchange),
        tally=np.zeros(4, np.int64),
        lift=np.zeros(1),
        scratch=Scratch(
            np.zeros((capacity, features)),
            np.zeros((capacity, features)),
            np.zeros((capacity, k + 1)),
            np.zeros((capacity, k + 1)),
            np.zeros((capacity, capacity)),
            np.zeros((features, k + 1)),
            np.zeros(k),
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
    due = belief.tally[TRANSITIONS] // REBUILD_EVERY > before
    d, e = belief.scratch.d[:stop], belief.scratch.e[:stop]
    if due:
        rebuild(belief)
    elif belief.exchange:
        _exchange(belief, d, e)
    else:
        la.add_square(1.0, d, belief.moment)
        la.add_square(-1.0, e, belief.moment)


@jit_borrowing
def _absorb_action(belief: Belief, action: int, start: int, stop: int) -> None:
    """E for the rows of one action; then its sums and the factor of its Gram matrix."""
    scratch, statistics = belief.scratch, belief.statistics
    upper, cross = belief.gram_factor[action], statistics.cross[action]
    p = stop - start
    x, d, e = scratch.x[start:stop], scratch.d[start:stop], scratch.e[start:stop]
    u, small = scratch.u[:p], scratch.small[:p]

    la.copy(x, u)
    la.whiten_rows(upper, u)
    la.add_product_nt(1.0, u, u, 0.0, small)
    for i in range(p):
        small[i, i] += 1.0
    la.unwhiten_rows(upper, u)
    la.copy(d, e)
    la.add_product(-1.0, u, cross, 1.0, e)
    la.factor(small, p)
    la.whiten_columns(small, e)

    la.add_product_tn(1.0, x, d, 1.0, cross)
    la.add_product_tn(1.0, x, x, 1.0, statistics.gram[action])
    statistics.count[action] += p
    if 20 * p < len(upper):
        la.copy(x, u)
        for i in range(p):
            la.rank_one_update(upper, u[i])
    else:
        _factor_gram(belief, action)


@jit_borrowing
def _factor_gram(belief: Belief, action: int) -> None:
    _lifted_factor(belief, belief.statistics.gram[action], belief.ridge, belief.gram_factor[action])


@jit_borrowing
def _lifted_factor(belief: Belief, matrix: Matrix, diagonal: float, upper: Matrix) -> None:
    """Factor of F + diagonal I; more is added to the diagonal if rounding demands it.

    What is added starts at the size of the rounding errors in F and grows until the factor
    exists. It is counted and the largest is kept, so that the user can be told. Only a matrix
    that is not finite has no factor at all.
    """
    n = len(upper)
    lift = 0.0
    while True:
        largest = 0.0
        for i in range(n):
            for j in range(i, upper.shape[1]):
                upper[i, j] = matrix[i, j]
            largest = max(largest, upper[i, i])
            upper[i, i] += diagonal + lift
        if la.factor(upper, n) or not math.isfinite(lift):
            break
        belief.tally[LIFTED] += 1
        lift = max(10.0 * lift, n * 2.2e-16 * (largest + diagonal), 1e-300)
        belief.lift[0] = max(belief.lift[0], lift)


@jit_borrowing
def _exchange(belief: Belief, d: Matrix, e: Matrix) -> None:
    """Keep R up to date by one rank-one exchange a row; rebuild where one fails."""
    for i in range(len(d)):
        if not la.rank_one_exchange(belief.factor, d[i], e[i]):
            belief.tally[FAILED_EXCHANGES] += 1
            rebuild(belief)
            return
        belief.residual[0] += d[i, -1] * d[i, -1] - e[i, -1] * e[i, -1]


@jit_borrowing
def rebuild(belief: Belief) -> None:
    """Derive everything from the sums: Sigma, g and h from C_a + ridge I and A_a, b_a."""
    belief.tally[REBUILDS] += 1
    belief.moment[:] = 0.0
    whitened = belief.scratch.cross
    for action in range(len(belief.gram_factor)):
        _factor_gram(belief, action)
        la.copy(belief.statistics.cross[action], whitened)
        la.whiten_columns(belief.gram_factor[action], whitened)
        la.add_square(1.0, whitened, belief.moment)
    if belief.exchange:
        _factor_moment(belief)


@jit_borrowing
def _factor_moment(belief: Belief) -> None:
    """R of Sigma + lambda I, with R'^-1 g behind it."""
    k = len(belief.factor)
    _lifted_factor(belief, belief.moment, belief.penalty, belief.factor)
    y = belief.scratch.y
    for i in range(k):
        y[i] = belief.factor[i, k]
    la.forward_substitute(belief.factor, y)
    for i in range(k):
        belief.factor[i, k] = y[i]
    belief.residual[0] = belief.moment[k, k] - la.dot(y, y)


@jit_borrowing
def improve(belief: Belief, direction: Vector, mean: Vector, sampled: Vector) -> None:
    """The mean m, and m + R^-1 direction: a sample where the direction is beta^-1/2 z."""
    if not belief.exchange:
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
