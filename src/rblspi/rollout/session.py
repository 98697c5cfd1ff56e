"""An environment as an agent lives in it: its features, its random numbers, the present episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from rblspi.core.deferred_signals import Deferral
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.environments.base import CompiledEnvironment, runs_compiled, step_limit
from rblspi.environments.lookup import discrete_actions
from rblspi.environments.masks import action_mask, checked_masks
from rblspi.environments.vectors import as_vector
from rblspi.features.base import Features
from rblspi.rollout import protocol
from rblspi.rollout.loop import (
    BAD_FEATURES,
    BAD_REWARD,
    FINE,
    NOT_STARTED,
    AgentFunctions,
    EpisodeState,
    compiled_loop,
    new_episode_state,
    plain_loop,
)
from rblspi.rollout.memory import new_memory


class Session:
    """An environment seen through features, and the episode under way in it.

    Parameters
    ----------
    environment : gymnasium.Env
        Runs inside compiled code if `runs_compiled` says so and the basis is compiled.
    features : Features
    seed : int
        Of the environment's own random numbers.
    memory : int
        The number of transitions to keep.
    """

    def __init__(
        self, environment: gym.Env[Any, Any], features: Features, seed: int, memory: int = 0
    ) -> None:
        self.environment = environment
        self.features = features
        self.seed = seed
        # Wrappers look these up in one another, which takes as long as a step of some environments.
        self.space = environment.observation_space
        self.first_action = int(discrete_actions(environment).start)
        self.actions = int(discrete_actions(environment).n)
        self.copies = 1  # that step together
        self.masked = False  # whether the environment has said what is allowed
        self.compiled = features.compiled and runs_compiled(environment)
        self.episode = new_episode_state(
            _state_size(environment, features), features.size, self.actions
        )
        self.keep(memory)
        self.environment_rng = seeding.np_random(seed)[0]
        self.seeded = False
        self.signals = Deferral()

    def keep(self, capacity: int) -> None:
        """Forget all transitions, and keep at most so many from now on."""
        self.memory = new_memory(capacity, self.features.input_size, self.actions)

    def run(
        self,
        functions: AgentFunctions,
        agent: Any,
        rng: np.random.Generator,
        steps: int,
        record: Matrix,
        counts: Integers,
    ) -> None:
        """Make some steps, or fewer if ``record`` is full of episodes before; see `interact`."""
        if self.compiled:
            dynamics = self.environment.unwrapped.dynamics  # type: ignore[attr-defined]
            loop = compiled_loop(functions)
            environment = (dynamics.reset, dynamics.step, dynamics.parameters)
        else:
            loop = plain_loop(functions)
            environment = (self._reset, self._step, np.empty(0))
        try:
            loop(
                *environment,
                self.limit,
                *(self.features.function, self.features.parameters, self.features.input_size),
                *(agent, self.episode, self.memory, steps),
                *(record, counts, self.environment_rng, rng),
            )
        except BaseException:
            self.signals.close()
            self.clear_episode()  # it was left between step and observe
            raise
        self._raise_if_not_finite()

    def see_through(self, features: Features) -> None:
        """Use other features of the same size from now on, for the present observation too."""
        self.features = features
        for episode in self._episodes():
            if episode.steps[0] != NOT_STARTED:
                observation = episode.state[: features.input_size].copy()
                features.function(features.parameters, observation, episode.x)

    def _episodes(self) -> Sequence[EpisodeState]:
        """Those under way."""
        return [self.episode]

    @property
    def limit(self) -> int:
        """Steps after which the loop itself ends an episode; -1: it leaves that to others."""
        return step_limit(self.environment) if self.compiled else -1

    def begin_episode(self) -> None:
        """Leave the episode under way: the next step begins a new one."""
        self.episode.steps[0] = NOT_STARTED

    def clear_episode(self) -> None:
        """Forget the episode under way, with whatever is not finite in it."""
        for array in self.episode:
            array[:] = 0
        self.episode.allowed[:] = 1
        self.episode.next_allowed[:] = 1
        self.episode.failure[0] = FINE
        self.begin_episode()

    def _reset(self, _parameters: Vector, state: Vector, _rng: Any) -> None:
        self.signals.open()
        observation, info = protocol.reset(self.environment, None if self.seeded else self.seed)
        self.signals.close()
        self.seeded = True
        self._observe(observation, state)
        self._allow(observation, info, self.episode.next_allowed)

    def _step(
        self, _parameters: Vector, state: Vector, action: int, _rng: Any
    ) -> tuple[float, bool, bool]:
        self.signals.open()
        observation, reward, terminated, truncated, info = protocol.step(
            self.environment, action + self.first_action
        )
        self.signals.close()
        self._observe(observation, state)
        if not terminated:
            self._allow(observation, info, self.episode.next_allowed)
        return reward, terminated, truncated

    def _observe(self, observation: Any, state: Vector) -> None:
        """Write an observation into the state; NumPy would broadcast one that is too small."""
        try:
            vector = as_vector(self.space, observation)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.environment} returned {error}") from error
        if vector.size != self.features.input_size:
            raise ValueError(
                f"{self.environment} returned an observation of {vector.size} numbers, but its "
                f"observation space has {self.features.input_size}"
            )
        state[: vector.size] = vector

    def _allow(self, observation: Any, info: Mapping[str, Any], allowed: Allowed) -> None:
        """Write down which actions are allowed next, if the environment says so."""
        mask = action_mask(self.space, observation, info)
        if mask is not None:
            self.masked = True
            allowed[:] = checked_masks(mask, self.actions, 1)[0]
        elif self.masked:
            allowed[:] = 1

    def _raise_if_not_finite(self) -> None:
        failure, state = self.episode.failure[0], self.episode.state.copy()
        if failure == FINE:
            return
        self.clear_episode()
        raise self.failure_error(failure, state)

    def failure_error(self, failure: int, state: Vector) -> ValueError:
        """What to say of a state, its features or a reward that is not finite."""
        if failure == BAD_FEATURES:
            return ValueError(
                f"the basis makes features that are not finite of observation {state}; "
                "check its function or its bounds. What was learnt before is kept"
            )
        what = "reward" if failure == BAD_REWARD else f"observation {state}"
        return ValueError(
            f"{self.environment} returned a {what} that is not finite; check the environment's "
            "step() and reset(). What was learnt before is kept"
        )


def _state_size(environment: gym.Env[Any, Any], features: Features) -> int:
    if isinstance(environment.unwrapped, CompiledEnvironment):
        return environment.unwrapped.dynamics.state_size
    return features.input_size
