"""An environment that remembers what was done in it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym


class Diary(gym.Wrapper):
    """Writes down the actions, and shows rewards in other units and with an offset."""

    def __init__(self, env: gym.Env[Any, Any], unit: float = 1.0, offset: float = 0.0) -> None:
        super().__init__(env)
        self.unit, self.offset = unit, offset
        self.actions: list[int] = []

    def step(self, action: Any) -> Any:
        self.actions.append(int(action))
        observation, reward, *rest = self.env.step(action)
        return observation, self.unit * float(reward) + self.offset, *rest
