"""Agents whose actions are numbers, beside the best there is: the table of continuous_actions.md.

    python -m benchmarks.continuous_actions FILE [SEEDS] [PROBLEM ...]

Every finished run is a line of FILE, and is not made again: stop and go on as you like. Seeds are
from 5000 on; everything was chosen with seeds from 1000 on. Nothing is set but the environment. A
greedy policy is evaluated in 20 episodes, whose starts are the same for all seeds and for the best
policy. InvertedPendulum-v5 needs `pip install "gymnasium[mujoco]"`.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
from scipy.linalg import solve_discrete_are

import rblspi
from rblspi.core.compiled import jit
from rblspi.core.intervals import mean_interval
from rblspi.core.types import Array, Matrix, Vector

FIRST = 5000
EPISODES = 20
#: of the starts of the evaluation
STARTS = 7000


# Problems with a known best ----------------------------------------------------------------------


class LinearQuadratic(gym.Env[Any, Any]):
    """x' = A x + B u + noise, with the reward -(x'Q x + u'R u), for 100 steps from a random start.

    Without bounds, u = -K x is the best, with K from Riccati's equation.
    """

    def __init__(
        self, motion: Matrix, push: Matrix, state_cost: Vector, cost: float, noise: Vector
    ) -> None:
        self.motion, self.push, self.noise = motion, push, noise
        self.state_cost, self.action_cost = np.diag(state_cost), cost * np.eye(push.shape[1])
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (len(motion),), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (push.shape[1],), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Begin anywhere within 1 of the target."""
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1.0, 1.0, len(self.motion))
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Make one step."""
        x, u = self.state, np.clip(np.ravel(action), -1.0, 1.0)
        reward = -(x @ self.state_cost @ x + u @ self.action_cost @ u)
        noise = self.noise * self.np_random.standard_normal(len(x))
        self.state = self.motion @ x + self.push @ u + noise
        return self.state.copy(), float(reward), False, False, {}

    def best_action(self, state: Vector) -> Vector:
        """What is best without bounds, brought into them."""
        costs = self.state_cost, self.action_cost
        p = solve_discrete_are(self.motion, self.push, *costs)
        gain = np.linalg.solve(
            costs[1] + self.push.T @ p @ self.push, self.push.T @ p @ self.motion
        )
        return np.clip(-gain @ state, -1.0, 1.0)


class Thermostat(LinearQuadratic):
    """Hold the temperature of a room, by heating and cooling it; its walls follow slowly.

    An observation is how far the room and the walls are from the wanted temperature.
    """

    def __init__(self) -> None:
        motion = np.array([[0.7, 0.2], [0.1, 0.85]])
        push = np.array([[0.4], [0.0]])
        super().__init__(motion, push, np.array([1.0, 0.0]), 0.1, np.array([0.1, 0.02]))


class TwoForces(LinearQuadratic):
    """Bring a mass in the plane to the middle, by a force in each direction."""

    def __init__(self) -> None:
        half = np.array([[1.0, 0.1], [0.0, 0.95]])
        motion, push = np.kron(half, np.eye(2)), np.kron([[0.0], [0.3]], np.eye(2))
        costs = np.array([1.0, 1.0, 0.1, 0.1])
        super().__init__(motion, push, costs, 0.1, np.array([0.0, 0.0, 0.02, 0.02]))


for _kind in (Thermostat, TwoForces):
    gym.register(f"{_kind.__name__}-v0", _kind, max_episode_steps=100)


@jit
def pendulum(angle: float, speed: float, torque: float) -> tuple[float, float, float]:
    """Pendulum-v1: the next angle and speed, and the reward."""
    upright = (angle + math.pi) % (2.0 * math.pi) - math.pi
    reward = -(upright**2 + 0.1 * speed**2 + 0.001 * torque**2)
    speed = min(max(speed + 0.05 * (15.0 * math.sin(angle) + 3.0 * torque), -8.0), 8.0)
    return angle + 0.05 * speed, speed, reward


@jit
def interpolated(values: Matrix, angle: float, speed: float) -> float:
    """Values on a grid over angles and over speeds from -8 to 8."""
    n, m = values.shape
    a, b = angle / (2.0 * math.pi) % 1.0 * n, (speed + 8.0) / 16.0 * (m - 1)
    i, j = int(a), min(int(b), m - 2)
    f, g, i, k = a - i, b - j, i % n, (i + 1) % n
    here = (1.0 - g) * values[i, j] + g * values[i, j + 1]
    return (1.0 - f) * here + f * ((1.0 - g) * values[k, j] + g * values[k, j + 1])


@jit
def best_torque(values: Matrix, torques: Vector, angle: float, speed: float) -> tuple[float, float]:
    """The best of some torques by the values after it, and what it is worth."""
    best, highest = 0.0, -np.inf
    for torque in torques:
        after, fast, reward = pendulum(angle, speed, torque)
        value = reward + interpolated(values, after, fast)
        if value > highest:
            best, highest = torque, value
    return best, highest


@jit
def backed_up(values: Matrix, torques: Vector) -> Matrix:
    """Values with a step more to go."""
    n, m = values.shape
    found = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            angle, speed = 2.0 * math.pi * i / n, -8.0 + 16.0 * j / (m - 1)
            found[i, j] = best_torque(values, torques, angle, speed)[1]
    return found


def best_of_pendulum(steps: int = 200, lines: int = 401) -> float:
    """Dynamic programming over 401 angles, 401 speeds and 200 steps: the mean return."""
    values, torques = [np.zeros((lines, lines))], np.linspace(-2.0, 2.0, 17)
    for _ in range(steps - 1):
        values.append(backed_up(values[-1], torques))
    env, total = gym.make("Pendulum-v1"), 0.0
    for episode in range(EPISODES):
        env.reset(seed=STARTS if episode == 0 else None)
        angle, speed = env.unwrapped.state  # type: ignore[attr-defined]
        for left in range(steps - 1, -1, -1):
            torque, _ = best_torque(values[left], np.linspace(-2.0, 2.0, 81), angle, speed)
            angle, speed, reward = pendulum(angle, speed, torque)
            total += reward
    return total / EPISODES


def best_of_linear(name: str) -> float:
    """The mean return of Riccati's solution, with the same starts and the same noise."""
    policy = _Known(gym.make(name).unwrapped)
    return float(rblspi.evaluate(policy, name, EPISODES, seed=STARTS).returns.mean())


class _Known:
    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Vector, None]:
        """The best action."""
        return self.problem.best_action(np.asarray(observation)), None


class Problem(NamedTuple):
    """An environment, how long to learn in it, and when it counts as solved."""

    steps: int
    best: Callable[[], float]  # mean return of the best policy, or of what is known of it
    wanted: Callable[[float], float]  # the least return that is good enough, given the best
    goal: str


def _within(share: float) -> Callable[[float], float]:
    return lambda best: best - share * abs(best)


PROBLEMS = {
    "Pendulum-v1": Problem(5_000, best_of_pendulum, _within(0.05), "within 5%, 19 of 20"),
    "MountainCarContinuous-v0": Problem(5_000, lambda: 96.0, lambda _: 93.0, "93, 19 of 20"),
    "Thermostat-v0": Problem(
        10_000, lambda: best_of_linear("Thermostat-v0"), _within(0.05), "within 5%, 19 of 20"
    ),
    "InvertedPendulum-v5": Problem(10_000, lambda: 1000.0, lambda _: 1000.0, "1,000, 18 of 20"),
    "TwoForces-v0": Problem(
        20_000, lambda: best_of_linear("TwoForces-v0"), _within(0.05), "reported"
    ),
}


# Running and reporting ---------------------------------------------------------------------------


def run(name: str, seed: int) -> dict[str, Any]:
    """Learn with defaults and evaluate the greedy policy."""
    start = time.process_time()
    agent = rblspi.agent(name, seed=seed).learn(PROBLEMS[name].steps)
    seconds = time.process_time() - start
    found = rblspi.evaluate(agent, episodes=EPISODES, seed=STARTS)
    return {
        "problem": name,
        "seed": seed,
        "return": float(found.returns.mean()),
        "seconds": seconds,
    }


def report(rows: list[dict[str, Any]]) -> None:
    """Print a row of the table for every problem."""
    print("| environment | steps | goal | the best | mean return | reached | seconds a run |")
    print("|---|---|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        of_problem = [row for row in rows if row["problem"] == name]
        if not of_problem:
            continue
        best, returns = problem.best(), np.array([row["return"] for row in of_problem])
        reached = int((returns >= problem.wanted(best)).sum())
        seconds = float(np.median([row["seconds"] for row in of_problem]))
        print(
            f"| {name} | {problem.steps:,} | {problem.goal} | {best:.2f} | {_interval(returns)}, "
            f"{returns.min():.2f} to {returns.max():.2f} | {reached} of {len(returns)} | "
            f"{seconds:.0f} |"
        )


def _interval(returns: Array) -> str:
    if len(returns) < 2:
        return f"{returns[0]:.2f}"
    found = mean_interval(returns)
    return f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"


def main() -> None:
    """Make the runs that are missing, and report on all of them."""
    target, rest = Path(sys.argv[1]), sys.argv[2:]
    seeds = int(rest[0]) if rest else 20
    rows = [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else []
    made = {(row["problem"], row["seed"]) for row in rows}
    for seed in range(FIRST, FIRST + seeds):
        for name in rest[1:] or PROBLEMS:
            if (name, seed) not in made:
                rows.append(run(name, seed))
                with target.open("a") as file:
                    print(json.dumps(rows[-1]), file=file)
    report(rows)


if __name__ == "__main__":
    main()
