"""Use your own environment, as a plain Gymnasium class and as compiled dynamics.

A ball rolls on a table; the agent tilts the table to bring the ball to rest in the middle. The
plain class is an ordinary Gymnasium environment. The compiled one has the same dynamics as two
compiled functions, so that agents learn in it without the Python interpreter.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi import RBLSPI, CompiledEnvironment, Dynamics, RBFGrid, evaluate, jit

SPACE = gym.spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), dtype=np.float64)


class Table(gym.Env[Any, Any]):
    """The ball on the table, in plain Python."""

    observation_space = SPACE
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Put the ball at a random position, at rest."""
        super().reset(seed=seed)
        self.position, self.velocity = self.np_random.uniform(-0.8, 0.8), 0.0
        return np.array([self.position, self.velocity]), {}

    def step(self, action: int) -> Any:
        """Tilt the table to the left, not at all, or to the right."""
        self.velocity = min(max(0.98 * self.velocity + 0.2 * (action - 1), -2.0), 2.0)
        self.position += 0.1 * self.velocity
        fallen = abs(self.position) > 1.0
        reward = -10.0 if fallen else -(self.position**2)
        return np.array([self.position, self.velocity]), reward, fallen, False, {}


@jit
def reset(parameters: Any, state: Any, rng: Any) -> None:
    state[0] = rng.uniform(-0.8, 0.8)
    state[1] = 0.0


@jit
def step(parameters: Any, state: Any, action: int, rng: Any) -> tuple[float, bool, bool]:
    state[1] = min(max(0.98 * state[1] + 0.2 * (action - 1), -2.0), 2.0)
    state[0] += 0.1 * state[1]
    fallen = abs(state[0]) > 1.0
    return (-10.0 if fallen else -(state[0] ** 2)), fallen, False


class CompiledTable(CompiledEnvironment):
    """The ball on the table, compiled."""

    def __init__(self, render_mode: str | None = None) -> None:
        dynamics = Dynamics(reset, step, np.empty(0), state_size=2)
        super().__init__(dynamics, SPACE, gym.spaces.Discrete(3), render_mode)


gym.register("Table-v0", Table, max_episode_steps=200)
gym.register("CompiledTable-v0", CompiledTable, max_episode_steps=200)


def main() -> None:
    for name in ("Table-v0", "CompiledTable-v0"):
        agent = RBLSPI(name, RBFGrid(5), prior_precision=0.1, noise_precision=10.0, seed=0)
        agent.learn(1)  # compiles, so that only learning is timed
        start = time.perf_counter()
        agent.learn(10_000)
        speed = 1e6 * (time.perf_counter() - start) / 10_000
        before = agent.episodes[:5, 1].mean()
        print(
            f"{name:17} {speed:5.1f} µs a step, return {before:.1f} in the first episodes, "
            f"{evaluate(agent, episodes=20).mean_return} after learning"
        )


if __name__ == "__main__":
    main()
