"""
Actions that are not always possible
====================================

An elevator cannot go below the first floor or above the last one. The observation is a ``Dict``,
and what it says under ``"action_mask"`` is a rule and no number to learn from: agents never take
another action.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

from rblspi import OPSRL, evaluate
from rblspi.plotting import style

FLOORS = 5


class Elevator(gym.Env):
    """Passengers call from every floor; the elevator goes down, stays or goes up."""

    observation_space = gym.spaces.Dict(
        {
            "floor": gym.spaces.Discrete(FLOORS),
            "calls": gym.spaces.MultiBinary(FLOORS),
            "action_mask": gym.spaces.MultiBinary(3),
        }
    )
    action_space = gym.spaces.Discrete(3)
    metadata = {"render_modes": [], "action_names": ["down", "stay", "up"]}

    def reset(self, *, seed=None, options=None):
        """Begin anywhere, with a call on another floor."""
        super().reset(seed=seed)
        self.floor = int(self.np_random.integers(FLOORS))
        self.calls = np.zeros(FLOORS, np.int8)
        self.calls[(self.floor + self.np_random.integers(1, FLOORS)) % FLOORS] = 1
        return self._observation(), {}

    def step(self, action):
        """Move, let passengers in, and count who is still waiting."""
        if not self._observation()["action_mask"][action]:
            raise ValueError(f"action {action} is not possible on floor {self.floor}")
        self.floor += int(action) - 1
        self.calls[self.floor] = 0
        waiting = float(self.calls.sum())
        self.calls |= (self.np_random.random(FLOORS) < 0.05).astype(np.int8)
        return self._observation(), -waiting, False, False, {}

    def _observation(self):
        mask = np.array([self.floor > 0, True, self.floor < FLOORS - 1], np.int8)
        return {"floor": self.floor, "calls": self.calls.copy(), "action_mask": mask}


gym.register("Elevator-v0", Elevator, max_episode_steps=100)

# %%
# Floor and calls have 160 combinations, so this is a table. The environment raises an error if it
# is asked for what is not possible; nobody does.

agent = OPSRL("Elevator-v0", discount=0.9, seed=0).learn(20_000)
print(agent)
print("return of the first episodes:", agent.episodes[:5, 1])
print("return of the policy it found:", evaluate(agent, episodes=20).mean_return)

# %%
# While it learns (left) it keeps trying what it does not know yet. Where does the policy go, if the
# only call is from another floor (right)? Masks come along with the observation.

env = gym.make("Elevator-v0")
env.reset(seed=0)
goes = np.full((FLOORS, FLOORS), np.nan)
for floor in range(FLOORS):
    for call in range(FLOORS):
        env.unwrapped.floor, env.unwrapped.calls = floor, np.eye(FLOORS, dtype=np.int8)[call]
        if floor != call:
            goes[floor, call] = agent.predict(env.unwrapped._observation(), deterministic=True)[0]

with style.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3), layout="constrained")
    waiting = -agent.episodes[:, 1] / agent.episodes[:, 0]
    left.plot(1 + np.arange(len(waiting)), waiting, color=style.BLUE)
    left.set(xlabel="episode", ylabel="waiting passengers, on average", ylim=(0, None))
    for (floor, call), action in np.ndenumerate(goes):
        if np.isfinite(action):
            right.text(call, floor, "↓·↑"[int(action)], ha="center", va="center", fontsize=14)
    ticks = range(FLOORS)
    right.set(
        xlabel="floor of the call", ylabel="floor of the elevator", xticks=ticks, yticks=ticks
    )
    right.set(xlim=(-0.5, FLOORS - 0.5), ylim=(-0.5, FLOORS - 0.5))
