"""Collecting transitions: let a policy act in an environment, and keep what happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi import check
from rblspi.compiled import GENERATOR, INT, MATRIX, RESET, STEP, VECTOR, Entry, function_type
from rblspi.environments.base import CompiledEnvironment
from rblspi.environments.find import make
from rblspi.transitions import Transitions

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Policy = Callable[[Any], int]

#: transitions of a chunk, and of a row group where it is written
CHUNK = 2**19


class Collected(NamedTuple):
    """A chunk of transitions, and where a limit of time cut the episode."""

    transitions: Transitions
    truncated: NDArray[np.bool_]


def collect(
    env: gym.Env[Any, Any] | str,
    transitions: int | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    *,
    episodes: int | None = None,
) -> Iterator[Collected]:
    """Act for a number of steps or of episodes; yields what happened in chunks.

    Parameters
    ----------
    env : gymnasium.Env or str
        A compiled domain that nobody has wrapped is walked through in compiled code, if actions
        are random.
    transitions, episodes : int
        At least one of them; whichever ends first.
    policy : callable, optional
        From an observation to an action of the environment; uniformly random unless given.
    seed : int
    """
    environment = make(env)
    if not isinstance(environment.action_space, gym.spaces.Discrete):
        raise TypeError(f"action space {environment.action_space} is not discrete")
    if transitions is None and episodes is None:
        raise ValueError("collect() needs transitions or episodes")
    steps = math.inf if transitions is None else check.count("transitions", transitions)
    games = 2**62 if episodes is None else check.count("episodes", episodes)
    check.count("seed", seed, least=0)
    walk = (
        _CompiledWalk(environment, seed)
        if policy is None and runs_compiled(environment)
        else _PlainWalk(environment, policy, seed)
    )
    while steps > 0 and games > 0:
        rows = int(min(steps, CHUNK))
        log, ended = walk.go(np.empty((rows, 2 * walk.inputs + 4)), games)
        steps -= len(log)
        games -= ended
        yield _as_columns(log, environment.observation_space)


def runs_compiled(env: gym.Env[Any, Any]) -> bool:
    """Whether nothing but the wrappers of `gymnasium.make` stands before compiled dynamics."""
    return (
        isinstance(env.unwrapped, CompiledEnvironment)
        and env.spec is not None
        and not env.spec.additional_wrappers
        and env.unwrapped.render_mode is None
    )


def _as_columns(log: Matrix, space: gym.Space[Any]) -> Collected:
    """The rows (s, s', a, r, terminated, truncated) of a log, taken apart."""
    size = (log.shape[1] - 4) // 2
    shape = (len(log), *(space.shape or ()))
    kind = np.int64 if np.issubdtype(space.dtype, np.integer) else np.float64
    states, after = (
        np.ascontiguousarray(part.reshape(shape), kind)
        for part in (log[:, :size], log[:, size : 2 * size])
    )
    action, reward, terminated, truncated = np.ascontiguousarray(log[:, 2 * size :].T)
    transitions = Transitions(states, action.astype(np.int64), reward, after, terminated == 1.0)
    return Collected(transitions, truncated == 1.0)


class _CompiledWalk:
    """Random actions in a compiled domain."""

    def __init__(self, env: Any, seed: int) -> None:
        self.dynamics = env.unwrapped.dynamics
        self.inputs = int(np.prod(env.observation_space.shape or (), dtype=int))
        self.actions = int(env.action_space.n)
        self.limit = int(env.spec.max_episode_steps or -1)
        self.state = np.zeros(self.dynamics.state_size)
        self.clock = np.full(1, -1, np.int64)  # steps in this episode; -1: one has to begin
        self.rng = np.random.default_rng(seed)

    def go(self, log: Matrix, episodes: int) -> tuple[Matrix, int]:
        """Fill the log, or as much of it as so many episodes need."""
        rows, ended = _walk(
            *(self.dynamics.reset, self.dynamics.step, self.dynamics.parameters),
            *(self.limit, self.inputs, self.actions, self.state, self.clock),
            *(log, episodes, self.rng),
        )
        return log[:rows], ended


def _walk_rows(
    reset: Callable[..., None],
    step: Callable[..., tuple[float, bool, bool]],
    parameters: Vector,
    limit: int,
    inputs: int,
    actions: int,
    state: Vector,
    clock: NDArray[np.int64],
    log: Matrix,
    episodes: int,
    rng: Any,
) -> tuple[int, int]:
    """Write a row of the log for every random step; returns rows and episodes that ended."""
    ended = 0
    for i in range(len(log)):
        if clock[0] < 0:
            reset(parameters, state, rng)
            clock[0] = 0
        row = log[i]
        row[:inputs] = state[:inputs]
        action = int(rng.random() * actions)
        reward, terminated, truncated = step(parameters, state, action, rng)
        clock[0] += 1
        cut = (truncated or clock[0] == limit) and not terminated
        row[inputs : 2 * inputs] = state[:inputs]
        row[2 * inputs] = action
        row[2 * inputs + 1] = reward
        row[2 * inputs + 2] = terminated
        row[2 * inputs + 3] = cut
        if terminated or cut:
            clock[0] = -1
            ended += 1
            if ended == episodes:
                return i + 1, ended
    return len(log), ended


_walk = Entry(
    _walk_rows,
    *(function_type(RESET), function_type(STEP), VECTOR, INT, INT, INT),
    *(VECTOR, INT[::1], MATRIX, INT, GENERATOR),
    what="the collection of random transitions",
)


class _PlainWalk:
    """Any policy in any environment."""

    def __init__(self, env: Any, policy: Policy | None, seed: int) -> None:
        environment_seed, action_seed = np.random.SeedSequence(seed).generate_state(2) >> 1
        self.env = env
        self.inputs = int(np.prod(env.observation_space.shape or (), dtype=int))
        self.first_action = int(env.action_space.start)
        env.action_space.seed(int(action_seed))
        self.policy = policy or (lambda observation: env.action_space.sample())
        self.seed: int | None = int(environment_seed)
        self.observation: Any = None

    def go(self, log: Matrix, episodes: int) -> tuple[Matrix, int]:
        """Fill the log, or as much of it as so many episodes need."""
        ended = 0
        for i, row in enumerate(log):
            if self.observation is None:
                self.observation, _ = self.env.reset(seed=self.seed)
                self.seed = None
            row[: self.inputs] = np.asarray(self.observation, np.float64).ravel()
            action = int(self.policy(self.observation))
            after, reward, terminated, truncated, _ = self.env.step(action)
            row[self.inputs : 2 * self.inputs] = np.asarray(after, np.float64).ravel()
            cut = truncated and not terminated
            row[2 * self.inputs :] = action - self.first_action, reward, terminated, cut
            self.observation = None if terminated or truncated else after
            if self.observation is None:
                ended += 1
                if ended == episodes:
                    return log[: i + 1], ended
        return log, ended
