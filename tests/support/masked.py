"""A small table with masks, to be learnt by any agent."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary

STATES, ACTIONS = 4, 3


class Masked(gym.Env):
    """A random walk over a few states, which raises an error if a forbidden action is taken."""

    def __init__(self, masks, where="info", seed=0):
        self.masks, self.where = np.array(masks, np.int8), where
        seen = Discrete(STATES)
        inside = Dict(state=seen, action_mask=MultiBinary(ACTIONS))
        self.observation_space = seen if where == "info" else inside
        self.action_space = Discrete(ACTIONS, start=5)
        self.order = np.random.default_rng(seed).integers(STATES, size=(STATES, ACTIONS))

    def _seen(self):
        mask = self.masks[self.state]
        if self.where == "info":
            return self.state, {"action_mask": mask}
        return {"state": self.state, "action_mask": mask}, {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = int(self.np_random.integers(STATES)), 0
        return self._seen()

    def step(self, action):
        assert self.masks[self.state, action - 5], "a forbidden action was taken"
        reward = float(self.state == 0)
        self.state, self.time = int(self.order[self.state, action - 5]), self.time + 1
        observation, info = self._seen()
        return observation, reward, self.time == 9, False, info
