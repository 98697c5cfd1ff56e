"""What the actions of a policy are worth, from transitions: its posterior over value functions.

`BLSTD` gives the mean and the posterior of the weights. Such a posterior leaves out some errors.

- Its noise is independent. Where the weights vary more from episode to episode than that, the
  posterior is widened by one factor for all values. In a table, the noise is that of every state
  and action.
- The basis may be unable to represent the values. Over continuous states there is a second
  estimate without any basis. For a basis over discrete states, the root mean square of its
  difference from a table is taken for the standard deviation of its error.
- The evidence supposes that states which were never visited are like those which were, and an
  agent avoids bad states: the standard deviations are those of a wide prior. Where the data say
  nothing, the value may be anything that the rewards allow.
- Least squares extrapolate. No value is below or above what the rewards allow.
- It is linear in the noise of the transitions, and does not know how much it matters that a few
  visits have not shown everything. In a table, models of the environment that are drawn given the
  log tell.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import spsolve

from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import Basis, OneHot
from rblspi.model.evidence import posterior_by_evidence
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.model.statistics import Statistics
from rblspi.offline.fitted_q import attainable
from rblspi.offline.local_model import Followed, LocalModel, models_of_halves, usual_distance
from rblspi.offline.lstd import BLSTD, finer_fits
from rblspi.offline.paths import REST
from rblspi.offline.problem import are_states
from rblspi.policies.given import PolicyFunction
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import ValuePosterior

#: 1 - discount, at the least: a reward lasts for a thousand steps
LEAST = 1e-3
#: states in which the errors of least squares are looked at, and the difference of two models
STATES, COMPARED = 500, 100
#: visits that the prior of a state's noise is worth
PRIOR_VISITS = 3.0
#: models of a table that are drawn: their standard deviation is known to 7%
MODELS = 100
#: what an outcome that was not seen is worth, in visits: the shape of its gamma-distributed weight
UNSEEN = 0.05


def value_posterior(
    policy: LinearPolicy, transitions: Transitions, basis: Basis | None = None
) -> ValuePosterior:
    """Evaluate a policy afresh on some transitions.

    Parameters
    ----------
    policy : LinearPolicy
    transitions : Transitions
        Collected by any policy.
    basis : Basis, optional
        In which the values are estimated; by default the basis of the policy.
    """
    log, own = transitions, policy.basis if basis is None else basis
    blstd = BLSTD(
        own,
        policy.actions,
        discount=policy.discount,
        observation_space=policy.observation_space,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)
        blstd.fit(log, policy)
    states = log.observations[_spread(0, log.size, STATES)]
    limits, widening = attainable([log], policy.discount, math.inf), _widening(blstd, log, states)
    if isinstance(own, OneHot) and are_states(log.observations):
        posterior = _with_models(_widened(_posterior_of_table(blstd, log), widening), blstd, log)
        return ValuePosterior(policy, posterior, basis, limits=limits)
    posterior = _widened(_with_wide_prior(blstd, _value_range(log, policy.discount)), widening)
    posterior = replace(posterior, mean=blstd.weights_)
    if are_states(log.observations):
        others = [other.predict(states) for other in finer_fits(blstd, [log])]
        apart = [float(np.square(other - blstd.predict(states)).mean()) for other in others]
        basis_std = math.sqrt(max(apart, default=0.0))
        return ValuePosterior(policy, posterior, basis, basis_std, limits=limits)
    second = SecondEstimate.of(log, policy, blstd)
    return ValuePosterior(
        policy, posterior, basis, math.hypot(second.apart, second.error), second, limits
    )


def _spread(start: int, end: int, most: int) -> Integers:
    """Some rows from ``start`` to before ``end``, evenly spaced."""
    return np.linspace(start, end - 1, min(most, end - start)).astype(np.int64)


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


# The second estimate ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SecondEstimate:
    """Action values of a policy by two local models."""

    models: tuple[LocalModel, LocalModel]
    policy: PolicyFunction
    first: BLSTD  # what knows the rest of a long path
    limit: float  # the distance at which a path leaves the data
    bounds: tuple[float, float]  # the least and the greatest value beyond the data
    error: float = 0.0  # the standard error
    apart: float = 0.0  # the root mean square difference of their mean from the first estimate

    @classmethod
    def of(cls, log: Transitions, policy: PolicyFunction, first: BLSTD) -> SecondEstimate:
        """The models of every other episode; their difference in later states of the log.

        An agent's later states are those to which its present policy leads. An action beyond the
        data brings any reward of the log, and leads to where values are like those in these states.
        """
        discount = first.discount
        models = models_of_halves(log, discount)
        limit, allowed = usual_distance(log, models), attainable([log], discount)
        both = cls(models, policy, first, limit, allowed)
        later = later_states(log)
        one, other = both.by_half(later)
        known = np.isfinite(one - other)
        if not known.any():
            return both
        apart = _root_mean_square((0.5 * (one + other) - first.predict(later))[known])
        # The rest of a long path is that of the first estimate, and as wrong as that may be.
        error = math.hypot(0.5 * _root_mean_square((one - other)[known]), REST * apart)
        values = np.concatenate([one[np.isfinite(one)], other[np.isfinite(other)]])
        least, most = (float(end(log.rewards) + discount * end(values)) for end in (np.min, np.max))
        return replace(both, bounds=(least, most), error=error, apart=apart)

    def interval(self, observations: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """Between which values both models and all that is possible beyond the data are.

        The shapes are (N, actions).
        """
        ends = [
            (returns, before + beyond * self.bounds[0], before + beyond * self.bounds[1])
            for returns, before, beyond in self._follow(observations)
        ]
        return np.fmin.reduce([*ends[0], *ends[1]]), np.fmax.reduce([*ends[0], *ends[1]])

    def by_half(self, observations: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """The action values of either model, shape (N, actions) each."""
        one, other = (followed.returns for followed in self._follow(observations))
        return one, other

    def _follow(self, observations: NDArray[Any]) -> Iterator[Followed]:
        """Every action and then the policy, in either model: arrays of shape (N, actions)."""
        actions = self.first.statistics_.actions
        rows = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        states, every = np.repeat(rows, actions, axis=0), np.tile(np.arange(actions), len(rows))
        for model in self.models:
            found = model.follow(states, every, self.policy, self.first, self.limit)
            yield Followed._make(column.reshape(-1, actions) for column in found)


def _root_mean_square(numbers: Vector) -> float:
    return math.sqrt(np.square(numbers).mean())


def later_states(log: Transitions) -> NDArray[Any]:
    """Some observations of the later half of the log."""
    return log.observations[_spread(log.size // 2, log.size, COMPARED)]


# Models of a table --------------------------------------------------------------------------------


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

    In every model, an action in a state leads on as one of its logged transitions did, with random
    weights (the Bayesian bootstrap: exponential weights, normalised), and with a small weight to
    any state of the space, with any reward of the log. What was never tried is worth anything that
    the rewards allow. The values of a policy in a model are exact,

        V = (I - gamma P)^-1 r,      Q(s, a) = r(s, a) + gamma sum_s' P(s' | s, a) V(s')

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
