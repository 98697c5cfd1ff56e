"""An environment of which only logs are known: what is seen and done there, but not what follows.

Agents that were fitted to logs without a simulator need one to be saved and loaded like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

ID = "rblspi-logs/Logged-v0"


class LoggedEnvironment(gym.Env[Any, Any]):
    """Spaces without dynamics.

    Parameters
    ----------
    actions : int
    low, high : sequence of float, optional
        Range of the observations that were seen, where they are vectors.
    states : int, optional
        How many there are, where observations are whole numbers.
    first_state : int
    """

    def __init__(
        self,
        actions: int,
        low: Sequence[float] | None = None,
        high: Sequence[float] | None = None,
        states: int | None = None,
        first_state: int = 0,
    ) -> None:
        self.action_space = gym.spaces.Discrete(actions)
        self.observation_space: gym.Space[Any]
        if states is not None:
            self.observation_space = gym.spaces.Discrete(states, start=first_state)
        else:
            lowest, highest = (np.array(bound, np.float64) for bound in (low, high))
            self.observation_space = gym.spaces.Box(lowest, highest, dtype=np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Refuse: nobody knows where episodes begin."""
        raise ValueError(
            "only logs of this environment are known, so nothing can be tried in it: pass one "
            "that can be simulated, --env ENV_ID"
        )

    def step(self, action: Any) -> Any:
        """Refuse, as `reset` does."""
        return self.reset()


def logged_environment(space: gym.Space[Any], actions: int) -> gym.Env[Any, Any]:
    """An environment with these observations and so many actions."""
    if isinstance(space, gym.spaces.Discrete):
        seen: dict[str, Any] = {"states": int(space.n), "first_state": int(space.start)}
    elif isinstance(space, gym.spaces.Box) and len(space.shape) <= 1:
        low, high = np.atleast_1d(space.low), np.atleast_1d(space.high)
        seen = {"low": low.tolist(), "high": high.tolist()}
    else:
        raise TypeError(f"observations {space} are neither whole numbers nor vectors: flatten them")
    return gym.make(ID, disable_env_checker=True, actions=actions, **seen)


if ID not in gym.registry:
    gym.register(ID, entry_point=f"{__name__}:LoggedEnvironment", disable_env_checker=True)
