"""Fitted Q evaluation: the values of a policy by regression, repeated until nothing changes.

Every repetition regresses r + gamma Q(s', pi(s')) on phi(s, a), with the Q of the one before:

    theta <- (C + ridge I)^-1 sum phi(s, a) (r + gamma phi(s', pi(s'))'theta)

If this converges, its limit solves (A + ridge I) theta = b: it is the solution of LSTD. It
converges only if gamma (C + ridge I)^-1 sum phi phi'' has no eigenvalue on or outside the unit
circle, which nothing guarantees where the data come from another policy and the features are not
indicators of states. Where it does not converge, there is no estimate.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rblspi.core.types import Vector
from rblspi.model.statistics import Statistics
from rblspi.offline.episodes import Episodes
from rblspi.offline.influence import Estimate, estimate, unknown
from rblspi.offline.linear_values import LinearValues, solve, unit

#: repetitions stop when the weights change by less than this share of the largest
TOLERANCE = 1e-10
REPETITIONS = 20_000

DIVERGES = "the regressions do not converge: try another basis or a larger ridge"


def fit(statistics: Statistics, ridge: float) -> LinearValues | None:
    """Fit Q to the transitions in the sums; None if it does not converge."""
    weights = repeat(statistics, ridge)
    return None if weights is None else solve(statistics, ridge)._replace(weights=weights)


def repeat(statistics: Statistics, ridge: float) -> Vector | None:
    """Repeat the regression from Q = 0; the weights, or None if they do not converge."""
    n, k = statistics.features, statistics.weights
    right = -statistics.cross  # becomes [gamma sum phi phi'', sum phi r] for every action
    right[:, :, -1] *= -1.0
    for a, gram in enumerate(statistics.gram):
        right[a, :, a * n : (a + 1) * n] += gram
    diagonal = ridge * unit(statistics) * np.eye(n)
    factors = [cho_factor(gram + diagonal) for gram in statistics.gram]
    solved = np.concatenate([cho_solve(f, side) for f, side in zip(factors, right, strict=True)])
    forward, target = solved[:, :k], solved[:, k]
    weights = np.zeros(k)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(REPETITIONS):
            before, weights = weights, target + forward @ weights
            largest = np.abs(weights).max()
            if not np.isfinite(largest):
                return None
            if np.abs(weights - before).max() <= TOLERANCE * largest:
                return weights
    return None


def fitted_q_evaluation(
    episodes: Episodes, statistics: Statistics, ridge: float, confidence: float
) -> Estimate:
    """The mean value of the first states, from the sums over all transitions."""
    model = fit(statistics, ridge)
    if model is None:
        return unknown("fitted Q evaluation", DIVERGES)
    return estimate(
        *("fitted Q evaluation", model.value(episodes), model.influences(episodes), confidence),
        weights=model.densities(episodes),
        unit="transitions",
    )
