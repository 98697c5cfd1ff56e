"""An environment that remembers what was done in it."""

import gymnasium as gym


class Diary(gym.Wrapper):
    """Writes down the actions, and shows rewards in other units and with an offset."""

    def __init__(self, env, unit=1.0, offset=0.0):
        super().__init__(env)
        self.unit, self.offset = unit, offset
        self.actions = []

    def step(self, action):
        self.actions.append(int(action))
        observation, reward, *rest = self.env.step(action)
        return observation, self.unit * float(reward) + self.offset, *rest
