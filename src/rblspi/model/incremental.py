"""The posterior over weights, updated exactly as transitions come in.

With R'R = Sigma + lambda I and lambda = alpha / beta, the posterior of the paper's equation (3) is

    m = R^-1 R'^-1 g          S = beta^-1 (R'R)^-1

where Sigma = sum_a A_a' C_a^-1 A_a and g = sum_a A_a' C_a^-1 b_a. Rewards are one more column of A
(see `statistics`), so that one *normal* matrix [Sigma g; g' h] holds both.

Three methods lead from transitions to R. All are exact. Which one is fastest depends on how many
transitions there are between two policy improvements.

- `RECOMPUTE`, for many: an improvement derives the normal matrix from the sums and factors it.
- `BLOCK_UPDATE`, for fewer: the transitions of one action, rows X and D, change that matrix by

      D'D - E'E,   E = T^-1 (D - X C^-1 A),   T T' = I + X C^-1 X'

  with C and A as they were before; an improvement factors it.
- `RANK_ONE`, for few: every row of D and E is a rank-one update and downdate of R itself.

The sums are exact. The last two methods accumulate rounding errors, so their matrices are rebuilt
from the sums every `REBUILD_EVERY` transitions, and whenever a downdate fails.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.kernels import add_product, add_square
from rblspi.core.types import Array, Integers, Matrix, Vector
from rblspi.model.buffer import Buffer, gather
from rblspi.model.statistics import Statistics, empty


class Workspace(NamedTuple):
    """Workspace; it holds nothing between calls."""

    x: Matrix  # X, rows by action          (capacity, n)
    u: Matrix  # C^-1 X', whitened or not   (n, capacity)
    d: Matrix  # D and rewards              (capacity, k + 1)
    e: Matrix  # E                          (capacity, k + 1)
    small: Matrix  # I + X C^-1 X'          (capacity, capacity)
    whitened: Matrix  # R_a, R_a'^-1 [A_a b_a], rows by action  (k, n + k + 1)


class IncrementalPosterior(NamedTuple):
    """The sums of a policy, and the matrices that the posterior derives from them.

    With the method `RECOMPUTE` only the statistics are up to date between improvements.
    """

    statistics: Statistics
    gram_factor: Array  # factor of C_a + ridge I     (actions, n, n)
    normal: Matrix  # [Sigma g; . h], upper triangle  (k + 1, k + 1)
    factor: Matrix  # R, and R'^-1 g as last column   (k, k + 1)
    residual: Vector  # h - g'(R'R)^-1 g              (1,)
    ridge: float
    penalty: float  # lambda
    method: Integers  # RECOMPUTE, BLOCK_UPDATE or RANK_ONE  (1,)
    counters: Integers  # transitions, rebuilds, failed downdates, factors with jitter
    jitter: Vector  # largest jitter so far  (1,)
    workspace: Workspace

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        return {"method": (RECOMPUTE, RANK_ONE)}


#: values of `IncrementalPosterior.method`
RECOMPUTE, BLOCK_UPDATE, RANK_ONE = range(3)

#: places in `IncrementalPosterior.counters`
TRANSITIONS, REBUILDS, FAILED_DOWNDATES, JITTERED = range(4)

#: transitions after which updated matrices are rebuilt from the sums
REBUILD_EVERY = 5_000


def fastest_method(period: int, weights: int) -> int:
    """The fastest method if improvements are this many transitions apart.

    The thresholds are measured, see docs/decisions/0003.
    """
    if weights < 3 * period:
        return RECOMPUTE
    return RANK_ONE if weights > 20 * period else BLOCK_UPDATE


def new_incremental_posterior(
    actions: int, features: int, ridge: float, penalty: float, capacity: int, method: int
) -> IncrementalPosterior:
    """The posterior before any transition; ``capacity`` is that of the buffer."""
    k = actions * features
    return IncrementalPosterior(
        statistics=empty(actions, features),
        gram_factor=np.tile(np.sqrt(ridge) * np.eye(features), (actions, 1, 1)),
        normal=np.zeros((k + 1, k + 1)),
        factor=np.sqrt(penalty) * np.eye(k, k + 1),
        residual=np.zeros(1),
        ridge=float(ridge),
        penalty=float(penalty),
        method=np.array([method], np.int64),
        counters=np.zeros(4, np.int64),
        jitter=np.zeros(1),
        workspace=Workspace(
            x=np.zeros((capacity, features)),
            u=np.zeros((features, capacity)),
            d=np.zeros((capacity, k + 1)),
            e=np.zeros((capacity, k + 1)),
            small=np.zeros((capacity, capacity)),
            whitened=np.zeros((k, features + k + 1)),
        ),
    )


@jit_borrowing
def absorb(posterior: IncrementalPosterior, buffer: Buffer, discount: float) -> None:
    """Add the buffered transitions to the sums, and update what is derived from them."""
    stop = 0
    rows_x, rows_d = posterior.workspace.x, posterior.workspace.d
    for action in range(len(posterior.gram_factor)):
        start = stop
        stop = gather(buffer, discount, action, start, rows_x, rows_d)
        if stop > start:
            _absorb_action(posterior, action, start, stop)
    buffer.size[0] = 0
    before = posterior.counters[TRANSITIONS] // REBUILD_EVERY
    posterior.counters[TRANSITIONS] += stop
    if posterior.method[0] == RECOMPUTE:
        return
    due = posterior.counters[TRANSITIONS] // REBUILD_EVERY > before
    if posterior.method[0] == RANK_ONE:
        due = due or not _update_factor(posterior, rows_d[:stop], posterior.workspace.e[:stop])
    else:
        add_square(1.0, rows_d[:stop], posterior.normal)
        add_square(-1.0, posterior.workspace.e[:stop], posterior.normal)
    if due:
        posterior.counters[REBUILDS] += 1
        derive_normal(posterior)
        if posterior.method[0] == RANK_ONE:
            _factor_normal(posterior)


@jit_borrowing
def _absorb_action(posterior: IncrementalPosterior, action: int, start: int, stop: int) -> None:
    """Add the rows of one action to its sums; find E before, and factor C after, if needed."""
    statistics = posterior.statistics
    x, d = posterior.workspace.x[start:stop], posterior.workspace.d[start:stop]
    if posterior.method[0] != RECOMPUTE:
        _find_e(posterior, action, x, d, posterior.workspace.e[start:stop])
    add_product(1.0, x, d, statistics.cross[action])
    add_product(1.0, x, x, statistics.gram[action])
    statistics.count[action] += len(x)
    if posterior.method[0] == RECOMPUTE:
        return
    if 20 * len(x) < x.shape[1]:
        for i in range(len(x)):
            la.rank_one_update(posterior.gram_factor[action], x[i])
    else:
        gram, factor = statistics.gram[action], posterior.gram_factor[action]
        _factor_with_jitter(posterior, gram, statistics.cross[action], posterior.ridge, factor)


@jit_borrowing
def _find_e(posterior: IncrementalPosterior, action: int, x: Matrix, d: Matrix, e: Matrix) -> None:
    """E = T^-1 (D - X C^-1 A), T T' = I + X C^-1 X', for the rows of one action."""
    p = len(x)
    upper, workspace = posterior.gram_factor[action], posterior.workspace
    u, small = workspace.u[:, :p], workspace.small[:p, :p]
    la.copy(x.T, u)
    la.whiten_columns(upper, u)
    la.clear(small)
    for i in range(p):
        small[i, i] = 1.0
    add_square(1.0, u, small)
    la.unwhiten_columns(upper, u)
    la.copy(d, e)
    add_product(-1.0, u, posterior.statistics.cross[action], e)
    la.factor(small, p, p)
    la.whiten_columns(small, e)


@jit_borrowing
def _factor_with_jitter(
    posterior: IncrementalPosterior, matrix: Matrix, extra: Matrix, diagonal: float, upper: Matrix
) -> None:
    """Write the factor R of F + diagonal I, with jitter on the diagonal if rounding demands it.

    If rows of ``upper`` are longer than F, the columns of ``extra`` are appended to F and become
    R'^-1 B. The jitter starts at the size of the rounding errors in F and grows tenfold until the
    factor exists. Only a matrix that is not finite has no factor at all.
    """
    n, stop = upper.shape
    jitter = 0.0
    while True:
        largest, trace = 0.0, 0.0
        for i in range(n):
            la.copy_vector(matrix[i, i:n], upper[i, i:n])
            la.copy_vector(extra[i], upper[i, n:])
            largest = max(largest, upper[i, i])
            trace += upper[i, i]
            upper[i, i] += diagonal + jitter
        if la.factor(upper, n, stop) or not math.isfinite(trace + jitter):
            break
        posterior.counters[JITTERED] += 1
        jitter = max(10.0 * jitter, n * 2.2e-16 * (largest + diagonal), 1e-300)
        posterior.jitter[0] = max(posterior.jitter[0], jitter)


@jit_borrowing
def _update_factor(posterior: IncrementalPosterior, d: Matrix, e: Matrix) -> bool:
    """Update R by the rows of D and downdate it by those of E; False, R spoilt, if one fails."""
    for i in range(len(d)):
        if not la.rank_one_exchange(posterior.factor, d[i], e[i]):
            posterior.counters[FAILED_DOWNDATES] += 1
            return False
        posterior.residual[0] += d[i, -1] * d[i, -1] - e[i, -1] * e[i, -1]
    return True


@jit_borrowing
def derive_normal(posterior: IncrementalPosterior) -> None:
    """[Sigma g; . h] = W'W, where W has rows R_a'^-1 [A_a b_a] and R_a'R_a = C_a + ridge I."""
    actions, n = posterior.gram_factor.shape[:2]
    gram, cross = posterior.statistics.gram, posterior.statistics.cross
    for a in range(actions):
        rows = posterior.workspace.whitened[a * n : (a + 1) * n]
        _factor_with_jitter(posterior, gram[a], cross[a], posterior.ridge, rows)
        la.copy(rows[:, :n], posterior.gram_factor[a])
    la.clear(posterior.normal)
    add_square(1.0, posterior.workspace.whitened[:, n:], posterior.normal)


@jit_borrowing
def _factor_normal(posterior: IncrementalPosterior) -> None:
    """R of Sigma + lambda I, with R'^-1 g as last column."""
    k, normal = len(posterior.factor), posterior.normal
    _factor_with_jitter(posterior, normal, normal[:, k:], posterior.penalty, posterior.factor)
    residual = normal[k, k]
    for i in range(k):
        residual -= posterior.factor[i, k] ** 2
    posterior.residual[0] = residual


@jit_borrowing
def improve(posterior: IncrementalPosterior, mean: Vector, sampled: Vector) -> None:
    """The mean m, and m + R^-1 w in place of w: a sample of the posterior if w is beta^-1/2 z."""
    if posterior.method[0] == RECOMPUTE:
        derive_normal(posterior)
    if posterior.method[0] != RANK_ONE:
        _factor_normal(posterior)
    k = len(posterior.factor)
    for i in range(k):
        mean[i] = posterior.factor[i, k]
        sampled[i] += posterior.factor[i, k]
    la.back_substitute_two(posterior.factor, mean, sampled)


@jit
def draw_perturbation(perturbation: Vector, std: float, rng: Any) -> None:
    """Draw N(0, std^2 I); std = beta^-1/2 makes `improve` a sample of the posterior."""
    for i in range(len(perturbation)):
        perturbation[i] = std * rng.standard_normal()
