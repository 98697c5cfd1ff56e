"""A vector environment, seen as one environment."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

#: arguments of `gymnasium.make_vec` that it leaves in the environment's arguments
_OF_MAKE_VEC = ("num_envs", "vectorization_mode", "vector_kwargs", "max_episode_steps")


class Copies(gym.Env[Any, Any]):
    """The copies in a vector environment.

    An agent learns from all copies, see `rblspi.rollout.session`. Used as a single environment, it
    shows the first copy, and the others get the same actions.

    Parameters
    ----------
    vector : gymnasium.vector.VectorEnv
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space
        self.metadata = vector.metadata
        self.spec = _spec_of_one(vector)

    def __str__(self) -> str:
        return str(self.vector)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes in all copies, and return the first one's observation."""
        observations, infos = self.vector.reset(seed=seed, options=options)
        return next(self.apart(observations)), info_of(infos, 0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step all copies, and return the first one's result."""
        actions = np.stack([action] * self.vector.num_envs)
        observations, rewards, terminated, truncated, infos = self.vector.step(actions)
        first, info = next(self.apart(observations)), info_of(infos, 0)
        if "final_obs" in info:  # it has begun its next episode already
            first, info = info["final_obs"], info.get("final_info", {})
        return first, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def close(self) -> None:
        """Close all copies."""
        self.vector.close()

    def apart(self, observations: Any) -> Iterator[Any]:
        """The observations of a batch, one by one."""
        return iter(iterate(self.vector.observation_space, observations))


def info_of(infos: Mapping[str, Any], place: int) -> dict[str, Any]:
    """The part of a vector environment's ``infos`` that is about one copy."""
    found = {}
    for name, values in infos.items():
        says = infos.get(f"_{name}")
        if (name.startswith("_") and name[1:] in infos) or (says is not None and not says[place]):
            continue
        found[name] = info_of(values, place) if isinstance(values, Mapping) else values[place]
    return found


def _spec_of_one(vector: VectorEnv[Any, Any, Any]) -> EnvSpec | None:
    """The specification of one copy; None if it is unknown."""
    if isinstance(vector.unwrapped, SyncVectorEnv):
        return vector.unwrapped.envs[0].spec
    if vector.spec is None:
        return None
    spec = copy.deepcopy(vector.spec)
    for name in _OF_MAKE_VEC:
        spec.kwargs.pop(name, None)
    return spec
