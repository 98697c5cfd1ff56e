"""Least-squares value iteration on a set of transitions: regress r + gamma max Q(s', .), repeat.

With rows x = phi(s) of the transitions of action a, weights w of the rows, and targets t,

    theta_a = argmin sum w (t - x'theta_a)^2 + lambda |theta_a - theta_0|^2 + p_a,
    t = r + gamma max_a' y'theta_a',  clipped to what values can be, or r where the episode ended

where p_a perturbs the solution: it makes the weights a random sample, see `RLSVI`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_matrix, issparse, vstack

from rblspi.core.types import Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import Features
from rblspi.policies.choice import masked

#: share of features that are not zero below which sparse products are faster
SPARSE = 0.1
#: the largest number of sweeps, should the clipped values go in circles
MOST_SWEEPS = 2000
#: error of planned values, in units of their spread
PRECISION = 0.01
#: values further from the centre than so many times their spread are clipped
REACH = 3.0


class ValueScale(NamedTuple):
    """What the rewards say about values, before any value is known.

    A constant added to all rewards of a problem without terminal states moves only the centre.
    """

    centre: float  # the value of going on as the data did
    spread: float  # how far values may be from that

    @classmethod
    def of(cls, log: Transitions, discount: float, steps: int | None = None) -> Self:
        """The scale of values with so many steps to go, or without end.

        With the mean discounted time to go H = 1 + p + p^2 + ..., p = gamma (1 - q), where q is the
        share of transitions that terminate, the centre is H mean(r). The spread is the largest of
        H |r - mean(r)| where the episode goes on, and of |r - centre| where it ends.
        """
        rewards, terminated = log.rewards, log.terminated
        going = discount * (1.0 - float(terminated.mean()))
        horizon = 1.0 / max(1.0 - going, 1e-6)
        if steps is not None:
            horizon = float(np.sum(going ** np.arange(steps)))
        mean = float(rewards.mean())
        centre = horizon * mean
        deviations = np.where(terminated, rewards - centre, horizon * (rewards - mean))
        spread = float(np.abs(deviations).max())
        if spread <= 1e-9 * abs(centre):  # all rewards are the same, but for rounding
            spread = abs(mean) or 1.0
        return cls(centre, spread)

    def limits(self) -> tuple[float, float]:
        """The lowest and the highest value within reach of the centre."""
        return self.centre - REACH * self.spread, self.centre + REACH * self.spread

    def constant(self, features: Features, actions: int) -> Matrix:
        """Weights by action of the constant function of the centre; 0 if the basis has none."""
        weights = np.zeros((actions, features.size))
        return weights if features.constant is None else weights + self.centre * features.constant


class Rows(NamedTuple):
    """Transitions by action, as features; sparse where most of these are zero."""

    x: Sequence[Any]  # phi(s), by action        (rows of a, n)
    places: Sequence[NDArray[np.int64]]  # of these rows among all
    rewards: Vector  #                           (rows,)
    y: Any  # phi(s')                            (rows, n)
    going: Vector  # 0 where it terminated, else 1, or a probability between  (rows,)
    allowed: NDArray[np.bool_] | None = None  # which actions in s'; None: all  (rows, actions)

    @classmethod
    def of(cls, log: Transitions, features: Features, actions: int) -> Self:
        """The features of all transitions."""
        x, y = thin(features(log.observations)), features(log.next_observations)
        y = csr_matrix(y) if issparse(x) else y
        places = [np.flatnonzero(log.actions == a) for a in range(actions)]
        going = np.where(log.terminated, 0.0, 1.0)
        return cls([x[place] for place in places], places, log.rewards, y, going, log.next_allowed)

    def in_order(self) -> Any:
        """phi(s) of all rows, whatever their action, shape (rows, n)."""
        order = np.argsort(np.concatenate(self.places), kind="stable")
        return (vstack(self.x, format="csr") if issparse(self.x[0]) else np.vstack(self.x))[order]


def thin(rows: Matrix) -> Any:
    """The same rows, as a sparse matrix where most of their numbers are zero."""
    return csr_matrix(rows) if np.count_nonzero(rows) < SPARSE * rows.size else rows


class Regression(NamedTuple):
    """What the regression of every action needs, whatever its targets are."""

    rows: Rows
    weighted: Sequence[Any]  # W X, by action                         (rows of a, n)
    factors: Sequence[Any]  # R_a'R_a = X'W X + lambda I    (n, n), or its diagonal (n,)
    prior_mean: Matrix  # theta_0, by action                          (actions, n)
    penalty: float  # lambda

    @classmethod
    def of(
        cls, rows: Rows, penalty: float, prior_mean: Matrix, weights: Vector | None = None
    ) -> Self:
        """Factor the matrices; the rows weigh the same unless weights are given."""
        weighted = rows.x
        if weights is not None:
            weighted = [
                _times(x, weights[place]) for x, place in zip(rows.x, rows.places, strict=True)
            ]
        factors = [_factor(x.T @ wx, penalty) for x, wx in zip(rows.x, weighted, strict=True)]
        return cls(rows, weighted, factors, prior_mean, penalty)

    def solve(self, targets: Vector, noise: Matrix) -> Matrix:
        """R_a^-1 (R_a'^-1 (X'W t + lambda theta_0) + noise_a), by action."""
        solved, prior = [], self.penalty * self.prior_mean
        for a, factor in enumerate(self.factors):
            right = self.weighted[a].T @ targets[self.rows.places[a]] + prior[a]
            if factor.ndim == 1:
                solved.append((right / factor + noise[a]) / factor)
            else:
                whitened = solve_triangular(factor, right, trans=1) + noise[a]
                solved.append(solve_triangular(factor, whitened))
        return np.stack(solved)

    def deviations(self, x: Any) -> Matrix:
        """(x'(X'W X + lambda I)^-1 x)^1/2 for rows of features, by action: (rows, actions).

        A table has n^-1/2 there, after n visits and without a penalty.
        """
        columns = []
        for factor in self.factors:
            if factor.ndim == 1:
                squares = (x.multiply(x) if issparse(x) else np.square(x)) @ factor**-2.0
            else:
                rows = x.toarray() if issparse(x) else x
                whitened = solve_triangular(factor, rows.T, trans=1, check_finite=False)
                squares = np.square(whitened).sum(axis=0)
            columns.append(np.sqrt(squares))
        return np.stack(columns, axis=1)


def _times(x: Any, weights: Vector) -> Any:
    return x.multiply(weights[:, None]).tocsr() if issparse(x) else x * weights[:, None]


def _factor(gram: Any, penalty: float) -> Any:
    """The factor R of a Gram matrix with a penalty, or its diagonal if features are indicators."""
    if issparse(gram):
        if gram.nnz == np.count_nonzero(gram.diagonal()):
            return np.sqrt(gram.diagonal() + penalty)
        gram = gram.toarray()
    return cholesky(gram + penalty * np.eye(len(gram)))


def value_iteration(
    regression: Regression,
    discount: float,
    limits: tuple[float, float],
    precision: float,
    start: Matrix | None = None,
    noise: Matrix | float = 0.0,
    bonus: Matrix | float = 0.0,
) -> Matrix:
    """Weights by action, shape (actions, n), such that another sweep hardly changes any target.

    Sweeps begin with the weights ``start``, or those that the regression draws towards. They end
    when no target changes by more than (1 - discount) times ``precision``: where regression
    contracts, values are then precise to that. ``noise`` perturbs the solution, see `Regression`.
    Values are clipped to ``limits``, after a ``bonus`` of every action in every next state, shape
    (rows, actions), was added to them.
    """
    rows, weights = regression.rows, regression.prior_mean if start is None else start
    noise = noise + np.zeros_like(weights)
    allowed = max(1.0 - discount, 1e-3) * precision
    targets = np.full(len(rows.rewards), np.inf)
    for _ in range(MOST_SWEEPS):
        ahead = masked(rows.y @ weights.T + bonus, rows.allowed).max(axis=1).clip(*limits)
        before, targets = targets, rows.rewards + discount * rows.going * ahead
        if np.abs(targets - before).max() <= allowed:
            break
        weights = regression.solve(targets, noise)
    return weights
