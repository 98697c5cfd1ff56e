"""
Your own environment
====================

A ball rolls on a table. The agent tilts the table to bring the ball to rest in the middle. The
environment is an ordinary Gymnasium class; the agent needs nothing but its id.
"""

import gymnasium as gym
import numpy as np

from rblspi import FittedRmax, evaluate
from rblspi.plotting import maps, style


class Table(gym.Env):
    """A ball on a table that can be tilted to the left, not at all, or to the right."""

    observation_space = gym.spaces.Box(np.float32([-1, -2]), np.float32([1, 2]))
    action_space = gym.spaces.Discrete(3)
    metadata = {
        "render_modes": [],
        "observation_names": ["position", "velocity"],
        "action_names": ["tilt left", "level", "tilt right"],
    }

    def reset(self, *, seed=None, options=None):
        """Put the ball somewhere, at rest."""
        super().reset(seed=seed)
        self.ball = np.array([self.np_random.uniform(-0.8, 0.8), 0.0])
        return self.ball.astype(np.float32), {}

    def step(self, action):
        """Tilt the table, and let the ball roll."""
        position, velocity = self.ball
        velocity = np.clip(0.98 * velocity + 0.2 * (action - 1), -2.0, 2.0)
        self.ball = np.array([position + 0.1 * velocity, velocity])
        fallen = bool(abs(self.ball[0]) > 1.0)
        return self.ball.astype(np.float32), -10.0 if fallen else -(position**2), fallen, False, {}


gym.register("Table-v0", Table, max_episode_steps=200)

# %%
# Learn for 3,000 steps, which are a few dozen episodes. The ball gets anywhere within some twenty
# steps, so it is enough to look that far ahead: 0.95 to the power of 20 is a third.

agent = FittedRmax("Table-v0", discount=0.95, seed=0).learn(3_000)
print("return of the first episodes:", agent.episodes[:5, 1].round(1))
print("return of the policy it found:", evaluate(agent, episodes=20).mean_return)

# %%
# What it knows: the value of every state, how sure that is, and what it does. The line is one
# episode. Where the ball has hardly been, the standard deviation is large, or the map is grey.

with style.style():
    figure = maps.draw(maps.compute(agent, resolution=61))
