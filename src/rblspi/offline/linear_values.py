"""Values that are linear in the features, and how much every episode influences them.

The weights solve A theta = b with A = sum rho phi (phi - gamma phi')', b = sum rho phi r. Here phi'
belongs to s' and pi(s'), and rho is a weight of the transition, 1 unless it is said. The value of
the first states is v = z'theta, z their mean phi. With h such that A'h = z, to first order

    v - true value = sum rho (h'phi) delta,    delta = r + gamma phi''theta - phi'theta

plus the variation of the first states. Here h'phi is the density of (s, a) under the policy,
relative to the data, as far as the features can express it. The sum over the transitions of an
episode is its influence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from rblspi.core.types import Integers, Matrix, Vector
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, accumulate, empty
from rblspi.offline.accumulation import batch_rows, require_finite
from rblspi.offline.episodes import Episodes
from rblspi.offline.influence import Estimate

#: with this ridge, only what is not in the data at all counts as such, if it is not negligible
LEAST_RIDGE, NEGLIGIBLE = 1e-6, 1e-4


class LinearValues(NamedTuple):
    """Weights of values, relative to the centre of the episodes, and the system they solve."""

    weights: Vector
    drift: tuple[Matrix, Integers]  # LU factors of A, with any ridge

    def first_values(self, episodes: Episodes) -> Vector:
        """The values of the first states, not relative to anything."""
        values = episodes.linear(episodes.firsts, episodes.first_actions, self.weights)
        return episodes.centre + values

    def value(self, episodes: Episodes) -> float:
        """The mean value of the first states."""
        return float(self.first_values(episodes).mean())

    def errors(self, episodes: Episodes) -> Vector:
        """The TD error of every transition, shape (N,)."""
        log, discounts = episodes.log, episodes.discounts
        now = episodes.linear(log.observations, log.actions, self.weights)
        ahead = episodes.linear(log.next_observations, episodes.ahead, self.weights)
        errors: Vector = episodes.rewards + discounts * np.where(log.terminated, 0.0, ahead) - now
        return errors

    def densities(self, episodes: Episodes, z: Vector | None = None) -> Vector:
        """h'phi(s, a) of every transition; z is by default the mean phi of the first states."""
        if z is None:
            shares = np.full(len(episodes.firsts), 1.0 / len(episodes.firsts))
            z = episodes.weighted_features(episodes.firsts, episodes.first_actions, shares)
        h = lu_solve(self.drift, z, trans=1)
        return episodes.linear(episodes.log.observations, episodes.log.actions, h)

    def influences(self, episodes: Episodes, ratios: Vector | float = 1.0) -> Vector:
        """The influence of every segment on the mean value of the first states."""
        effects = ratios * self.densities(episodes) * self.errors(episodes)
        influences: Vector = np.bincount(episodes.segments, effects).astype(np.float64)
        if episodes.sampled:
            first = self.first_values(episodes)
            influences[episodes.segments[episodes.starts]] += (first - first.mean()) / len(first)
        return influences


def sums(episodes: Episodes, ratios: Vector) -> Statistics:
    """The sums A, b and C over all transitions, weighted by their ratios."""
    log, problem = episodes.log, episodes.problem
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


def solve(statistics: Statistics, ridge: float) -> LinearValues:
    """The weights that solve (A + ridge I) theta = b, those of LSTD.

    The ridge is a multiple of the mean |phi|^2, which is what one transition adds to the trace.
    """
    drift = lu_factor(statistics.drift + ridge * unit(statistics) * np.eye(statistics.weights))
    return LinearValues(lu_solve(drift, statistics.reward), drift)


def unit(statistics: Statistics) -> float:
    """The mean |phi|^2 of the transitions in the sums."""
    return float(np.trace(statistics.gram.sum(axis=0)) / statistics.count.sum())


def unsupported(episodes: Episodes, statistics: Statistics) -> float:
    """The discounted probability that the policy comes to a state and action without data.

    If densities are those of the policy, everything ends once: the sum of density times the
    probability of an end is 1. What is missing leads to where there are no data.
    """
    densities = solve(statistics, LEAST_RIDGE).densities(episodes)
    missing = abs(1.0 - float(densities @ episodes.ending))
    return missing if missing > NEGLIGIBLE else 0.0


def widened(estimate: Estimate, episodes: Episodes, missing: float) -> Estimate:
    """An estimate that also allows for what has no data, a share of the value that is missing.

    From there on, rewards may be the least or the greatest of the log forever.
    """
    if missing == 0.0 or not estimate.known:
        return estimate
    below, above = episodes.room
    note = f"{missing:.1%} of the value is of states and actions without data"
    return estimate._replace(
        low=estimate.low - missing * below,
        high=estimate.high + missing * above,
        note="; ".join(filter(None, [estimate.note, note])),
    )
