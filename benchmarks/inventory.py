"""A shop that orders stock for random demand: an environment that nothing here was made for."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Inventory(gym.Env[int, int]):
    """Order 0 to 4 items a day, at most 20 in stock; demand is Poisson with a mean of 3.

    A sold item earns 2, an ordered one costs 1, an order 0.5, and a night in stock 0.1 an item.
    """

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(21)
        self.action_space = gym.spaces.Discrete(5)
        self.stock = 10

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start with a random stock."""
        super().reset(seed=seed)
        self.stock = int(self.np_random.integers(21))
        return self.stock, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One day; it never ends."""
        stock = min(self.stock + int(action), 20)
        sold = min(stock, int(self.np_random.poisson(3.0)))
        self.stock = stock - sold
        reward = 2.0 * sold - 1.0 * action - 0.5 * (action > 0) - 0.1 * self.stock
        return self.stock, float(np.round(reward, 6)), False, False, {}
