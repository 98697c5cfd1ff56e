"""Against DQN of Stable-Baselines3, at the settings of its zoo, on the same mountain car."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.deep_agents import DQN_COMMON, DQN_SETTINGS
from benchmarks.measure import CAR, PAPER, Row
from rblspi import RBLSPI, RBFGrid

GOAL, WINDOW, MOST = 110.0, 50, 300_000


class Reached(Exception):
    """The mean length of the last episodes is at the goal."""


class Watch(gym.Wrapper[Any, Any, Any, Any]):
    """Counts steps, and stops the learner once it is good enough."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.steps, self.length = 0, 0
        self.lengths: deque[int] = deque(maxlen=WINDOW)

    def reset(self, **arguments: Any) -> Any:
        """Begin an episode."""
        self.length = 0
        return self.env.reset(**arguments)

    def step(self, action: Any) -> Any:
        """Advance, and count."""
        result = self.env.step(int(action))
        self.steps += 1
        self.length += 1
        if result[2] or result[3]:
            self.lengths.append(self.length)
            if len(self.lengths) == WINDOW and np.mean(self.lengths) <= GOAL:
                raise Reached
        return result


def ours(seed: int) -> tuple[float, int, bool]:
    """Seconds and steps until the goal, compiled; whether it was reached."""
    settings = {**PAPER, "prior_precision": 0.001, "noise_precision": 1.0}
    agent = RBLSPI(CAR, RBFGrid(8), seed=seed, **settings)

    def good(learner: Any) -> bool:
        latest = learner.episodes[-WINDOW:, 0]
        return not (len(latest) == WINDOW and latest.mean() <= GOAL)

    start = time.perf_counter()
    agent.learn(MOST, callback=good)
    return time.perf_counter() - start, agent.num_timesteps, agent.num_timesteps < MOST


def dqn(seed: int) -> tuple[float, int, bool]:
    """The same for DQN."""
    from stable_baselines3 import DQN

    env = Watch(gym.make(CAR))
    model = DQN("MlpPolicy", env, **DQN_SETTINGS["MountainCar-v0"], **DQN_COMMON, seed=seed)
    start = time.perf_counter()
    try:
        model.learn(120_000)
    except Reached:
        return time.perf_counter() - start, env.steps, True
    return time.perf_counter() - start, env.steps, False


def against_dqn() -> list[Row]:
    """Time and environment steps to 110 steps an episode."""
    name = f"time to {GOAL:.0f} steps an episode (mean of {WINDOW}), against DQN"
    goal = "100x less time, 5x fewer steps"
    try:
        import stable_baselines3  # noqa: F401
        import torch
    except ImportError:
        skipped = {"skipped": "needs stable-baselines3: pip install 'rblspi[benchmarks]'"}
        return [Row(name, None, "", goal, None, skipped)]
    torch.set_num_threads(1)
    ours(99)  # compiled code is loaded
    mine = [ours(seed) for seed in range(3)]
    theirs = dqn(0)
    seconds_, steps = (float(np.median([run[i] for run in mine])) for i in (0, 1))
    faster, fewer = theirs[0] / seconds_, theirs[1] / steps
    return [
        Row(
            name,
            faster,
            "x less time",
            goal,
            faster >= 100.0 and fewer >= 5.0 and all(run[2] for run in mine),
            {
                "fewer_steps": fewer,
                "ours": [{"s": s, "steps": n, "reached": r} for s, n, r in mine],
                "dqn": {"s": theirs[0], "steps": theirs[1], "reached": theirs[2]},
            },
        )
    ]
