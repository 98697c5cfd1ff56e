"""The routes from transitions to weights: processor time a step, and the one that is chosen.

    python -m benchmarks.routes

All methods of `rblspi.model.incremental` in turn, in one process, so that whatever else the machine
does disturbs all of them; the fastest of several rounds counts.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import sys
import time
from typing import Any

import numpy as np

from rblspi.core.compiled import jit
from rblspi.model.buffer import CAPACITY, append, is_full, new_buffer
from rblspi.model.incremental import (
    BLOCK_UPDATE,
    RANK_ONE,
    RECOMPUTE,
    absorb,
    fastest_method,
    improve,
    new_incremental_posterior,
)

METHODS = {"recompute": RECOMPUTE, "block update": BLOCK_UPDATE, "rank one": RANK_ONE}
ACTIONS, DISCOUNT = 3, 0.99
PERIODS = (2, 3, 5, 7, 10, 14, 20, 30, 50)
SIZES = (22, 65, 131)
ROUNDS = 3


@jit
def learn(
    posterior: Any, buffer: Any, xs: Any, actions: Any, period: int, improvements: int, out: Any
) -> None:
    """Absorb ``period`` transitions and improve, again and again."""
    row = 0
    for _ in range(improvements):
        for _ in range(period):
            after = (row + 1) % len(xs)
            append(buffer, xs[row], actions[row], 1.0, xs[after], actions[after])
            row = after
            if is_full(buffer):
                absorb(posterior, buffer, DISCOUNT)
        if buffer.size[0] > 0:
            absorb(posterior, buffer, DISCOUNT)
        mean, sampled = out[0], out[1]
        sampled[:] = 0.0
        improve(posterior, mean, sampled)


def measure(features: int, period: int) -> dict[str, float]:
    """Microseconds of processor time a step, by method."""
    rng, k = np.random.default_rng(0), ACTIONS * features
    xs = np.exp(-(rng.standard_normal((512, features)) ** 2))
    actions = rng.integers(ACTIONS, size=512)
    capacity = min(period, CAPACITY)
    improvements = max(2, int(1e7 / (k * k * (period + 40))))
    learners = {}
    for name, method in METHODS.items():
        posterior = new_incremental_posterior(ACTIONS, features, 1e-6, 0.01, capacity, method)
        arguments = (posterior, new_buffer(capacity, features), xs, actions, period)
        learn(*arguments, 2 + 200 // period, np.zeros((2, k)))
        learners[name] = arguments
    best = dict.fromkeys(METHODS, np.inf)
    for _ in range(ROUNDS):
        for name, arguments in learners.items():
            start = time.process_time()
            learn(*arguments, improvements, np.zeros((2, k)))
            spent = 1e6 * (time.process_time() - start) / (improvements * period)
            best[name] = min(best[name], spent)
    return best


def main() -> None:
    """Print a table for each number of weights."""
    names = {method: name for name, method in METHODS.items()}
    for features in [int(n) for n in sys.argv[1:]] or SIZES:
        k = ACTIONS * features
        print(f"\nk = {k}\n\n| K | {' | '.join(METHODS)} | chosen | times the fastest |")
        print("|---" * (len(METHODS) + 3) + "|")
        for period in PERIODS:
            best = measure(features, period)
            chosen = names[fastest_method(period, k)]
            ratio = best[chosen] / min(best.values())
            numbers = " | ".join(f"{spent:.1f}" for spent in best.values())
            print(f"| {period} | {numbers} | {chosen} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
