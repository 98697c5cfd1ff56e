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

from rblspi.core.compiled import jit, jit_inlined
from rblspi.core.kernels import dot
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.model.posterior import Posterior


@jit_inlined
def greedy(weights: Vector, x: Vector, allowed: Allowed) -> int:
    """argmax_a x'theta_a over the allowed actions; ties go to the first of them."""
    n = len(x)
    best, highest = -1, -np.inf
    for a in range(len(weights) // n):
        if allowed[a]:
            value = dot(weights[a * n : (a + 1) * n], x)
            if best < 0 or value > highest:
                best, highest = a, value
    return max(best, 0)


@jit
def epsilon_greedy(weights: Vector, x: Vector, epsilon: float, allowed: Allowed, rng: Any) -> int:
    """Greedy, or with probability epsilon an allowed action drawn uniformly."""
    if rng.random() < epsilon:
        return random_action(allowed, rng)
    return greedy(weights, x, allowed)


@jit
def random_action(allowed: Allowed, rng: Any) -> int:
    """An allowed action, drawn uniformly."""
    count = 0
    for a in range(len(allowed)):
        count += 1 if allowed[a] else 0
    left = int(rng.random() * count)
    for a in range(len(allowed)):
        if allowed[a]:
            if left == 0:
                return a
            left -= 1
    return 0


def best_actions(values: NDArray[Any], allowed: NDArray[Any] | None = None) -> Integers:
    """The allowed action of the highest value, along the last axis; ties go to the first."""
    best: Integers = np.argmax(masked(values, allowed), axis=-1)
    return best


def masked(values: NDArray[Any], allowed: NDArray[Any] | None) -> NDArray[Any]:
    """Action values, with minus infinity for those that are not allowed."""
    return values if allowed is None else np.where(allowed, values, -np.inf)


@dataclass(frozen=True)
class Greedy:
    """argmax_a x'theta_a.

    A sampled policy is a greedy one whose weights are a draw from the posterior.
    """

    weights: Matrix  # theta by action (actions, n)

    def __call__(
        self, observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None
    ) -> Integers:
        """Actions for rows of features."""
        return best_actions(self.values(x), allowed)

    def values(self, x: Matrix) -> Matrix:
        """What is compared, shape (N, actions)."""
        values: Matrix = x @ self.weights.T
        return values


@dataclass(frozen=True)
class EpsilonGreedy:
    """Greedy, or with probability epsilon an action drawn uniformly."""

    weights: Matrix  # theta by action (actions, n)
    epsilon: float
    rng: np.random.Generator

    def __call__(
        self, observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None
    ) -> Integers:
        """Actions for rows of features, one draw after the other."""
        weights, epsilon, rng = self.weights.ravel().astype(np.float64), self.epsilon, self.rng
        masks = np.ones((len(x), len(self.weights)), np.uint8) if allowed is None else allowed
        rows = zip(np.ascontiguousarray(x, np.float64), masks, strict=True)
        return np.array([epsilon_greedy(weights, row, epsilon, mask, rng) for row, mask in rows])


@dataclass(frozen=True)
class Pessimistic:
    """argmax_a of the posterior mean of Q minus c standard deviations."""

    posterior: Posterior
    pessimism: float  # c

    def __call__(
        self, observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None
    ) -> Integers:
        """Actions for rows of features."""
        return best_actions(self.values(x), allowed)

    def values(self, x: Matrix) -> Matrix:
        """What is compared, shape (N, actions)."""
        mean, std = self.posterior.predict(x)
        return mean - self.pessimism * std
