"""The value of a policy from logs of another one, with an interval.

The value is that of a first state, on average: v = z'theta, where A theta = b are the sums of the
policy (`LSTD`) and z is the mean of phi(s, pi(s)) over first states. With h = A'^-1 z and the
temporal differences delta = r + gamma phi(s', pi(s'))'theta - phi(s, a)'theta,

    v - v_true  is nearly  sum over all transitions of (h'phi(s, a)) delta

as long as the features can represent the values. How much that sum varies is seen from how much
its parts vary from one episode to the next, or from one stretch of a long episode to the next:
nothing is assumed about the noise. What the features cannot represent is not in the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from rblspi import check
from rblspi.estimators.lstd import LSTD
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
        The estimate and its standard error.
    low, high : float
        An interval that holds the true value with the probability that was asked for.
    stretches : int
        Episodes, or stretches of long ones, that the standard error is drawn from.
    starts : int
        First states.
    """

    mean: float
    std: float
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
    ridge : float
        A starts at this multiple of the identity.
    observation_space : gymnasium.Space, optional
        What the basis is built for; as for `LSTD`.
    """
    confidence = check.fraction("confidence", confidence)
    lstd = LSTD(
        basis,
        check.count("actions", actions),
        discount=discount,
        ridge=ridge,
        observation_space=observation_space,
    ).fit(transitions, policy)
    chunks = chunks_of(transitions)
    firsts = _first_observations(chunks) if first_observations is None else first_observations
    z = _action_features(lstd, np.asarray(firsts), policy)
    values = z @ lstd.weights_
    mean = float(values.mean())

    influence = _influence(lstd, z.mean(axis=0))
    parts = [part for chunk in chunks for part in _parts(lstd, policy, chunk, influence)]
    variance = _variance_of_sum(np.array(parts), lstd)
    if first_observations is None:
        variance += float(values.var()) / len(values)
    std = float(np.sqrt(variance))
    half = std * float(student.ppf(0.5 + confidence / 2.0, max(len(parts) - 1, 1)))
    return PolicyValue(mean, std, mean - half, mean + half, len(parts), len(values))


def _influence(lstd: LSTD, z: Vector) -> Vector:
    """The vector h with A'h = z."""
    matrix = lstd.statistics_.drift + lstd.ridge * np.eye(len(z))
    solution: Vector = np.linalg.solve(matrix.T, z).astype(np.float64, copy=False)
    return solution


def _variance_of_sum(parts: Vector, lstd: LSTD) -> float:
    """Of the sum of parts that are independent of one another.

    Fitting k weights to N transitions has made the differences too small by about (N - k) / N.
    """
    if len(parts) < 2:
        return float("inf")
    count, weights = int(lstd.statistics_.count.sum()), len(lstd.weights_)
    correction = count / max(count - weights, 1)
    return float(parts.var(ddof=1) * len(parts)) * correction


def _parts(lstd: LSTD, policy: Policy, chunk: Transitions, influence: Vector) -> Iterator[float]:
    """The sum of (h'phi) delta over every stretch of a chunk."""
    effects = [
        _effects(lstd, policy, piece, influence)
        for piece in chunk.pieces(rows_at_a_time(lstd.features_))
    ]
    starts = _stretches(_is_first(chunk))
    yield from np.add.reduceat(np.concatenate(effects), starts).tolist()


def _effects(lstd: LSTD, policy: Policy, piece: Transitions, influence: Vector) -> Vector:
    """The terms (h'phi(s, a)) delta, one for every transition."""
    features, actions = lstd.features_, piece.actions
    x, y = features(piece.observations), features(piece.next_observations)
    rows = np.arange(piece.size)
    after = (y @ _blocks(lstd, lstd.weights_).T)[rows, np.asarray(policy(piece.next_observations))]
    now = (x @ _blocks(lstd, lstd.weights_).T)[rows, actions]
    differences = piece.rewards + lstd.discount * np.where(piece.terminated, 0.0, after) - now
    effects: Vector = (x @ _blocks(lstd, influence).T)[rows, actions] * differences
    return effects


def _blocks(lstd: LSTD, vector: Vector) -> Matrix:
    return vector.reshape(lstd.actions or 1, -1)


def _action_features(lstd: LSTD, observations: NDArray[Any], policy: Policy) -> Matrix:
    """Rows phi(s, pi(s)), shape (N, k)."""
    x = lstd.features_(observations)
    rows = np.zeros((len(x), lstd.actions or 1, x.shape[1]))
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
