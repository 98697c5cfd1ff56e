"""Environments whose actions are the points of a grid, given by a wrapper or in other units."""

import gymnasium as gym

from rblspi.environments.actions import action_set


class Points(gym.ActionWrapper):
    """A Discrete space in place of a Box: the index of a point for the point."""

    def __init__(self, env):
        super().__init__(env)
        self.points = action_set(env.action_space)
        self.action_space = gym.spaces.Discrete(self.points.count)

    def action(self, action):
        """The point."""
        return self.points.action(action)
