"""The values of a planner whose states are a table: an ensemble of sparse models.

A model has the outcomes of one half of the transitions as often as they are in it. Every state and
action has in addition a small random weight of what was not seen: the outcome of some transition of
the log, with its reward. What was never tried in a half has nothing else. An outcome leads on in
the same model. A value in its place would fix the level of all values, in every model the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Integers, Mask, Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import Features
from rblspi.offline import ensemble
from rblspi.offline.ensemble import Brought, Member, unmoved
from rblspi.offline.kernel_model import GridModel
from rblspi.policies.values import AT_A_TIME, Draws

#: error of values, in units of the range that rewards allow: all models start at the same values,
#: and an iteration that ended sooner would hide how much they differ
PRECISION = 1e-6
#: what an outcome that was not seen is worth, in visits: the shape of its gamma-distributed weight
UNSEEN = 0.05


class Places(NamedTuple):
    """The states of a table that a log has seen."""

    log: Transitions  # whose observations are states, counted from 0
    seen: NDArray[Any]  # the different observations  (m, ...)
    states: Integers  # their numbers                 (m,)

    @classmethod
    def of(cls, log: Transitions, features: Features) -> Places:
        """By features that indicate one state each."""
        both = np.concatenate([log.observations, log.next_observations])
        seen, rows = np.unique(both, axis=0, return_inverse=True)
        size = max(1, AT_A_TIME // features.size)
        parts = range(0, len(seen), size)
        states = np.concatenate([features(seen[i : i + size]).argmax(axis=1) for i in parts])
        now, after = np.split(states[rows.ravel()], 2)
        return cls(replace(log, observations=now, next_observations=after), seen, states)


def table_values(
    log: Transitions,
    start: Matrix,
    discount: float,
    allowed: Mask | None = None,
    policy: Matrix | None = None,
) -> tuple[Matrix, Draws]:
    """The values of all states by an ensemble of models, of the best policy or of a given one.

    The best policy does not choose an action that was never tried in a state, unless none was.

    Parameters
    ----------
    log : Transitions
        Its observations are states, counted from 0.
    start : ndarray, shape (actions, states)
        Values to start with.
    discount : float
    allowed : ndarray of bool, shape (actions, states), optional
    policy : ndarray, shape (actions, states), optional
        Values in which a given policy is greedy among the allowed actions.

    Returns
    -------
    weights, draws
        The mean, shape (actions, states), and the draws around it.
    """
    rng, precision = np.random.default_rng(0), ensemble.tolerance(log, discount, PRECISION)
    allowed = np.ones(start.shape, np.bool_) if allowed is None else allowed
    visits = np.zeros(start.shape)
    np.add.at(visits, (log.actions, log.observations), 1.0)
    tried = visits > 0.0
    chosen = allowed & tried if policy is None else allowed
    chosen |= ~chosen.any(axis=0) & allowed
    chosen |= ~chosen.any(axis=0)

    shares = 1.0 / visits[log.actions, log.observations]  # all that was tried counts the same
    shares /= shares.sum()

    def member(rows: Integers) -> Member:
        unseen = _unseen(log, rng.choice(log.size, start.size, p=shares), rng)
        model = _model(log.select(rows), unseen, start.shape[1], discount, rng)
        return Member(model, np.ascontiguousarray(chosen.T), unmoved, unmoved)

    members = [member(rows) for rows in ensemble.halves(log, rng)]
    found = ensemble.evaluate(members, start, precision, policy)
    weights = found.draws.mean(axis=0)
    brought = Brought.of(log, weights[:, log.next_observations], discount, rng, shares)
    if policy is None:
        # Doubt, and not hope, is what an estimate owes to an action that was never tried.
        best = np.where(chosen, weights, -np.inf).max(axis=0) - brought.std
        weights = np.where(tried, weights, np.minimum(weights, best))
    return weights, Draws.around(found.draws, brought.std, found.common)


def _unseen(log: Transitions, rows: Integers, rng: np.random.Generator) -> Transitions:
    """Outcomes of some transitions, whose rewards vary also where those of the log do not."""
    found, size = log.select(rows), np.abs(log.rewards).max()
    if np.ptp(log.rewards) <= 1e-6 * size:
        noise = (size or 1.0) * rng.standard_normal(len(rows))
        found = replace(found, rewards=found.rewards + noise)
    return found


def _model(
    log: Transitions,
    unseen: Transitions,
    states: int,
    discount: float,
    rng: np.random.Generator,
) -> GridModel:
    """Rewards and outcomes as often as they are in the log, and one that is not, for every pair."""
    cells = unseen.size
    rows = log.actions * states + log.observations
    visits = np.bincount(rows, minlength=cells)
    weights = np.where(visits > 0, rng.standard_gamma(UNSEEN, cells), 1.0)
    total = visits + weights
    rewards = (np.bincount(rows, log.rewards, cells) + weights * unseen.rewards) / total
    after = np.append(log.next_observations, unseen.next_observations)
    going = [np.where(one.terminated, 0.0, one.discounts(discount)) for one in (log, unseen)]
    follows = np.append(rows, np.arange(cells)) * states + after
    entries, places = np.unique(follows, return_inverse=True)
    shares = np.bincount(places, np.append(going[0], weights * going[1]))
    pairs = entries // states
    starts = np.searchsorted(pairs, np.arange(cells + 1)).astype(np.int64)
    following = (entries % states).astype(np.int32)
    return GridModel(starts, following, shares / total[pairs], rewards)
