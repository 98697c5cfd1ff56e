"""Measuring: the best of several rounds, and what a step must cost by operation count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rblspi import RBLSPI, RBFGrid

CAR = "rblspi/MountainCar-v0"
PAPER = {"prior_precision": 0.001, "noise_precision": 0.1, "discount": 0.99}


class Row(NamedTuple):
    """One line of the table: what was measured, and what it should be."""

    name: str
    measured: float | None
    unit: str
    goal: str
    reached: bool | None  # None: nothing was promised
    details: dict[str, Any]


def seconds(function: Callable[[], Any], rounds: int = 3) -> float:
    """Wall time of the fastest of several calls: what disturbs only ever slows down."""
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return float(best)


def agent(update_every: int = 20, cells: int | tuple[int, int] = 8, **settings: Any) -> RBLSPI:
    """RBLSPI on the mountain car at the paper's settings, compiled and past its first steps."""
    made = RBLSPI(
        CAR, RBFGrid(cells), update_every=update_every, **{**PAPER, "seed": 0, **settings}
    )
    return made.learn(500)


def step_time(learner: RBLSPI, steps: int, rounds: int = 3) -> float:
    """Seconds a step."""
    return seconds(lambda: learner.learn(steps), rounds) / steps


def multiply_adds(n: int, actions: int, period: int) -> float:
    """Multiply-adds a step that the exact update needs, at one improvement every ``period``.

    For every transition: two triangular solves with C_a (n^2), the product with [A_a, b_a] and
    its update (2 n (k + 1)), the update of C_a (n^2), two rank-one terms of the normal matrix
    ((k + 1)^2, upper triangles) and two looks for the best action (2 k). For every
    improvement: the factors of the C_a (|A| n^3 / 6), the factor of the precision (k^3 / 6)
    and three triangular solves (3 k^2 / 2).
    """
    k = n * actions
    transition = 2 * n**2 + 2 * n * (k + 1) + (k + 1) ** 2 + 2 * k
    improvement = actions * n**3 / 6 + k**3 / 6 + 1.5 * k**2
    return transition + improvement / period


def multiply_add_rate(size: int) -> float:
    """Multiply-adds a second of a matrix product of this size."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, size, size))
    out = np.empty((size, size))
    repeats = max(1, int(2e8 / size**3))

    def products() -> None:
        for _ in range(repeats):
            np.matmul(a, b, out=out)

    return repeats * size**3 / seconds(products, rounds=5)
