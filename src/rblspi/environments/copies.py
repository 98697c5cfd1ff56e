"""A vector environment: its copies one by one, however they begin new episodes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

from rblspi.core.types import Array, Mask

#: arguments of `gymnasium.make_vec` that it leaves in the environment's arguments
_OF_MAKE_VEC = ("num_envs", "vectorization_mode", "vector_kwargs", "max_episode_steps")


class Outcome(NamedTuple):
    """The result of a step of one copy."""

    place: int
    observation: Any  # the last one of the episode if it has ended
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


class Copies(gym.Env[Any, Any]):
    """The copies in a vector environment.

    An agent learns from all copies, see `rblspi.rollout.session`. Used as a single environment, it
    shows the first copy, and the others get the same actions.

    A vector environment begins new episodes within the step that ends one, with the next step, or
    when it is asked to. This is the one place that knows: `advance` gives the outcomes of steps
    alone, and `now` has the observation and the info from which a copy acts next, unless it is
    `waiting` for the first one of its episode.
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        self.mode = vector.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.waiting: Mask = np.zeros(vector.num_envs, np.bool_)
        self.now: list[tuple[Any, dict[str, Any]]] = [(None, {})] * vector.num_envs
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
        self._begin(np.ones_like(self.waiting), seed=seed, options=options)
        return self.now[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step all copies, and return the first one's result."""
        first = self.advance(np.stack([action] * self.vector.num_envs))[0]
        return first.observation, first.reward, first.terminated, first.truncated, dict(first.info)

    def close(self) -> None:
        """Close all copies."""
        self.vector.close()

    def advance(self, actions: Array) -> list[Outcome]:
        """Step all copies; one that was waiting has no outcome."""
        observations, rewards, terminated, truncated, infos = self.vector.step(actions)
        found, ended = [], (terminated | truncated) & ~self.waiting
        for i, observation in enumerate(self._apart(observations)):
            info = info_of(infos, i)
            self.now[i] = observation, info
            if self.waiting[i]:
                continue
            if ended[i] and "final_obs" in info:  # it has begun its next episode already
                observation, info = info["final_obs"], info.get("final_info", {})
            ends = bool(terminated[i]), bool(truncated[i])
            found.append(Outcome(i, observation, float(rewards[i]), *ends, info))
        self.waiting = ended & (self.mode == AutoresetMode.NEXT_STEP)
        if self.mode == AutoresetMode.DISABLED and ended.any():
            self.begin_in(ended)
        return found

    @property
    def begin_apart(self) -> bool:
        """Whether copies can begin an episode without the others."""
        apart = isinstance(self.vector.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        return apart or self.mode == AutoresetMode.DISABLED

    def begin_in(self, which: Mask) -> None:
        """Begin new episodes in some copies."""
        self._begin(which, options={"reset_mask": which})

    def _begin(self, which: Mask, **arguments: Any) -> None:
        observations, infos = self.vector.reset(**arguments)
        for i, observation in enumerate(self._apart(observations)):
            if which[i]:
                self.now[i], self.waiting[i] = (observation, info_of(infos, i)), False

    def _apart(self, observations: Any) -> Iterator[Any]:
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
