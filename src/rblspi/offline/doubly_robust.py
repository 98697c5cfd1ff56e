"""Doubly robust estimates: a model's value, corrected by weighted TD errors of the log.

With Q from fitted Q evaluation and V(s) = Q(s, pi(s)), the estimate of an episode is

    V(s_0) + sum_t g_t (r_t + gamma V(s_{t+1}) - Q(s_t, a_t))

Step by step (Jiang and Li, 2016), g_t = gamma^t rho_t with the weights rho_t of importance
sampling, where t is the time if steps take different ones, and 0 after the last step whose weights
can be used. Without propensities, in the marginalised form (Kallus and Uehara, 2020), g is the
density h'phi(s, a) of `linear_values`. Either has the right mean if g or Q is right. Q and h are
fitted to one half of the episodes and used in the other, and the other way round; on the
transitions that Q is fitted to, the marginalised correction would be 0.

What the correction leaves of the model, u = mean of phi(s_0) - sum_t g_t (phi_t - gamma phi_{t+1}),
makes the estimate depend on the episodes that Q is fitted to. Their influences through u are part
of the interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rblspi.core.types import Mask, Vector
from rblspi.offline.episodes import Episodes
from rblspi.offline.importance_sampling import weights_of
from rblspi.offline.influence import Estimate, effective_size, estimate, unknown
from rblspi.offline.linear_values import (
    DIVERGES,
    LinearValues,
    regressions_converge,
    solve,
    sums,
)


class Half(NamedTuple):
    """What is fitted to one half of the episodes, for the other half."""

    model: LinearValues
    densities: Vector  # h'phi(s, a), (N,)
    there: Mask  # the episodes of the other half (E,)


def cross_fitted(episodes: Episodes, ridge: float) -> list[Half] | str:
    """Q and h from each half of the episodes; or why there are none.

    The ridge of h is what one transition adds to the sums, so that a state that is in the other
    half only does not count as infinitely more frequent.
    """
    if episodes.count < 2:
        return "needs at least two episodes, one to fit Q and one to correct it"
    halves, half = [], episodes.half()
    for there in (half, ~half):
        statistics = sums(episodes, np.where(there[episodes.episode], 0.0, 1.0))
        if not regressions_converge(statistics, ridge):
            return DIVERGES
        densities = (~there).sum() * solve(episodes, statistics, 1.0).densities()
        halves.append(Half(solve(episodes, statistics, ridge), densities, there))
    return halves


def doubly_robust(
    episodes: Episodes, halves: list[Half] | str, ratios: Vector, confidence: float
) -> Estimate:
    """The step-wise doubly robust estimate."""
    weights = weights_of(episodes, ratios)
    steps = np.arange(episodes.log.size) - episodes.starts[episodes.episode]
    g, used = np.zeros(episodes.log.size), steps < weights.horizon
    rho = weights.weights[steps[used], episodes.episode[used]]
    g[used] = episodes.problem.discount ** episodes.times[used] * rho
    found = _estimate("doubly robust", episodes, halves, [g, g], confidence)
    found = found._replace(size=episodes.count, effective=effective_size(weights.last))
    note = found.note or weights.note("are the model's")
    return found._replace(unit="episodes", note=note)


def marginalised_doubly_robust(
    episodes: Episodes, halves: list[Half] | str, confidence: float
) -> Estimate:
    """The doubly robust estimate with densities that are linear in the features."""
    corrections = [] if isinstance(halves, str) else [half.densities for half in halves]
    return _estimate("marginalised doubly robust", episodes, halves, corrections, confidence)


def _estimate(
    method: str,
    episodes: Episodes,
    halves: list[Half] | str,
    corrections: list[Vector],
    confidence: float,
) -> Estimate:
    """The estimate with the TD errors of each half weighted by its corrections."""
    if isinstance(halves, str):
        return unknown(method, halves)
    terms, through = np.empty(episodes.count), np.zeros(episodes.count)
    densities = np.zeros(episodes.log.size)
    for half, g in zip(halves, corrections, strict=True):
        terms[half.there] = corrected(half.model, g)[half.there]
        rows = half.there[episodes.episode]
        v = half.model.densities(left_to_model(episodes, half.there, g))
        densities[rows] = g[rows]
        effects = np.where(rows, 0.0, v * half.model.errors())
        through += np.bincount(episodes.episode, effects)
    influences = (terms - terms.mean()) / episodes.count + through
    return estimate(method, float(terms.mean()), influences, confidence, densities)


def corrected(model: LinearValues, g: Vector) -> Vector:
    """The doubly robust estimate of every episode, given a Q that does not depend on it."""
    episodes, first = model.episodes, model.of_first_states()
    correction = np.bincount(episodes.episode, g * model.errors())
    terms: Vector = correction + (first if episodes.sampled else first.mean())
    return terms


def left_to_model(episodes: Episodes, there: Mask, g: Vector) -> Vector:
    """The u of the episodes ``there``, times their share of all episodes, shape (k,)."""
    chosen = there if episodes.sampled else np.ones(len(episodes.firsts))
    weights = np.where(there[episodes.episode], g, 0.0) / episodes.count
    going_on = np.where(episodes.log.terminated, 0.0, episodes.discounts) * weights
    first = episodes.first.sum(chosen / chosen.sum() * there.mean())
    return first - episodes.now.sum(weights) + episodes.after.sum(going_on)
