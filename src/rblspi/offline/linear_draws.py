"""Draws of value functions around weights that were found in another way.

An agent's weights, or those of fitted Q iteration, come without a posterior for the policy that is
greedy in them. `BLSTD` evaluates that policy on transitions, and its posterior has the noise. Three
errors are added.

- Its noise is independent. Where the weights vary more from episode to episode than that, the
  posterior is widened by one factor for all values.
- The evidence supposes that states which were never visited are like those which were, and an
  agent avoids bad states: weights may be as far apart as the values that the rewards allow.
- Where the evaluation and the weights disagree, one of them is wrong: the difference is one more
  direction in which draws vary.

The values of a table are drawn by `table_values` instead. What the basis cannot represent remains
unknown.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_solve

from rblspi.core.types import Array, Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import OneHot
from rblspi.model.evidence import posterior_by_evidence
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.offline.lstd import BLSTD
from rblspi.offline.problem import are_states
from rblspi.offline.table_values import Places, table_values
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import DRAWS, Draws

#: 1 - discount, at the least: a reward lasts for a thousand steps
LEAST = 1e-3
#: states in which the errors of least squares are looked at
STATES = 500


def draws_of_weights(log: Transitions, policy: LinearPolicy) -> Draws:
    """Draws around the weights of a policy, by transitions that any policy collected."""
    own, drawn = policy.weights_by_action, _evaluated(log, policy)
    apart = own - drawn.mean(axis=0)
    signs = np.where(np.arange(len(drawn)) % 2, 1.0, -1.0)[:, None, None]
    return Draws.around(drawn + signs * apart, _value_range(log, policy.discount) / 12.0**0.5)


def _evaluated(log: Transitions, policy: LinearPolicy) -> Array:
    """Draws of the weights of the policy's values, shape (B, actions, n)."""
    basis = policy.basis
    if isinstance(basis, OneHot) and (basis.joint or are_states(log.observations)):
        places, own = Places.of(log, policy.features), policy.weights_by_action
        chosen = np.zeros(own.shape)
        chosen[policy(places.seen), places.states] = 1.0
        weights, draws = table_values(places.log, own, policy.discount, policy=chosen)
        return weights + draws.deviations
    blstd = BLSTD(
        basis,
        policy.actions,
        discount=policy.discount,
        observation_space=policy.observation_space,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        blstd.fit(log, policy)
    states = log.observations[np.linspace(0, log.size - 1, min(STATES, log.size)).astype(np.int64)]
    factor = _widening(blstd, log, states)
    posterior = _with_wide_prior(blstd, _value_range(log, policy.discount))
    posterior = replace(
        posterior, mean=blstd.weights_, noise_precision=posterior.noise_precision / factor
    )
    sampled = posterior.sample(np.random.default_rng(0), DRAWS)
    return sampled.reshape(DRAWS, policy.actions, -1)


def _with_wide_prior(blstd: BLSTD, value_range: float) -> Posterior:
    """The posterior with weights that may be as far apart as values, if that is further."""
    alpha, beta = blstd.posterior_.prior_precision, blstd.posterior_.noise_precision
    if value_range > 0.0:
        alpha = min(alpha, 12.0 / value_range**2)  # the variance of a uniform distribution
    sums, constant = blstd._sums, blstd.posterior_.flat
    return posterior_by_evidence(
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
