"""The value of a policy from logs of another one, with an interval.

The value is that of a first state, on average: v = z'm, where m is the posterior mean of `BLSTD`
and z the mean of phi(s, pi(s)) over first states. Two things make it uncertain.

- What the data leave open: the posterior's own z'S z, in which the weights that no transition
  tells anything about have the variance of the prior. The precision of the noise is taken from
  the temporal differences delta = r + gamma phi(s', pi(s'))'m - phi(s, a)'m.
- How the sums vary: to first order, another log would change the value by the sum over all
  transitions of (h'phi(s, a)) delta, h = beta C^-1 A S z. How much that sum varies is seen from
  its parts, the episodes, or the stretches of a long one. Unlike the posterior, this does not
  assume that the noise is the same everywhere.

The interval takes the larger of the two variances. What the features cannot represent is in
neither: an interval from a poor basis is too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve
from scipy.stats import t as student

from rblspi import check
from rblspi.estimators.blstd import BLSTD
from rblspi.estimators.passes import Data, chunks_of, rows_at_a_time
from rblspi.estimators.rules import Policy
from rblspi.features import BasisLike
from rblspi.transitions import Transitions

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: transitions after which a long episode counts as a new stretch
STRETCH = 100


class PolicyValue(NamedTuple):
    """The value of a policy in its first states.

    Attributes
    ----------
    mean, std : float
        The estimate and its standard error, the larger one of those below.
    posterior_std, sampling_std : float
        What the data leave open, and how the sums vary.
    low, high : float
        An interval that holds the true value with the probability that was asked for.
    stretches : int
        Episodes, or stretches of long ones, that `sampling_std` is drawn from.
    starts : int
        First states.
    """

    mean: float
    std: float
    posterior_std: float
    sampling_std: float
    low: float
    high: float
    stretches: int
    starts: int

    def __str__(self) -> str:
        """The value and its interval."""
        return f"{self.mean:.4g} (between {self.low:.4g} and {self.high:.4g})"


def policy_value(
    transitions: Data,
    policy: Policy,
    basis: BasisLike,
    actions: int,
    *,
    discount: float = 0.99,
    first_observations: ArrayLike | None = None,
    confidence: float = 0.95,
    prior_precision: float = 0.01,
    noise_precision: float | None = None,
    ridge: float = 1e-6,
    observation_space: gym.Space[Any] | None = None,
) -> PolicyValue:
    """Estimate what a policy earns, discounted, from transitions of any other policy.

    Parameters
    ----------
    transitions : Transitions, tuple of five columns, or iterable of Transitions
        In the order in which they happened. Every action that the policy takes has to occur.
    policy : callable
        From a batch of observations to actions.
    basis : Basis, callable or transformer
    actions : int
    discount : float
        gamma.
    first_observations : array-like, optional
        Where episodes start. Unless given, where those of the data do: how much these vary is
        then part of the interval.
    confidence : float
        Of the interval, between 0 and 1.
    prior_precision : float
        alpha: before the data, weights vary by alpha^-1/2. Values that are much larger than that
        are drawn towards 0.
    noise_precision : float, optional
        beta; the reciprocal of the mean squared temporal difference unless given.
    ridge : float
        C starts at this multiple of the identity.
    observation_space : gymnasium.Space, optional
        What the basis is built for; as for `BLSTD`.
    """
    confidence = check.fraction("confidence", confidence)
    blstd = BLSTD(
        basis,
        check.count("actions", actions),
        discount=discount,
        prior_precision=prior_precision,
        noise_precision=1.0 if noise_precision is None else noise_precision,
        ridge=ridge,
        observation_space=observation_space,
    ).fit(transitions, policy)
    chunks = chunks_of(transitions)
    if noise_precision is None:
        blstd.noise_precision = 1.0 / max(_noise(blstd, policy, chunks), 1e-12)
        blstd._conclude(blstd.statistics_)

    firsts = _first_observations(chunks) if first_observations is None else first_observations
    z = _action_features(blstd, np.asarray(firsts), policy)
    values = z @ blstd.weights_
    # Where episodes start is a matter of chance as well, unless it is given.
    starting = float(values.var()) / len(values) if first_observations is None else 0.0

    spread = cho_solve((blstd.posterior_.factor, False), z.mean(axis=0))  # beta S z
    influence = _influence(blstd, spread)
    parts = [part for chunk in chunks for part in _parts(blstd, policy, chunk, influence)]
    left_open = float(spread @ z.mean(axis=0)) / blstd.noise_precision
    variances = np.array([left_open, np.var(parts) * len(parts)]) + starting
    posterior_std, sampling_std = (float(std) for std in np.sqrt(variances))

    mean, std = float(values.mean()), max(posterior_std, sampling_std)
    half = std * float(student.ppf(0.5 + confidence / 2.0, max(len(parts) - 1, 1)))
    return PolicyValue(
        mean,
        std,
        posterior_std,
        sampling_std,
        mean - half,
        mean + half,
        len(parts),
        len(values),
    )


def _noise(blstd: BLSTD, policy: Policy, chunks: Iterable[Transitions]) -> float:
    """The mean squared temporal difference."""
    squares = [
        np.square(_differences(blstd, policy, piece)).sum()
        for chunk in chunks
        for piece in chunk.pieces(rows_at_a_time(blstd.features_))
    ]
    return float(sum(squares) / blstd.statistics_.count.sum())


def _influence(blstd: BLSTD, spread: Vector) -> Vector:
    """The vector h = C^-1 A (beta S z)."""
    sides = _blocks(blstd, blstd.statistics_.drift @ spread)
    factors = blstd.posterior_.gram_factor
    solved = [cho_solve((factor, False), side) for factor, side in zip(factors, sides, strict=True)]
    return np.concatenate(solved)


def _parts(blstd: BLSTD, policy: Policy, chunk: Transitions, influence: Vector) -> Iterator[float]:
    """The sum of (h'phi) delta over every stretch of a chunk."""
    effects = [
        _effects(blstd, policy, piece, influence)
        for piece in chunk.pieces(rows_at_a_time(blstd.features_))
    ]
    starts = _stretches(_is_first(chunk))
    yield from np.add.reduceat(np.concatenate(effects), starts).tolist()


def _effects(blstd: BLSTD, policy: Policy, piece: Transitions, influence: Vector) -> Vector:
    """The terms (h'phi(s, a)) delta, one for every transition."""
    x = blstd.features_(piece.observations)
    share = (x @ _blocks(blstd, influence).T)[np.arange(piece.size), piece.actions]
    effects: Vector = share * _differences(blstd, policy, piece)
    return effects


def _differences(blstd: BLSTD, policy: Policy, piece: Transitions) -> Vector:
    """delta, one for every transition."""
    now = blstd.predict(piece.observations, piece.actions)
    after = blstd.predict(piece.next_observations, policy(piece.next_observations))
    differences: Vector = (
        piece.rewards + blstd.discount * np.where(piece.terminated, 0.0, after) - now
    )
    return differences


def _blocks(blstd: BLSTD, vector: Vector) -> Matrix:
    return vector.reshape(blstd.actions or 1, -1)


def _action_features(blstd: BLSTD, observations: NDArray[Any], policy: Policy) -> Matrix:
    """Rows phi(s, pi(s)), shape (N, k)."""
    x = blstd.features_(observations)
    rows = np.zeros((len(x), blstd.actions or 1, x.shape[1]))
    rows[np.arange(len(x)), np.asarray(policy(observations))] = x
    return rows.reshape(len(x), -1)


def _is_first(chunk: Transitions, before: Transitions | None = None) -> NDArray[np.bool_]:
    """In which rows an episode begins: what was seen next is not what is seen now."""
    same = (chunk.next_observations[:-1] == chunk.observations[1:]).reshape(chunk.size - 1, -1)
    follows = same.all(axis=1) & ~chunk.terminated[:-1]
    first = np.ones(chunk.size, np.bool_)
    first[1:] = ~follows
    if before is not None:
        same = before.next_observations[-1] == chunk.observations[0]
        first[0] = bool(before.terminated[-1]) or not np.all(same)
    return first


def _first_observations(chunks: Iterable[Transitions]) -> NDArray[Any]:
    """The observations that episodes of the data begin with."""
    found, before = [], None
    for chunk in chunks:
        found.append(chunk.observations[_is_first(chunk, before)])
        before = chunk.rows(chunk.size - 1, chunk.size)
    return np.concatenate(found)


def _stretches(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where stretches begin: with every episode, and after so many transitions of one."""
    starts = np.flatnonzero(first)
    starts = np.union1d(starts, [0])
    place = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
    return np.flatnonzero(place % STRETCH == 0)
