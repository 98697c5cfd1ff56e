"""Choosing actions by values that are linear in features: greedy, epsilon-greedy, with bounds.

The compiled functions choose one action inside the loop. The classes choose for a batch of
observations and their features; they are small and picklable, so that they can be sent to where
the data are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.linear_algebra import dot
from rblspi.core.types import Array, Integers, Matrix, Vector
from rblspi.model.posterior import Posterior


@jit_borrowing
def greedy(weights: Vector, x: Vector) -> int:
    """argmax_a x'theta_a; ties go to the first action."""
    n = len(x)
    best, highest = 0, -np.inf
    for a in range(len(weights) // n):
        value = dot(weights[a * n : (a + 1) * n], x)
        if value > highest:
            best, highest = a, value
    return best


@jit
def epsilon_greedy(weights: Vector, x: Vector, epsilon: float, rng: Any) -> int:
    """Greedy, or with probability epsilon an action drawn uniformly."""
    if rng.random() < epsilon:
        return int(rng.random() * (len(weights) // len(x)))
    return greedy(weights, x)


def best_actions(values: NDArray[Any]) -> Integers:
    """The action of the highest value, along the last axis; ties go to the first action."""
    best: Integers = np.argmax(values, axis=-1)
    return best


@dataclass(frozen=True)
class Greedy:
    """argmax_a x'theta_a.

    A sampled policy is a greedy one whose weights are a draw from the posterior.
    """

    weights: Matrix  # theta by action (actions, n)

    def __call__(self, observations: NDArray[Any], x: Matrix) -> Integers:
        """Actions for rows of features."""
        return best_actions(x @ self.weights.T)


@dataclass(frozen=True)
class EpsilonGreedy:
    """Greedy, or with probability epsilon an action drawn uniformly."""

    weights: Matrix  # theta by action (actions, n)
    epsilon: float
    rng: np.random.Generator

    def __call__(self, observations: NDArray[Any], x: Matrix) -> Integers:
        """Actions for rows of features, one draw after the other."""
        weights = self.weights.ravel()
        return np.array([epsilon_greedy(weights, row, self.epsilon, self.rng) for row in x])


@dataclass(frozen=True)
class Pessimistic:
    """argmax_a of the posterior mean of Q minus c standard deviations."""

    posterior: Posterior
    pessimism: float  # c

    def __call__(self, observations: NDArray[Any], x: Matrix) -> Integers:
        """Actions for rows of features."""
        mean, std = self.posterior.predict(x)
        return best_actions(mean - self.pessimism * std)


@dataclass(frozen=True)
class Optimistic:
    """argmax_a of x'w_a + |R_a'^-1 x|, an upper bound of the value."""

    weights: Matrix  # w by action         (actions, n)
    factors: Array  # R by action, upper triangular  (actions, n, n)

    def __call__(self, observations: NDArray[Any], x: Matrix) -> Integers:
        """Actions for rows of features."""
        whitened = [solve_triangular(factor, x.T, trans=1) for factor in self.factors]
        bonus = np.stack([np.linalg.norm(columns, axis=0) for columns in whitened], axis=1)
        return best_actions(x @ self.weights.T + bonus)
