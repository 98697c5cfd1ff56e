"""Action values of a policy with the errors that an interval has to contain.

`BLSTD` gives the mean and the posterior. There are things that a posterior over the weights does
not know.

- Its noise is independent; where the weights vary more from episode to episode than that, the
  posterior is widened by one factor for all values. In a table, the noise is that of every state
  and action.
- The basis may be unable to represent the values. Over continuous states there is a second
  estimate without any basis, see `local_model`, with which intervals are made. For a basis over
  discrete states, the root mean square of its difference from a table is taken for the standard
  deviation of its error.
- The evidence supposes that states which were never visited are like those which were, and an
  agent avoids bad states: the standard deviations are those of a wide prior. Where the data say
  nothing, the value may be anything that the rewards allow.
- Least squares extrapolate. No value is below or above what the rewards allow.
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
from rblspi.features import BasisLike, OneHot, as_basis
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.model.statistics import Statistics
from rblspi.offline.blstd import BLSTD, finer_fits
from rblspi.offline.fitted_q import attainable
from rblspi.offline.local_model import SecondEstimate
from rblspi.offline.observed_space import are_states
from rblspi.offline.table_models import drawn_values
from rblspi.policies.given import PolicyFunction

#: 1 - discount, at the least: a reward lasts for a thousand steps
LEAST = 1e-3
#: states in which the errors are looked at
STATES = 500
#: visits that the prior of a state's noise is worth
PRIOR_VISITS = 3.0


class ValueErrors(NamedTuple):
    """What `LinearPolicy` needs to state intervals."""

    posterior: Posterior
    basis_std: float
    second: SecondEstimate | None
    limits: tuple[float, float]  # the least and the greatest value that the rewards allow


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
    wide, limits = _value_range(log, discount), attainable([log], discount, math.inf)
    if isinstance(as_basis(basis), OneHot) and are_states(log.observations):
        posterior = _posterior_of_table(blstd, log)
        posterior = _widened(posterior, _widening(blstd, log, states))
        return ValueErrors(_with_models(posterior, blstd, log), 0.0, None, limits)
    posterior = _widened(_with_wide_prior(blstd, wide), _widening(blstd, log, states))
    posterior = replace(posterior, mean=blstd.weights_)
    if are_states(log.observations):
        others = [other.predict(states) for other in finer_fits(blstd, [log])]
        apart = [float(np.square(other - blstd.predict(states)).mean()) for other in others]
        return ValueErrors(posterior, math.sqrt(max(apart, default=0.0)), None, limits)
    second = SecondEstimate.of(log, policy, blstd)
    return ValueErrors(posterior, math.hypot(second.apart, second.error), second, limits)


def _widened(posterior: Posterior, factor: float) -> Posterior:
    return replace(
        posterior,
        noise_precision=posterior.noise_precision / factor,
        prior_precision=posterior.prior_precision / factor,
    )


def _noise_of_table(blstd: BLSTD, log: Transitions) -> Statistics:
    """The sums with a noise of its own for every state and action, instead of one for all.

    The sums of noise in b have the covariance sum delta^2 x x' rather than C / beta. The variance
    of a state and action that was visited n times is only known from these visits. With a scaled
    inverse chi-squared prior that is worth 3 visits (with fewer, Student's distribution of a mean
    over one visit has no variance) and whose scale is the mean variance v of all states and
    actions, whatever their number of visits, the mean over n visits has the variance
    (sum delta^2 + 3 v) / n^2.
    """
    statistics, beta = blstd.statistics_, blstd.posterior_.noise_precision
    x = blstd.features_(log.observations)
    deltas = np.square(blstd.td_errors(log))
    squares = np.stack(
        [deltas[log.actions == a] @ x[log.actions == a] for a in range(len(statistics.gram))]
    )
    visits = np.diagonal(statistics.gram, axis1=1, axis2=2)
    often = visits >= 2
    if not often.any():
        return statistics
    typical = float((squares[often] / (visits[often] - 1.0)).mean())
    noise = beta * np.where(visits > 0, squares + PRIOR_VISITS * typical, 0.0)
    return statistics._replace(gram=np.stack([np.diag(row) for row in noise]))


def _posterior_of_table(blstd: BLSTD, log: Transitions) -> Posterior:
    """The posterior of a table whose prior is that of any value which the rewards allow.

    What was never tried has the mean and the variance of a uniform distribution from the least to
    the greatest value. Least squares would give it the level of what was tried, of which an agent
    has chosen the best.
    """
    least, most = attainable([log], blstd.discount)
    posterior = blstd.posterior_
    alpha = min(posterior.prior_precision, 12.0 / (most - least) ** 2) if most > least else 1.0
    return Posterior.from_statistics(
        _noise_of_table(blstd, log),
        alpha,
        posterior.noise_precision,
        blstd.ridge,
        np.full(len(posterior.mean), 0.5 * (least + most)),
    )


def _with_models(posterior: Posterior, blstd: BLSTD, log: Transitions) -> Posterior:
    """The posterior with the means of drawn models, and with their deviations if these are larger.

    A diagonal matrix D raises the deviations: its factor R becomes R D^-1, so that S becomes D S D.
    """
    observations = np.concatenate([log.observations, log.next_observations])
    places = blstd.features_(observations).argmax(axis=1)
    size = blstd.features_.size
    table = replace(log, observations=places[: log.size], next_observations=places[log.size :])
    assert blstd.policy_ is not None
    chosen = np.zeros(size, np.int64)
    chosen[places] = np.asarray(blstd.policy_(observations))
    limits = attainable([log], blstd.discount)
    drawn = drawn_values(table, chosen, posterior.actions, blstd.discount, limits)
    stated = posterior.predict(np.eye(size))[1].T.ravel()
    larger = np.maximum(drawn.std(axis=0).ravel() / stated, 1.0)
    mean = drawn.mean(axis=0).ravel()
    return replace(posterior, mean=mean, factor=posterior.factor / larger)


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
    lasting = log.reward_rates(discount)[~log.terminated] / max(1.0 - discount, LEAST)
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
