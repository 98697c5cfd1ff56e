"""Many copies of an environment, all of which one agent learns from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from rblspi.core.types import Integers, Matrix, Vector
from rblspi.environments.copies import Copies, info_of
from rblspi.features.base import Features
from rblspi.rollout.loop import (
    BAD_FEATURES,
    EPISODES,
    FINE,
    STEPS,
    AgentFunctions,
    EpisodeState,
    act,
    first_failure,
    new_episode_state,
    observe,
    plain_loop,
)
from rblspi.rollout.memory import EPISODE, Memory, remember
from rblspi.rollout.session import Session
from rblspi.rollout.transition import CONTINUES, TERMINATED, TRUNCATED, Transition


class VectorSession(Session):
    """Copies of an environment that step together, and the episodes under way in them.

    In every round the agent chooses an action for each copy, all copies step, and the agent learns
    from their transitions one after the other. How episodes begin again is up to the vector
    environment: with its next step, within the same one, or when it is asked to.

    Parameters
    ----------
    environment : Copies
    features : Features
    seed : int
        Of the random numbers of the copies.
    memory : int
        The number of transitions to keep.
    """

    environment: Copies

    def __init__(self, environment: Copies, features: Features, seed: int, memory: int = 0) -> None:
        super().__init__(environment, features, seed, memory)
        self.copies = environment.vector.num_envs
        self.mode = environment.vector.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.episodes = [
            new_episode_state(features.input_size, features.size, self.actions)
            for _ in range(self.copies)
        ]
        self.numbers = np.zeros(self.copies, np.int64)  # of the episodes, in the memory
        self.waiting = np.zeros(self.copies, np.bool_)  # for a first observation
        self.begun = False

    def run(
        self,
        functions: AgentFunctions,
        agent: Any,
        rng: np.random.Generator,
        steps: int,
        record: Matrix,
        counts: Integers,
    ) -> None:
        """Make so many steps or a few more, or fewer if ``record`` might overflow with episodes."""
        arguments = (agent, self.episodes, self.memory, steps, record, counts)
        try:
            plain_loop(functions, interact_together)(self, *arguments, self.environment_rng, rng)
        except BaseException:
            self.signals.close()
            self.begin_episode()
            raise

    def begin_episode(self) -> None:
        """Leave the episodes under way: the next step begins new ones in all copies."""
        super().begin_episode()
        self.begun = False

    def _episodes(self) -> Sequence[EpisodeState]:
        return self.episodes

    def begin_all(self) -> None:
        """Begin an episode in every copy."""
        vector = self.environment.vector
        self.signals.open()
        observations, infos = vector.reset(seed=None if self.seeded else self.seed)
        self.signals.close()
        self.seeded = self.begun = True
        for i, observation in enumerate(self.environment.apart(observations)):
            self.begin(i, observation, info_of(infos, i))

    def begin(self, i: int, observation: Any, info: dict[str, Any]) -> None:
        """Begin an episode of one copy."""
        episode = self.episodes[i]
        self.see(i, observation, 0.0, episode.x)
        self._allow(observation, info, episode.allowed)
        episode.steps[0], episode.episode_return[0] = 0, 0.0
        self.waiting[i] = False

    def see(self, i: int, observation: Any, reward: float, features: Vector) -> None:
        """Take in an observation and its features, which have to be finite."""
        state = self.episodes[i].state
        self._observe(observation, state)
        failure = first_failure(state, reward)
        if failure == FINE:
            self.features.function(self.features.parameters, state, features)
            failure = FINE if np.isfinite(features).all() else BAD_FEATURES
        if failure != FINE:
            raise self.failure_error(failure, state.copy())

    def step_all(self, actions: Sequence[int]) -> Iterator[tuple[int, float, int]]:
        """Step all copies; the place, the reward and the end of every transition.

        The transition is in `episodes` until the next one is asked for. A copy that has only begun
        a new episode has none.
        """
        vector = self.environment.vector
        chosen = np.asarray(actions) + self.first_action
        self.signals.open()
        observations, rewards, terminated, truncated, infos = vector.step(chosen)
        self.signals.close()
        anew = np.zeros(self.copies, np.bool_)
        for i, observation in enumerate(self.environment.apart(observations)):
            info, reward = info_of(infos, i), float(rewards[i])
            if self.waiting[i]:
                self.begin(i, observation, info)
                continue
            end = TERMINATED if terminated[i] else TRUNCATED if truncated[i] else CONTINUES
            last = info["final_obs"] if end and "final_obs" in info else observation
            self.see(i, last, reward, self.episodes[i].y)
            if end != TERMINATED:
                said = info.get("final_info", {}) if end else info
                self._allow(last, said, self.episodes[i].next_allowed)
            yield i, reward, end
            if end and self.mode == AutoresetMode.SAME_STEP:
                self.begin(i, observation, info)
            self.waiting[i] = end and self.mode == AutoresetMode.NEXT_STEP
            anew[i] = end and self.mode == AutoresetMode.DISABLED
        if anew.any():
            self.signals.open()
            observations, infos = vector.reset(options={"reset_mask": anew})
            self.signals.close()
            for i, observation in enumerate(self.environment.apart(observations)):
                if anew[i]:
                    self.begin(i, observation, info_of(infos, i))


def session_for(
    environment: gym.Env[Any, Any], features: Features, seed: int, memory: int = 0
) -> Session:
    """The session of an environment, or of all its copies."""
    kind = VectorSession if isinstance(environment, Copies) else Session
    return kind(environment, features, seed, memory)  # type: ignore[arg-type]


def interact_together(
    session: VectorSession,
    agent: Any,
    episodes: Sequence[EpisodeState],
    memory: Memory,
    steps: int,
    record: Matrix,
    counts: Integers,
    _environment_rng: Any,
    agent_rng: Any,
) -> None:
    """`rblspi.rollout.loop.interact`, in many copies of an environment that step together."""
    enough = counts[STEPS] + steps
    while counts[STEPS] < enough and counts[EPISODES] + len(episodes) <= len(record):
        if not session.begun:
            session.begin_all()
        before = [episode.state.copy() for episode in episodes]
        actions = [
            0 if waiting else act(agent, episode.x, episode.allowed, agent_rng)
            for episode, waiting in zip(episodes, session.waiting, strict=True)
        ]
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
