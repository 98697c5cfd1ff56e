"""Action values of a policy in a table, by models of the environment that are drawn given a log.

A posterior that is linear in the noise of the transitions does not know how much it matters that a
few visits have not shown everything: whether a policy ever leaves some states, for instance. In a
table that can be asked. In every drawn model, an action in a state leads on as one of its logged
transitions did, with random weights (the Bayesian bootstrap: exponential weights, normalised), and
with a small weight to any state of the space, with any reward of the log. What was never tried is
worth anything that the rewards allow. The values of a policy in a model are exact,

    V = (I - gamma P)^-1 r,      Q(s, a) = r(s, a) + gamma sum_s' P(s' | s, a) V(s')

and their mean and standard deviation over models are those of what the log leaves open.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import spsolve

from rblspi.core.types import Array, Integers, Mask, Vector
from rblspi.data.transitions import Transitions

#: models that are drawn: their standard deviation is known to 7%
MODELS = 100
#: what an outcome that was not seen is worth, in visits: the shape of its gamma-distributed weight
UNSEEN = 0.05


def drawn_values(
    log: Transitions,
    chosen: Integers,
    actions: int,
    discount: float,
    limits: tuple[float, float],
    models: int = MODELS,
    seed: int = 0,
) -> Array:
    """Action values in models that are drawn given a log, shape (models, actions, states).

    Parameters
    ----------
    log : Transitions
        Its observations are states, counted from 0.
    chosen : ndarray of int, shape (states,)
        The policy's action in every state.
    limits : tuple of float
        The least and the greatest value that the rewards allow.
    """
    rng, cells = np.random.default_rng(seed), actions * len(chosen)
    rows = log.actions * len(chosen) + log.observations
    tried = np.bincount(rows, minlength=cells) > 0
    everywhere = np.append(rows, np.arange(cells))  # the last ones are what was not seen
    going = np.append(~log.terminated, np.ones(cells, bool))
    final = _final(log, len(chosen))
    discounts = np.full(len(everywhere), discount)
    discounts[: log.size] = log.discounts(discount)
    values = np.empty((models, cells))
    for m in range(models):
        to = rng.integers(len(chosen), size=cells)
        going[log.size :] = ~final[to]
        weights = np.append(
            rng.standard_exponential(log.size),
            np.where(tried, rng.standard_gamma(UNSEEN, cells), 1.0),
        )
        weights /= np.bincount(everywhere, weights)[everywhere]
        rewards = np.append(log.rewards, rng.choice(log.rewards, cells))
        unknown = ~tried[everywhere]
        rewards[unknown] = rng.uniform(*limits, int(unknown.sum()))
        after = np.append(log.next_observations, to)
        on = np.where(going & ~unknown, discounts, 0.0)
        values[m] = _values(everywhere, weights, rewards, after, on, chosen)
    return values.reshape(models, actions, -1)


def _values(
    rows: Integers, weights: Vector, rewards: Vector, after: Integers, on: Vector, chosen: Integers
) -> Vector:
    """Exact action values of one model, given as weighted transitions of states and actions."""
    states = np.arange(len(chosen))
    mean = np.bincount(rows, weights * rewards).astype(np.float64)
    used = np.flatnonzero((rows == (chosen * len(states) + states)[rows % len(states)]) & (on > 0))
    shape = (len(states), len(states))
    entries = (weights[used] * on[used], (rows[used] % len(states), after[used]))
    system = identity(len(states), format="csc") - csc_matrix(entries, shape)
    state_values = spsolve(system, mean[chosen * len(states) + states])
    following = np.where(on > 0, on * state_values[np.where(on > 0, after, 0)], 0.0)
    values: Vector = mean + np.bincount(rows, weights * following)
    return values


def _final(log: Transitions, states: int) -> Mask:
    """States in which every episode that came there has ended."""
    ended: Mask = np.bincount(log.next_observations[log.terminated], minlength=states) > 0
    passed = np.bincount(log.next_observations[~log.terminated], minlength=states) > 0
    left = np.bincount(log.observations, minlength=states) > 0
    return ended & ~passed & ~left
