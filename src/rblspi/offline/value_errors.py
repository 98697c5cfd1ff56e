"""Action values of a policy with the errors that an interval has to contain.

`BLSTD` gives the mean and the posterior. Two things that a posterior over the weights does not know
are added. Its noise is the same in every transition and independent; where the weights vary more
from episode to episode than that, the posterior is widened by one factor for all values. And the
basis may be unable to represent the values; the median difference from finer versions of the basis,
as a root mean square over the data, is taken for the standard deviation of that error. (The largest
difference made intervals up to seventy times too wide: one of several fits may go astray.)

The mean is that of the prior by the evidence, the standard deviations are those of a wide prior.
The evidence supposes that states which were never visited are like those which were, and an agent
avoids bad states: where the data say nothing, the value may be anything that the rewards allow.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from scipy.linalg import cho_solve

from rblspi.core.types import Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.offline.blstd import BLSTD, finer_fits
from rblspi.policies.given import PolicyFunction

#: 1 - discount, at the least: a reward lasts for a thousand steps
LEAST = 1e-3
#: states in which the errors are looked at
STATES = 500


class ValueErrors(NamedTuple):
    """What `LinearPolicy` needs to state intervals."""

    posterior: Posterior
    basis_std: float


def evaluate_values(
    log: Transitions,
    policy: PolicyFunction,
    basis: BasisLike,
    actions: int,
    discount: float,
    space: gym.Space[Any] | None = None,
) -> ValueErrors:
    """Evaluate a policy afresh on some transitions."""
    blstd = BLSTD(basis, actions, discount=discount, observation_space=space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        blstd.fit(log, policy)
    places = np.linspace(0, log.size - 1, min(STATES, log.size)).astype(np.int64)
    states = log.observations[places]
    squares = [
        np.square(other.predict(states) - blstd.predict(states))
        for other in finer_fits(blstd, [log])
    ]
    basis_std = math.sqrt(np.median(squares, axis=0).mean()) if squares else 0.0
    factor = _widening(blstd, log, states)
    wide = _with_wide_prior(blstd, _value_range(log, discount))
    posterior = replace(
        wide,
        mean=blstd.weights_ if squares else wide.mean,  # a table shares nothing between states
        noise_precision=wide.noise_precision / factor,
        prior_precision=wide.prior_precision / factor,
    )
    return ValueErrors(posterior, basis_std)


def _with_wide_prior(blstd: BLSTD, value_range: float) -> Posterior:
    """The posterior with weights that may be as far apart as values, if that is further."""
    alpha, beta = blstd.posterior_.prior_precision, blstd.posterior_.noise_precision
    if value_range > 0.0:
        alpha = min(alpha, 12.0 / value_range**2)  # the variance of a uniform distribution
    sums, constant = blstd._sums, blstd.posterior_.flat
    return Posterior.by_evidence(
        sums.statistics, sums.td_errors, constant, alpha, beta, blstd.ridge
    )


def _value_range(log: Transitions, discount: float) -> float:
    """Largest less smallest sum of discounted rewards, if all are among those that were seen.

    A reward that is seen only where episodes terminate comes at most once.
    """
    lasting = log.rewards[~log.terminated] / max(1.0 - discount, LEAST)
    possible = np.append(lasting, log.rewards[log.terminated])
    return float(possible.max() - possible.min())


def _widening(blstd: BLSTD, log: Transitions, states: Matrix) -> float:
    """How much larger the variance between episodes is than that of the posterior, at least 1.

    To first order, an episode changes the weights by K g, where K = beta S A'C^-1 and g is the sum
    of phi(s, a) delta over the episode. The variances of values by sum K g g'K' and by S are
    compared, both as means over states and actions.
    """
    x, actions = blstd.features_(log.observations), blstd.statistics_.actions
    deltas = blstd.td_errors(log)
    episodes = np.cumsum(log.starts()) - 1
    sums = np.zeros((episodes[-1] + 1, actions, x.shape[1]))
    np.add.at(sums, (episodes, log.actions), x * deltas[:, None])
    posterior = blstd.posterior_
    whitened = [
        cho_solve((factor, False), sums[:, a].T) for a, factor in enumerate(posterior.gram_factor)
    ]
    changes = cho_solve((posterior.factor, False), blstd.statistics_.drift.T @ np.vstack(whitened))
    rows = blstd.features_(states)
    blocks = changes.reshape(actions, x.shape[1], -1)
    sampling = np.mean([np.square(rows @ block).sum(axis=1) for block in blocks])
    stated = np.square(posterior.predict(rows)[1]).mean()
    return max(1.0, float(sampling / stated)) if stated > 0.0 else 1.0
