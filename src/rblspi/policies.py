"""From weights to actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.compiled import jit, jit_reordering

Vector = NDArray[np.float64]


@jit_reordering
def greedy(weights: Vector, x: Vector) -> int:
    """argmax_a x'theta_a; ties go to the first action."""
    n = len(x)
    best, highest = 0, -np.inf
    for a in range(len(weights) // n):
        block = weights[a * n : (a + 1) * n]
        value = 0.0
        for i in range(n):
            value += block[i] * x[i]
        if value > highest:
            best, highest = a, value
    return best


@jit
def epsilon_greedy(weights: Vector, x: Vector, epsilon: float, rng: Any) -> int:
    """Greedy, or with probability epsilon any action, all alike."""
    if rng.random() < epsilon:
        return int(rng.random() * (len(weights) // len(x)))
    return greedy(weights, x)
