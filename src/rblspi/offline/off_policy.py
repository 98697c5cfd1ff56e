"""Off-policy evaluation: the value of a policy from the logs of another one, with an interval.

The value is the mean over first states: v = z'm, where m is the posterior mean of `BLSTD` and z
the mean of phi(s, pi(s)) over first states. Its error has four sources.

- Noise, by the posterior: z'S z. Weights about which the transitions say nothing keep the variance
  of the prior.
- Noise, by sampling: to first order, another log would change the value by the sum over all
  transitions of (h'phi(s, a)) delta, with the TD error delta and h = beta C^-1 A S z. The variance
  of that sum is estimated from its terms for each episode, or for each segment of a long episode.
  Unlike the posterior, this does not assume that the noise is the same everywhere.
- The basis, which no posterior over its weights knows of. Without ridge the residuals of least
  squares are orthogonal to the features, so no correction in the same features finds that error; in
  a finer basis, the correction equals the difference of the two estimates. The interval contains
  the estimates in all finer bases, see `rblspi.features.refinement`, and in continuous states the
  one without a basis, by following the policy in a `LocalModel`. An estimate that no sequence of
  logged rewards can reach is wrong by at least as much as it is out of reach, and is replaced by
  the nearest value that they can.
- What the policy does where there are no data. In the same model it may leave the data after some
  steps; the rest of its value, discounted, may be anything that the rewards allow.

Noise is the larger of the first two; the interval is as wide as all of them together, and ends
where values with the logged rewards do. If the data hardly contain what the policy does
(`rblspi.offline.support`), the value may be anything: the interval is then all that rewards like
the logged ones could add up to before an end that the log has not seen, and without bounds if no
reward but zero was logged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.offline.accumulation import Data, chunks_of, first_rows, require_finite
from rblspi.offline.fitted_q import attainable, conceivable
from rblspi.offline.influence import reach
from rblspi.offline.lstd import BLSTD, finer_fits
from rblspi.offline.problem import are_states
from rblspi.offline.support import BAD, followed, support_of, worst
from rblspi.policies.given import PolicyFunction


class PolicyValue(NamedTuple):
    """The value of this policy in its first states, in this basis, from these data."""

    mean: float
    std: float  # of all errors together
    posterior_std: float  # the standard error by the posterior
    sampling_std: float  # the standard error by the variation between episodes
    basis_error: float  # the largest difference from an estimate in a finer basis or in none
    beyond: float  # the discounted share of the policy's future that is beyond the data
    low: float  # from low to high: the interval for the requested confidence
    high: float
    segments: int  # episodes, or segments of long ones, from which `sampling_std` is estimated
    starts: int  # first states
    support: str  # "good", "doubtful" or "bad": whether the data contain what the policy does

    def __str__(self) -> str:
        """The value and its interval, and whether the data can tell."""
        value = f"{self.mean:.4g} (between {self.low:.4g} and {self.high:.4g})"
        doubt = "; the data cannot tell: they hardly contain what the policy does"
        return value + (doubt if self.support == BAD else "")


def policy_value(
    transitions: Data,
    policy: PolicyFunction,
    basis: BasisLike,
    actions: int,
    *,
    discount: float = 0.99,
    first_observations: ArrayLike | None = None,
    confidence: float = 0.95,
    prior_precision: float | None = None,
    noise_precision: float | None = None,
    ridge: float = 1e-6,
    observation_space: gym.Space[Any] | None = None,
) -> PolicyValue:
    """Estimate the discounted return of a policy from transitions of any other policy.

    Parameters
    ----------
    transitions : Transitions, tuple of their columns, or iterable of Transitions
        In the order in which they happened. They must contain every action that the policy takes.
    policy : callable
        Maps a batch of observations to actions.
    basis, actions, discount, prior_precision, noise_precision, ridge, observation_space
        As for `BLSTD`; ``actions`` is required.
    first_observations : array-like, optional
        First states of episodes. By default those of the data, and the interval then includes
        their variation.
    confidence : float
        The probability with which the interval is to contain the true value. It does if the
        basis is no further from the truth than from its finer versions. Where the transitions
        hardly contain what the policy does, ``support`` is "bad", and the interval is all that
        logged rewards could add up to.
    """
    confidence, chunks = check.fraction("confidence", confidence), chunks_of(transitions)
    blstd = BLSTD(
        basis,
        check.count("actions", actions),
        discount=discount,
        prior_precision=prior_precision,
        noise_precision=noise_precision,
        ridge=ridge,
        observation_space=observation_space,
    ).fit(chunks, policy)
    given = _first_observations(chunks) if first_observations is None else first_observations
    firsts = blstd.problem_.batch(given)
    chosen = blstd.problem_.chosen(policy(firsts), firsts)
    values = blstd.predict(firsts, chosen)
    mean = float(values.mean())
    # First states that come from the data are a sample too.
    of_starts = float(values.var()) / len(values) if first_observations is None else 0.0
    z = blstd.problem_.action_features(firsts, chosen).mean()
    of_posterior, segments = _noise(blstd, chunks, z)
    posterior_std = math.sqrt(of_posterior + of_starts)
    sampling_std = math.sqrt(float(np.var(segments)) * len(segments) + of_starts)

    others = [float(other.predict(firsts, chosen).mean()) for other in finer_fits(blstd, chunks)]
    rows = first_rows(chunks)
    paths = followed(policy, rows, discount, firsts)
    if not are_states(rows.observations):
        others.append(float(paths.returns.mean()))
    basis_error = max((abs(other - mean) for other in others), default=0.0)
    least, most = attainable(chunks, discount)
    out_of_reach = max(0.0, least - mean, mean - most)
    errors = reach(len(segments), confidence)
    half = errors * max(posterior_std, sampling_std) + max(basis_error, out_of_reach)
    half += paths.beyond * (most - least)
    require_finite(mean, half)
    low, high = max(mean - half, least), min(mean + half, most)
    mean = min(max(mean, least), most)
    word = worst(support_of(paths, rows))
    if word == BAD:
        low, high = conceivable(chunks, discount)
        half = max(high - mean, mean - low)
    return PolicyValue(
        mean=mean,
        std=half / errors,
        posterior_std=posterior_std,
        sampling_std=sampling_std,
        basis_error=basis_error,
        beyond=paths.beyond,
        low=low,
        high=high,
        segments=len(segments),
        starts=len(values),
        support=word,
    )


def _noise(blstd: BLSTD, chunks: Iterable[Transitions], z: Vector) -> tuple[float, list[float]]:
    """The variance z'S z, and the sum of (h'phi(s, a)) delta over every segment."""
    posterior, problem = blstd.posterior_, blstd.problem_
    beta_s_z = cho_solve((posterior.factor, False), z)
    sides = np.split(blstd.statistics_.drift @ beta_s_z, problem.blocks)
    factors = ((factor, False) for factor in posterior.gram_factor)
    h = np.concatenate([cho_solve(*pair) for pair in zip(factors, sides, strict=True)])
    segments: list[float] = []
    for chunk in chunks:
        shares = problem.action_features(chunk.observations, chunk.actions).dot(h)
        starts = np.flatnonzero(np.diff(chunk.segments(), prepend=-1))
        segments += np.add.reduceat(shares * blstd.td_errors(chunk), starts).tolist()
    return float(beta_s_z @ z) / posterior.noise_precision, segments


def _first_observations(chunks: Iterable[Transitions]) -> NDArray[Any]:
    """The first observation of every episode in the data."""
    found, before = [], None
    for chunk in chunks:
        found.append(chunk.observations[chunk.starts(before)])
        before = chunk.rows(chunk.size - 1, chunk.size)
    return np.concatenate(found)
