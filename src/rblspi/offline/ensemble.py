"""An ensemble of models of the same transitions, and the values of one policy in all of them.

    1   the transitions are split into random halves, five times; every half is a model
    2   Q*_b = the best values in the model b                                   value iteration
    3   pi = argmax_a mean_b Q*_b(s, a), unless a policy is given
    4   Q_b = the values of pi in the model b
    5   Q'_b = those of the policy that was chosen in the other half of the same split;
        a policy looks better where it was chosen, D(s) = mean (Q_b - Q'_b)
    6   draws are Q_b(s, a) - D(s) / 2, and have the error D(s) / 4 in common

A plain bootstrap does not do: its members choose and value by the same data, and share the winner's
curse. The deviation of a half from the whole has the variance of the error of the whole. What is
the same for all actions in line 6 changes no choice and no gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.fitted_q import attainable
from rblspi.offline.kernel_model import GridModel, sweep

#: random splits into halves: the deviation of ten draws is known to a quarter
SPLITS = 5

#: Values (actions, n) of a model elsewhere: at the places of the ensemble, or of the model.
Reading: TypeAlias = Callable[[Matrix], Matrix]


def unmoved(values: Matrix) -> Matrix:
    """The reading of a model whose places are those of the ensemble."""
    return values


class Member(NamedTuple):
    """A model of one half of the transitions, at places of its own."""

    model: GridModel
    allowed: Mask  # which actions are chosen          (places, actions)
    outwards: Reading  # at the places of the ensemble
    inwards: Reading  # of the ensemble, at its own places

    def best(self, start: Matrix, precision: float) -> Matrix:
        """Line 2, from some values to start with."""
        return self._settled(start, self.allowed, precision)

    def following(self, ahead: Matrix, start: Matrix, precision: float) -> Matrix:
        """The values of the policy that is greedy in ``ahead``."""
        chosen = np.where(self.allowed.T, ahead, -np.inf).argmax(axis=0)
        return self._settled(start, np.arange(len(ahead)) == chosen[:, None], precision)

    def _settled(self, start: Matrix, allowed: Mask, precision: float) -> Matrix:
        values = np.where(allowed, start.T, -np.inf).max(axis=1)
        q = np.empty_like(start)
        sweep(self.model, np.ascontiguousarray(allowed), values, q, precision)
        return q


class Values(NamedTuple):
    """Lines 4 to 6."""

    draws: Array  # (B, actions, n)
    common: Vector  # D / 4, as a standard deviation  (n,)


def usual_value(log: Transitions, discount: float) -> float:
    """The value of going on as the log did: H mean(r), with the mean discounted time to go H."""
    going = float(np.where(log.terminated, 0.0, log.discounts(discount)).mean())
    return float(log.rewards.mean()) / max(1.0 - going, 1e-6)


def tolerance(log: Transitions, discount: float, precision: float) -> float:
    """The change of values below which an iteration has settled.

    The error of values is then at most ``precision``, in units of the range that rewards allow.
    """
    low, high = attainable([log], discount)
    return precision * (1.0 - discount) * ((high - low) or abs(high) or 1.0)


def halves(log: Transitions, rng: np.random.Generator) -> Iterator[Integers]:
    """Line 1: the rows of every half, two of a split after one another, in random order."""
    for _ in range(SPLITS):
        rows = rng.permutation(log.size)
        yield from np.array_split(rows, 2) if log.size > 1 else (rows, rows)


class Brought(NamedTuple):
    """What the transitions of a log brought: r + gamma max_a Q(s', a)."""

    values: Vector  # (N,)
    shares: Vector  # how likely each of them is worth what is unknown, sum 1  (N,)

    @classmethod
    def of(
        cls,
        log: Transitions,
        ahead: Matrix,
        discount: float,
        rng: np.random.Generator,
        shares: Vector | None = None,
    ) -> Brought:
        """By Q of the next states, (actions, N).

        As long as all bring the same, nothing tells how far values may be from that: they are
        varied by their own size, or by 1 if they are 0.
        """
        q = ahead if log.next_allowed is None else np.where(log.next_allowed.T, ahead, -np.inf)
        following = np.where(log.terminated, 0.0, q.max(axis=0))
        values = log.rewards + log.discounts(discount) * following
        size = np.abs(values).max()
        if np.ptp(values) <= 1e-6 * size:
            values = values + (size or 1.0) * rng.standard_normal(log.size)
        shares = np.ones(log.size) if shares is None else shares
        return cls(values, shares / shares.sum())

    @property
    def std(self) -> float:
        """The standard deviation of a value of which nothing is known."""
        return float(np.sqrt(self.shares @ np.square(self.values - self.shares @ self.values)))

    def draw(self, rng: np.random.Generator, size: int) -> Vector:
        """Values of what is unknown."""
        drawn: Vector = rng.choice(self.values, size, p=self.shares)
        return drawn


def evaluate(
    members: Sequence[Member], start: Matrix, precision: float, policy: Matrix | None = None
) -> Values:
    """Lines 2 to 6.

    Parameters
    ----------
    members : sequence of Member
        Two of a split after one another.
    start : ndarray, shape (actions, n)
        Values to start with, at the places of the ensemble.
    precision : float
        Of all values.
    policy : ndarray, shape (actions, n), optional
        Values in which a policy is greedy that others have chosen; line 4 alone is left then.
    """
    if policy is not None:  # it was not chosen by these transitions
        given = [
            one.following(one.inwards(policy), one.inwards(start), precision) for one in members
        ]
        draws = np.stack([one.outwards(q) for one, q in zip(members, given, strict=True)])
        return Values(draws, np.zeros(draws.shape[2]))
    best = [one.best(one.inwards(start), precision) for one in members]
    seen = [one.outwards(q) for one, q in zip(members, best, strict=True)]
    chosen, own, other = np.mean(seen, axis=0), [], []
    for i, (one, q) in enumerate(zip(members, best, strict=True)):
        q = one.following(one.inwards(chosen), q, precision)  # line 4
        own.append(one.outwards(q))
        q = one.following(one.inwards(seen[i ^ 1]), q, precision)  # line 5
        other.append(one.outwards(q))
    difference = np.mean(own, axis=(0, 1)) - np.mean(other, axis=(0, 1))
    return Values(np.stack(own) - 0.5 * difference, 0.25 * np.abs(difference))
