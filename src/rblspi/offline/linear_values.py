"""Values that are linear in the features, and how much every episode influences them.

The weights solve A theta = b with A = sum rho phi (phi - gamma phi')', b = sum rho phi r. Here phi'
belongs to s' and pi(s'), and rho is a weight of the transition, 1 unless it is said. The value of
the first states is v = z'theta, z their mean phi. With h such that A'h = z, to first order

    v - true value = sum rho (h'phi) delta,    delta = r + gamma phi''theta - phi'theta

plus the variation of the first states. Here h'phi is the density of (s, a) under the policy,
relative to the data, as far as the features can express it. The sum over the transitions of an
episode is its influence.

Fitted Q evaluation regresses r + gamma Q(s', pi(s')) on phi(s, a), with the Q of the regression
before:

    theta <- (C + ridge I)^-1 sum phi (r + gamma phi''theta)

If this converges, its limit solves (A + ridge I) theta = b. It converges only if no eigenvalue of
(C + ridge I)^-1 sum gamma phi phi'' lies on or outside the unit circle, which nothing guarantees
where the data come from another policy and the features are not indicators of states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from rblspi.core.types import Integers, Matrix, Vector
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, accumulate, empty
from rblspi.offline.accumulation import batch_rows, require_finite
from rblspi.offline.episodes import Episodes

#: with this ridge, only what is not in the data at all counts as such, if it is not negligible
LEAST_RIDGE, NEGLIGIBLE = 1e-6, 1e-4

DIVERGES = "the regressions do not converge: try another basis or a larger ridge"


class LinearValues(NamedTuple):
    """Weights of values, relative to the centre of the episodes, and the system they solve."""

    episodes: Episodes
    weights: Vector
    drift: tuple[Matrix, Integers]  # LU factors of A, with any ridge

    def of_first_states(self) -> Vector:
        """The values of the first states, not relative to anything."""
        return self.episodes.centre + self.episodes.first.dot(self.weights)

    @property
    def value(self) -> float:
        """The mean value of the first states."""
        return float(self.of_first_states().mean())

    def errors(self) -> Vector:
        """The TD error of every transition, shape (N,)."""
        known, after = self.episodes, self.episodes.after.dot(self.weights)
        ahead = known.discounts * np.where(known.log.terminated, 0.0, after)
        errors: Vector = known.rewards + ahead - known.now.dot(self.weights)
        return errors

    def densities(self, z: Vector | None = None) -> Vector:
        """h'phi(s, a) of every transition; z is by default the mean phi of the first states."""
        z = self.episodes.first.mean() if z is None else z
        return self.episodes.now.dot(lu_solve(self.drift, z, trans=1))

    def influences(self, ratios: Vector | float = 1.0) -> Vector:
        """The influence of every segment on the mean value of the first states."""
        known, effects = self.episodes, ratios * self.densities() * self.errors()
        influences: Vector = np.bincount(known.segments, effects).astype(np.float64)
        if known.sampled:
            first = self.of_first_states()
            influences[known.segments[known.starts]] += (first - first.mean()) / len(first)
        return influences


def sums(episodes: Episodes, ratios: Vector | None = None) -> Statistics:
    """The sums A, b and C over all transitions, weighted by their ratios."""
    log, problem = episodes.log, episodes.problem
    ratios = np.ones(log.size) if ratios is None else ratios
    statistics = empty(problem.blocks, problem.features.size)
    used, size = np.flatnonzero(ratios), batch_rows(problem.features)
    after = np.where(log.terminated, TERMINAL, episodes.ahead)
    for rows in np.split(used, range(size, len(used), size)):
        root = np.sqrt(ratios[rows])
        batch = log.select(rows)
        x, y = problem.features(batch.observations), problem.features(batch.next_observations)
        accumulate(
            statistics,
            root[:, None] * x,
            batch.actions,
            root * episodes.rewards[rows],
            root[:, None] * y,
            after[rows],
            batch.discounts(problem.discount),
        )
    require_finite(statistics.gram, statistics.cross)
    return statistics


def solve(episodes: Episodes, statistics: Statistics, ridge: float) -> LinearValues:
    """The solution of (A + ridge I) theta = b.

    The ridge is a multiple of the mean |phi|^2, which is what one transition adds to the trace.
    """
    drift = lu_factor(statistics.drift + ridge * _unit(statistics) * np.eye(statistics.weights))
    return LinearValues(episodes, lu_solve(drift, statistics.reward), drift)


def regressions_converge(statistics: Statistics, ridge: float) -> bool:
    """Whether fitted Q evaluation converges to this solution.

    The matrix of one regression is I - (C + ridge I)^-1 (A + ridge I).
    """
    penalty = ridge * _unit(statistics)
    drift = statistics.drift + penalty * np.eye(statistics.weights)
    blocks = zip(statistics.gram, np.split(drift, statistics.actions), strict=True)
    one = penalty * np.eye(statistics.features)
    solved = np.concatenate([cho_solve(cho_factor(gram + one), rows) for gram, rows in blocks])
    return bool((np.abs(1.0 - np.linalg.eigvals(solved)) < 1.0).all())


def _unit(statistics: Statistics) -> float:
    """The mean |phi|^2 of the transitions in the sums."""
    return float(np.trace(statistics.gram.sum(axis=0)) / statistics.count.sum())


def unsupported(episodes: Episodes, statistics: Statistics) -> float:
    """The discounted probability that the policy comes to a state and action without data.

    If densities are those of the policy, everything ends once: the sum of density times the
    probability of an end is 1. What is missing leads to where there are no data.
    """
    densities = solve(episodes, statistics, LEAST_RIDGE).densities()
    missing = abs(1.0 - float(densities @ episodes.ending))
    return missing if missing > NEGLIGIBLE else 0.0
