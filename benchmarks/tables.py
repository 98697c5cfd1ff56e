"""OPSRL, the agent for discrete observations: processor time a step, and memory.

    python -m benchmarks.tables

Loading and compiling are left out. The environment alone, under random actions, is measured in the
same process just before: its ratio to the times of other days tells how disturbed the machine was.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import resource
import time
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi import OPSRL


class Problem(NamedTuple):
    """An environment, how long to learn in it, and the goal in microseconds a step."""

    id: str
    arguments: dict[str, Any]
    steps: int
    goal: float


PROBLEMS = {
    "DeepSea 20": Problem("rblspi/DeepSea-v0", {"size": 20}, 6_000, 50.0),
    "DeepSea 50": Problem("rblspi/DeepSea-v0", {"size": 50}, 25_000, 100.0),
    "Taxi": Problem("Taxi-v4", {}, 40_000, 50.0),
}


def alone(env: gym.Env[Any, Any], steps: int = 2000) -> float:
    """Microseconds a step of the environment itself, called from Python."""
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps)  # type: ignore[attr-defined]
    env.reset(seed=0)
    start = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return 1e6 * (time.process_time() - start) / steps


def measure(problem: Problem) -> tuple[float, float, int]:
    """Microseconds a step: of the environment, and of learning in it; and the weights."""
    env = gym.make(problem.id, **problem.arguments)
    OPSRL(env, seed=1).learn(1)  # compiles
    agent, bare = OPSRL(gym.make(problem.id, **problem.arguments), seed=1), alone(env)
    start = time.process_time()
    agent.learn(problem.steps)
    spent = time.process_time() - start
    return bare, 1e6 * spent / problem.steps, agent.actions * agent.features.size


def main() -> None:
    """Print the table."""
    print("| problem | weights | steps | environment alone, us | us a step | goal |")
    print("|---|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        bare, learning, weights = measure(problem)
        numbers = f"{weights} | {problem.steps} | {bare:.1f} | {learning:.1f} | {problem.goal:.0f}"
        print(f"| {name} | {numbers} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nmost memory of the whole process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
