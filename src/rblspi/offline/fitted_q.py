"""Fitted Q iteration on a set of transitions, and what values the rewards allow."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rblspi.core.types import Array, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.accumulation import batch_rows, one_thread, over_chunks, require_finite
from rblspi.offline.policy_iteration import Iteration, OnIteration
from rblspi.offline.problem import Problem, sums_of_policy
from rblspi.policies.choice import best_actions, masked
from rblspi.policies.given import first_action

#: steps that a reward lasts at the most, where the discount is 1 or nearly so
LONGEST = 1000


class Fitted(NamedTuple):
    """The outcome of fitted Q iteration."""

    weights: Vector
    history: list[Iteration]
    converged: bool
    limits: tuple[float, float]  # the least and the greatest value that the rewards allow


def fitted_q_iteration(
    problem: Problem,
    chunks: Iterable[Transitions],
    ridge: float,
    max_iterations: int,
    tolerance: float,
    tell: OnIteration | None = None,
) -> Fitted:
    """Regress, repeat, passing over the data each time.

    The Gram matrices do not change, and are factored once.
    """
    checked = sums_of_policy(problem, first_action, chunks)
    regression = Regression.of(checked.statistics.gram, ridge, problem.features.constant)
    rewards = _rewards_of(chunks, problem.discount)
    limits, constant = rewards.limits(problem.discount), regression.constant
    known = not rewards.ends and problem.discount < 1.0
    offset = _forever(rewards.mean, problem.discount) if known else 0.0
    weights = before = np.tile(offset * constant, (problem.blocks, 1))
    history: list[Iteration] = []
    for _ in range(max_iterations):
        work = partial(_targets_of_chunk, problem, weights, before, limits)
        targets = over_chunks(chunks, work, lambda one, other: Targets(*map(add, one, other)))
        before, last = weights, offset
        weights, offset = regression.solve(targets)
        shapes = weights - offset * constant, before - last * constant
        change = _change(*shapes, offset - last)
        history.append(Iteration(weights.ravel(), targets.changed, change))
        if tell is not None:
            tell(history[-1])
        if change <= tolerance:
            return Fitted(weights.ravel(), history, True, limits)
    return Fitted(weights.ravel(), history, False, limits)


# The least and the greatest value -----------------------------------------------------------------


class Rewards(NamedTuple):
    """The range and the mean of the rewards, and whether episodes end in terminal states.

    Rewards of transitions that take different times are those for a unit of time.
    """

    least: float
    greatest: float
    total: float
    rows: int
    ends: bool

    @classmethod
    def of(cls, chunk: Transitions, discount: float) -> Self:
        """Those of some transitions."""
        rewards = chunk.reward_rates(discount)
        with np.errstate(over="ignore"):
            total = float(rewards.sum())
        ends = bool(chunk.terminated.any())
        return cls(float(rewards.min()), float(rewards.max()), total, chunk.size, ends)

    def merge(self, other: Rewards) -> Rewards:
        """The same for both sets of transitions."""
        ends, rows = self.ends or other.ends, self.rows + other.rows
        least, greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return Rewards(least, greatest, self.total + other.total, rows, ends)

    @property
    def mean(self) -> float:
        """The mean reward."""
        return self.total / self.rows

    def limits(self, discount: float) -> tuple[float, float]:
        """The least and the greatest sum of discounted rewards."""
        low, high = (_forever(reward, discount) for reward in (self.least, self.greatest))
        return (min(low, self.least), max(high, self.greatest)) if self.ends else (low, high)


def attainable(
    chunks: Iterable[Transitions], discount: float, longest: float = LONGEST
) -> tuple[float, float]:
    """The least and the greatest value that the rewards allow, if they last for so many steps."""
    lasting = min(discount, 1.0 - 1.0 / longest)
    return _rewards_of(chunks, lasting).limits(lasting)


def conceivable(chunks: Iterable[Transitions], discount: float) -> tuple[float, float]:
    """The range of possible values outside the data: any logged rewards, with an end at any time.

    If no reward but zero was ever logged, nothing tells how large another one might be.
    """
    lasting = min(discount, 1.0 - 1.0 / LONGEST)
    rewards = _rewards_of(chunks, lasting)
    if rewards.least == rewards.greatest == 0.0:
        return -math.inf, math.inf
    return rewards._replace(ends=True).limits(lasting)


def _rewards_of(chunks: Iterable[Transitions], discount: float) -> Rewards:
    rewards = over_chunks(chunks, partial(Rewards.of, discount=discount), Rewards.merge)
    require_finite(rewards.total)
    return rewards


def _forever(reward: float, discount: float) -> float:
    """The value of getting the same reward forever."""
    if discount < 1.0:
        return reward / (1.0 - discount)
    return math.copysign(math.inf, reward) if reward else 0.0


# One regression -----------------------------------------------------------------------------------


class Targets(NamedTuple):
    """The sums of one iteration."""

    moments: Matrix  # sum phi(s) t by action (actions, n)
    total: float  # sum of t
    rows: int
    changed: int  # next states in which the greedy action differs from the one before


def _targets_of_chunk(
    problem: Problem,
    weights: Matrix,
    before: Matrix,
    limits: tuple[float, float],
    chunk: Transitions,
) -> Targets:
    moments, total, changed = np.zeros_like(weights), 0.0, 0
    with one_thread():
        for batch in chunk.batches(batch_rows(problem.features)):
            y = problem.features(batch.next_observations)
            allowed = batch.next_allowed
            values = masked(y @ weights.T, allowed)
            best, past = values.argmax(axis=1), best_actions(y @ before.T, allowed)
            ahead = np.where(batch.terminated, 0.0, values.max(axis=1).clip(*limits))
            targets = batch.rewards + batch.discounts(problem.discount) * ahead
            by_action = (batch.actions == np.arange(problem.blocks)[:, None]) * targets
            moments += by_action @ problem.features(batch.observations)
            total += float(targets.sum())
            changed += int((best != past)[~batch.terminated].sum())
    return Targets(moments, total, chunk.size, changed)


class Regression(NamedTuple):
    """Ridge regressions that do not shrink a constant, one for every action."""

    gram: Array  # C_a, (actions, n, n)
    factors: list[Any]  # Cholesky factors of C_a + lambda I
    constant: Vector  # the weights of the constant function, or zeros, (n,)

    @classmethod
    def of(cls, gram: Array, ridge: float, constant: Vector | None) -> Self:
        """Factor the matrices; lambda is a multiple of their mean diagonal element."""
        require_finite(gram)
        size = gram.shape[1]
        mean = float(np.trace(gram, axis1=1, axis2=2).mean()) / size
        penalty = ridge * (mean or 1.0) * np.eye(size)
        weights = np.zeros(size) if constant is None else constant
        return cls(gram, [cho_factor(block + penalty) for block in gram], weights)

    def solve(self, targets: Targets) -> tuple[Matrix, float]:
        """The weights by action, shape (actions, n), and the mean target c."""
        offset = targets.total / targets.rows if self.constant.any() else 0.0
        sides = targets.moments - offset * self.gram @ self.constant
        require_finite(sides)
        solved = [cho_solve(factor, side) for factor, side in zip(self.factors, sides, strict=True)]
        weights = offset * self.constant + np.stack(solved)
        require_finite(weights)
        return weights, offset


def _change(weights: Matrix, before: Matrix, offset: float) -> float:
    """The change of the weights and of the offset, relative to the length of the weights."""
    change = math.hypot(float(np.linalg.norm(weights - before)), offset)
    length = float(np.linalg.norm(weights))
    return change / length if length > 0.0 else change
