"""The interaction state of an agent: environment, features, random numbers, current episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from rblspi.core.deferred_signals import Deferral
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.environments.actions import action_set
from rblspi.environments.base import CompiledEnvironment, runs_compiled, step_limit
from rblspi.environments.copies import Copies
from rblspi.environments.spaces import action_mask, as_vector, checked_masks
from rblspi.features.base import Features
from rblspi.rollout.loop import (
    BAD_FEATURES,
    BAD_REWARD,
    EPISODES,
    FINE,
    NOT_STARTED,
    STEPS,
    AgentFunctions,
    EpisodeState,
    act,
    compiled_loop,
    first_failure,
    new_episode_state,
    observe,
    plain_loop,
)
from rblspi.rollout.memory import (
    CONTINUES,
    EPISODE,
    TERMINATED,
    TRUNCATED,
    Memory,
    Transition,
    new_memory,
    remember,
)
from rblspi.rollout.steps import checked_reset, checked_step


class Session:
    """The interaction state of one agent: environment, features and the current episode.

    Parameters
    ----------
    environment : gymnasium.Env
        Runs inside compiled code if `runs_compiled` says so and the basis is compiled.
    features : Features
    seed : int
        Seed of the environment's own random numbers.
    memory : int
        The number of transitions to keep.
    """

    def __init__(
        self, environment: gym.Env[Any, Any], features: Features, seed: int, memory: int = 0
    ) -> None:
        self.environment = environment
        self.features = features
        self.seed = seed
        # Each wrapper looks these up in the next, which takes as long as a step of some
        # environments.
        self.space = environment.observation_space
        self.action_set = action_set(environment.action_space)
        self.actions = self.action_set.count
        self.copies = 1  # environments that step together
        self.masked = False  # whether the environment has said what is allowed
        self.compiled = features.compiled and runs_compiled(environment)
        self.episode = new_episode_state(
            _state_size(environment, features), features.size, self.actions
        )
        self.episodes = [self.episode]  # of all copies
        self.keep(memory)
        self.environment_rng = seeding.np_random(seed)[0]
        self.seeded = False
        self.signals = Deferral()

    def keep(self, capacity: int) -> None:
        """Forget all transitions, and keep at most ``capacity`` from now on."""
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
        """Make some steps, or fewer if ``record`` fills up with episodes; see `interact`.

        Many copies may make a few steps more, or fewer if ``record`` might overflow.
        """
        loop, *environment = self._loop(functions)
        try:
            loop(
                *(*environment, agent, self.episode, self.memory, steps),
                *(record, counts, self.environment_rng, rng),
            )
        except BaseException:
            self.signals.close()
            self.clear_episode()  # it was left between step and observe
            raise
        self._raise_if_not_finite()

    def _loop(self, functions: AgentFunctions) -> tuple[Any, ...]:
        """The loop with the agent in it, and its arguments for the environment."""
        features = (self.features.function, self.features.parameters, self.features.input_size)
        if self.compiled:
            env: Any = self.environment.unwrapped
            return compiled_loop(functions), *env.dynamics[:3], self.limit, *features
        return plain_loop(functions), self._reset, self._step, np.empty(0), self.limit, *features

    def see_through(self, features: Features) -> None:
        """Use other features of the same size from now on, also for the present observation."""
        self.features = features
        for episode in self.episodes:
            if episode.steps[0] != NOT_STARTED:
                observation = episode.state[: features.input_size].copy()
                features.function(features.parameters, observation, episode.x)

    @property
    def limit(self) -> int:
        """Steps after which the loop itself ends an episode; -1: it leaves that to others."""
        return step_limit(self.environment) if self.compiled else -1

    def begin_episode(self) -> None:
        """Leave the episode under way: the next step begins a new one."""
        self.episode.steps[0] = NOT_STARTED

    def clear_episode(self) -> None:
        """Forget the episode under way, including any number that is not finite."""
        for array in self.episode:
            array[:] = 0
        self.episode.allowed[:] = 1
        self.episode.next_allowed[:] = 1
        self.episode.failure[0] = FINE
        self.begin_episode()

    def _reset(self, _parameters: Vector, state: Vector, _rng: Any) -> None:
        self.signals.open()
        observation, info = checked_reset(self.environment, None if self.seeded else self.seed)
        self.signals.close()
        self.seeded = True
        self._observe(observation, state)
        self._allow(observation, info, self.episode.next_allowed)

    def _step(
        self, _parameters: Vector, state: Vector, action: int, _rng: Any
    ) -> tuple[float, bool, bool]:
        self.signals.open()
        observation, reward, terminated, truncated, info = checked_step(
            self.environment, self.action_set.action(action)
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
        """Store which actions are allowed next, if the environment tells."""
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
        raise self._failure_error(failure, state)

    def _failure_error(self, failure: int, state: Vector) -> ValueError:
        """The error message for a state, features or a reward that is not finite."""
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


class VectorSession(Session):
    """Copies of an environment that step together, and the episodes under way in them.

    In every round the agent chooses an action for each copy, all copies step, and the agent learns
    from their transitions one after the other. The parameters are those of `Session`.
    """

    environment: Copies

    def __init__(self, environment: Copies, features: Features, seed: int, memory: int = 0) -> None:
        super().__init__(environment, features, seed, memory)
        self.copies = environment.vector.num_envs
        self.episodes = [
            new_episode_state(features.input_size, features.size, self.actions)
            for _ in range(self.copies)
        ]
        self.numbers = np.zeros(self.copies, np.int64)  # of the episodes, in the memory
        self.begun = False

    def _loop(self, functions: AgentFunctions) -> tuple[Any, ...]:
        return plain_loop(functions, interact_together), self

    def begin_episode(self) -> None:
        """Leave the episodes under way: the next step begins new ones in all copies."""
        super().begin_episode()
        self.begun = False

    def acting(self) -> list[EpisodeState | None]:
        """The episodes of all copies, begun where they have not; None where a copy is waiting."""
        if not self.begun:
            self.signals.open()
            self.environment.reset(seed=None if self.seeded else self.seed)
            self.signals.close()
            self.seeded = self.begun = True
            for episode in self.episodes:
                episode.steps[0] = NOT_STARTED
        waiting = self.environment.waiting
        for i, episode in enumerate(self.episodes):
            if episode.steps[0] == NOT_STARTED and not waiting[i]:
                observation, info = self.environment.now[i]
                self._see(i, observation, 0.0, episode.x)
                self._allow(observation, info, episode.allowed)
                episode.steps[0], episode.episode_return[0] = 0, 0.0
        return [None if w else e for w, e in zip(waiting, self.episodes, strict=True)]

    def _see(self, i: int, observation: Any, reward: float, features: Vector) -> None:
        """Store an observation and its features, which must be finite."""
        state = self.episodes[i].state
        self._observe(observation, state)
        failure = first_failure(state, reward)
        if failure == FINE:
            self.features.function(self.features.parameters, state, features)
            failure = FINE if np.isfinite(features).all() else BAD_FEATURES
        if failure != FINE:
            raise self._failure_error(failure, state.copy())

    def step_all(self, actions: Sequence[int]) -> Iterator[tuple[int, float, int]]:
        """Step all copies; yield the place, the reward and the end of every transition.

        The transition stays in `episodes` until the next one is requested.
        """
        chosen = self.action_set.actions(np.asarray(actions))
        self.signals.open()
        outcomes = self.environment.advance(chosen)
        self.signals.close()
        for i, observation, reward, terminated, truncated, info in outcomes:
            self._see(i, observation, reward, self.episodes[i].y)
            if not terminated:
                self._allow(observation, info, self.episodes[i].next_allowed)
            yield i, reward, TERMINATED if terminated else TRUNCATED if truncated else CONTINUES


def session_for(
    environment: gym.Env[Any, Any], features: Features, seed: int, memory: int = 0
) -> Session:
    """The session of an environment, or of all its copies."""
    kind = VectorSession if isinstance(environment, Copies) else Session
    return kind(environment, features, seed, memory)  # type: ignore[arg-type]


def interact_together(
    session: VectorSession,
    agent: Any,
    _episode: EpisodeState,
    memory: Memory,
    steps: int,
    record: Matrix,
    counts: Integers,
    _environment_rng: Any,
    agent_rng: Any,
) -> None:
    """`interact` for many copies of an environment that step together."""
    enough, episodes = counts[STEPS] + steps, session.episodes
    while counts[STEPS] < enough and counts[EPISODES] + len(episodes) <= len(record):
        acting = session.acting()
        before = [episode.state.copy() for episode in episodes]
        actions = [0 if e is None else act(agent, e.x, e.allowed, agent_rng) for e in acting]
        for i, reward, end in session.step_all(actions):
            episode = episodes[i]
            x, y, next_allowed = episode.x, episode.y, episode.next_allowed
            transition = Transition(x, actions[i], reward, y, next_allowed, end)
            observe(agent, transition, agent_rng)
            if episode.steps[0] == 0:
                memory.counters[EPISODE] += 1
                session.numbers[i] = memory.counters[EPISODE]
            memory.workspace[:] = before[i]
            remember(memory, session.numbers[i], episode.steps[0], episode.state, transition)
            episode.x[:], episode.allowed[:] = y, next_allowed
            episode.steps[0] += 1
            episode.episode_return[0] += reward
            counts[STEPS] += 1
            if end != CONTINUES:
                record[counts[EPISODES]] = episode.steps[0], episode.episode_return[0]
                counts[EPISODES] += 1
                episode.steps[0] = NOT_STARTED


def _state_size(environment: gym.Env[Any, Any], features: Features) -> int:
    if isinstance(environment.unwrapped, CompiledEnvironment):
        return environment.unwrapped.dynamics.state_size
    return features.input_size
