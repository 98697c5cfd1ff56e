"""
A compiled environment
======================

If the dynamics fit into two functions of numbers, they can be compiled into the learning loop. An
agent then learns without the Python interpreter. The compiled environment is a Gymnasium
environment like any other.
"""

import time

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, CompiledEnvironment, Dynamics, RBFGrid, jit
from rblspi.plotting import style

SPACE = gym.spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), dtype=np.float64)

# %%
# ``reset`` writes a first state; ``step`` changes the state and returns the reward, whether the
# episode is over, and whether it was cut short. ``parameters`` could hold constants.


@jit
def reset(parameters, state, rng):
    """Put the ball somewhere, at rest."""
    state[0] = rng.uniform(-0.8, 0.8)
    state[1] = 0.0


@jit
def step(parameters, state, action, rng):
    """Tilt the table, and let the ball roll."""
    state[1] = min(max(0.98 * state[1] + 0.2 * (action - 1), -2.0), 2.0)
    state[0] += 0.1 * state[1]
    fallen = abs(state[0]) > 1.0
    return (-10.0 if fallen else -(state[0] ** 2)), fallen, False


class CompiledTable(CompiledEnvironment):
    """The ball on the table, compiled."""

    def __init__(self, render_mode=None):
        dynamics = Dynamics(reset, step, np.empty(0), state_size=2)
        super().__init__(dynamics, SPACE, gym.spaces.Discrete(3), render_mode)


gym.register("CompiledTable-v0", CompiledTable, max_episode_steps=200)

# %%
# A wrapper that does nothing makes the same environment run as Python. The agents are equal to the
# last bit, and one of them is faster.


class Plain(gym.Wrapper):
    """Hides that the environment is compiled."""


speeds = {}
agents = {}
for name, env in (
    ("compiled", gym.make("CompiledTable-v0")),
    ("as Python", Plain(gym.make("CompiledTable-v0"))),
):
    agents[name] = RBLSPI(env, RBFGrid(4), seed=0).learn(1)  # compiles, so that learning is timed
    start = time.perf_counter()
    agents[name].learn(5_000)
    speeds[name] = 1e6 * (time.perf_counter() - start) / 5_000

with style.style():
    figure, axes = plt.subplots(figsize=(5, 1.6), layout="constrained")
    axes.barh(list(speeds), list(speeds.values()), color=[style.BLUE, style.ORANGE], height=0.6)
    axes.bar_label(axes.containers[0], fmt="%.0f µs", padding=3)
    axes.set_xlabel("time of a step, with learning")
    axes.margins(x=0.15)
    axes.grid(axis="y", visible=False)
