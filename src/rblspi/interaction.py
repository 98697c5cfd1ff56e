"""The one loop of agent and environment.

The source below runs compiled where the environment and the basis are compiled, and as plain
Python around the same compiled agent where they are not.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import gymnasium as gym
import numba
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from rblspi.compiled import (
    BOOL,
    FEATURES,
    FLOAT,
    GENERATOR,
    INT,
    MATRIX,
    RESET,
    STEP,
    VECTOR,
    Entry,
    function_type,
    jit,
    jit_reordering,
)
from rblspi.environments.base import CompiledEnvironment
from rblspi.features.base import Features

Vector = NDArray[np.float64]


class Place(NamedTuple):
    """Where in the environment the agent is."""

    state: Vector  # of the environment              (state_size,)
    x: Vector  # features of the present observation (n,)
    y: Vector  # features of the next observation    (n,)
    clock: NDArray[np.int64]  # steps in this episode; -1: an episode has to begin; failure (2,)
    earned: Vector  # return of this episode         (1,)


def new_place(state_size: int, features: int) -> Place:
    """Before the first episode."""
    return Place(
        np.zeros(state_size),
        np.zeros(features),
        np.zeros(features),
        np.array([-1, FINE], np.int64),
        np.zeros(1),
    )


#: values of ``clock[1]``
FINE, BAD_OBSERVATION, BAD_REWARD, BAD_FEATURES = range(4)


def act(agent: Any, x: Vector, rng: Any) -> int:
    """Choose an action: stands for the agent's own, see `AgentFunctions.inside`."""
    raise NotImplementedError


def observe(
    agent: Any,
    x: Vector,
    action: int,
    reward: float,
    y: Vector,
    terminated: bool,
    ended: bool,
    rng: Any,
) -> None:
    """Learn from a transition: stands for the agent's own, see `AgentFunctions.inside`."""
    raise NotImplementedError


def interact(
    reset: Callable[..., None],
    step: Callable[..., tuple[float, bool, bool]],
    parameters: Vector,
    limit: int,
    features: Callable[..., None],
    basis: Vector,
    inputs: int,
    agent: Any,
    place: Place,
    steps: int,
    record: NDArray[np.float64],
    environment_rng: Any,
    agent_rng: Any,
) -> tuple[int, int]:
    """Let the agent act for some steps, or until ``record`` is full of finished episodes.

    Line numbers are those of Algorithm 1. Returns how many steps and episodes were made; a
    row of ``record`` gets an episode's length and its undiscounted return.
    """
    state, x, y, clock, earned = place
    observation = state[:inputs]
    episodes = 0
    for t in range(steps):
        if clock[0] < 0:
            reset(parameters, state, environment_rng)  # line 2
            clock[1] = _health(observation, 0.0)
            if clock[1] != FINE:
                return t, episodes
            features(basis, observation, x)
            if not _all_finite(x):
                clock[1] = BAD_FEATURES
                return t, episodes
            clock[0] = 0
            earned[0] = 0.0
        action = act(agent, x, agent_rng)  # line 4
        reward, terminated, truncated = step(parameters, state, action, environment_rng)  # line 5
        clock[0] += 1
        earned[0] += reward
        clock[1] = _health(observation, reward)
        if clock[1] != FINE:
            return t, episodes
        features(basis, observation, y)
        if not _all_finite(y):
            clock[1] = BAD_FEATURES
            return t, episodes
        ended = terminated or truncated or clock[0] == limit
        observe(agent, x, action, reward, y, terminated, ended, agent_rng)  # lines 6-12
        x[:] = y
        if ended:
            record[episodes, 0] = clock[0]
            record[episodes, 1] = earned[0]
            episodes += 1
            clock[0] = -1
            if episodes == len(record):
                return t + 1, episodes
    return steps, episodes


@jit
def _health(observation: Vector, reward: float) -> int:
    """FINE, or which of the two is not a finite number."""
    if not math.isfinite(reward):
        return BAD_REWARD
    for value in observation:
        if not math.isfinite(value):
            return BAD_OBSERVATION
    return FINE


@jit_reordering
def _all_finite(values: Vector) -> bool:
    """One NaN or infinity makes the sum NaN or infinite: a test that vectorises."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return math.isfinite(total)


class AgentFunctions(NamedTuple):
    """An agent as the loop sees it: two compiled functions over a state.

    Attributes
    ----------
    act : callable
        ``act(agent, x, rng) -> action``.
    observe : callable
        ``observe(agent, x, action, reward, y, terminated, ended, rng)``.
    state_type : numba type
        Of the first argument of both.
    """

    act: Callable[..., int]
    observe: Callable[..., None]
    state_type: Any

    def inside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of this module, with the agent's own ``act`` and ``observe`` in it.

        The compiler can then make them part of the loop. The state is a tuple of some thirty
        arrays; handing it to two functions at every step takes longer than what they do.
        """
        made = FunctionType(function.__code__, {**globals(), **self._asdict()})
        # of its file on disk: another one for every agent, and for every change of its source
        made.__qualname__ = f"{function.__name__}.{self.act.__module__}.{_origin(self.act)}"
        return made


def _origin(function: Callable[..., Any]) -> str:
    """Digest of the name of a function and of the file it is in."""
    plain = getattr(function, "py_func", function)
    digest = hashlib.sha256(getattr(plain, "__qualname__", "").encode())
    file = Path(inspect.getsourcefile(plain) or "") if inspect.isfunction(plain) else Path()
    if file.is_file():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _compiled_loop(agent: AgentFunctions) -> Callable[..., tuple[int, int]]:
    """The loop, compiled together with the agent."""
    return Entry(
        agent.inside(interact),
        *(function_type(RESET), function_type(STEP), VECTOR, INT),
        *(function_type(FEATURES), VECTOR, INT),
        *(agent.state_type, numba.typeof(new_place(1, 1))),
        *(INT, MATRIX, GENERATOR, GENERATOR),
        what="the interaction loop",
    )


@cache
def _plain_loop(agent: AgentFunctions) -> Callable[..., tuple[int, int]]:
    """The loop as plain Python, around the compiled agent."""
    state = agent.state_type
    entered = AgentFunctions(
        Entry(agent.inside(_act), state, VECTOR, GENERATOR, what="the agent"),
        Entry(
            agent.inside(_observe),
            *(state, VECTOR, INT, FLOAT, VECTOR, BOOL, BOOL, GENERATOR),
            what="the agent",
        ),
        state,
    )
    return entered.inside(interact)


def _act(agent: Any, x: Vector, rng: Any) -> int:
    return act(agent, x, rng)


def _observe(
    agent: Any,
    x: Vector,
    action: int,
    reward: float,
    y: Vector,
    terminated: bool,
    ended: bool,
    rng: Any,
) -> None:
    observe(agent, x, action, reward, y, terminated, ended, rng)


class Session:
    """An environment seen through features, and the agent's place in it.

    Parameters
    ----------
    environment : gymnasium.Env
        Runs inside compiled code if it is a `CompiledEnvironment` without wrappers other
        than those `gymnasium.make` adds, nobody is watching, and the basis is compiled.
    features : Features
    seed : int
        Of the environment's own random numbers.
    """

    def __init__(self, environment: gym.Env[Any, Any], features: Features, seed: int) -> None:
        self.environment = environment
        self.features = features
        self.seed = seed
        self.compiled = features.compiled and _runs_compiled(environment)
        self.place = new_place(_state_size(environment, features), features.size)
        self.environment_rng = seeding.np_random(seed)[0]
        self._seeded = False

    def run(
        self, functions: AgentFunctions, agent: Any, rng: Any, steps: int, episodes: int
    ) -> tuple[int, NDArray[np.float64]]:
        """Some steps, or episodes if they are over sooner: steps made, (length, return) rows."""
        record = np.empty((episodes, 2))
        if self.compiled:
            dynamics = self.environment.unwrapped.dynamics  # type: ignore[attr-defined]
            loop = _compiled_loop(functions)
            environment = (dynamics.reset, dynamics.step, dynamics.parameters)
        else:
            loop = _plain_loop(functions)
            environment = (self._reset, self._step, np.empty(0))
        try:
            made, finished = loop(
                *environment,
                self.limit,
                *(self.features.function, self.features.parameters, self.features.input_size),
                *(agent, self.place, steps, record, self.environment_rng, rng),
            )
        except BaseException:
            self.place.clock[0] = -1  # between step and observe: begin anew
            raise
        return made, record[:finished]

    @property
    def limit(self) -> int:
        """Steps after which the loop itself ends an episode; -1: it leaves that to others."""
        return _step_limit(self.environment) if self.compiled else -1

    def begin_episode(self) -> None:
        """Leave the episode under way: the next step begins a new one."""
        self.place.clock[0] = -1

    def _reset(self, _parameters: Vector, state: Vector, _rng: Any) -> None:
        observation, _ = self.environment.reset(seed=None if self._seeded else self.seed)
        self._seeded = True
        state[:] = np.asarray(observation, dtype=np.float64).ravel()

    def _step(
        self, _parameters: Vector, state: Vector, action: int, _rng: Any
    ) -> tuple[float, bool, bool]:
        start = int(self.environment.action_space.start)  # type: ignore[attr-defined]
        observation, reward, terminated, truncated, _ = self.environment.step(action + start)
        state[:] = np.asarray(observation, dtype=np.float64).ravel()
        return float(reward), bool(terminated), bool(truncated)

    def raise_if_unhealthy(self) -> None:
        """Say what stopped the loop, if it was something that is not finite."""
        failure = self.place.clock[1]
        if failure == FINE:
            return
        state = self.place.state.copy()
        for array in self.place:
            array[:] = 0  # nothing that is not finite stays, and the agent can be saved
        self.place.clock[:] = -1, FINE
        if failure == BAD_FEATURES:
            raise ValueError(
                f"the basis makes features that are not finite of observation {state}; "
                "check its function or its bounds. What was learnt before is kept"
            )
        what = "reward" if failure == BAD_REWARD else f"observation {state}"
        raise ValueError(
            f"{self.environment} returned a {what} that is not finite; check the environment's "
            "step() and reset(). What was learnt before is kept"
        )


def _runs_compiled(environment: gym.Env[Any, Any]) -> bool:
    """Whether nothing but the wrappers of `gymnasium.make` stands before compiled dynamics."""
    harmless = (
        gym.wrappers.TimeLimit,
        gym.wrappers.OrderEnforcing,
        gym.wrappers.PassiveEnvChecker,
    )
    while isinstance(environment, gym.Wrapper):
        if type(environment) not in harmless:
            return False
        environment = environment.env
    return isinstance(environment, CompiledEnvironment) and environment.render_mode is None


def _step_limit(environment: gym.Env[Any, Any]) -> int:
    """The smallest time limit of the wrappers; -1 for none."""
    limit = -1
    while isinstance(environment, gym.Wrapper):
        if isinstance(environment, gym.wrappers.TimeLimit):
            own = int(environment._max_episode_steps)
            limit = own if limit < 0 else min(limit, own)
        environment = environment.env
    return limit


def _state_size(environment: gym.Env[Any, Any], features: Features) -> int:
    if isinstance(environment.unwrapped, CompiledEnvironment):
        return environment.unwrapped.dynamics.state_size
    return features.input_size


def scout(
    environment: gym.Env[Any, Any], seed: np.random.SeedSequence, steps: int = 1000
) -> NDArray[np.float64]:
    """Observations that random actions come across, shape (steps, d)."""
    reset_seed, action_seed = (int(s) for s in seed.generate_state(2) >> 1)
    environment.action_space.seed(action_seed)
    seen = []
    observation, _ = environment.reset(seed=reset_seed)
    for _ in range(steps):
        seen.append(np.asarray(observation, dtype=np.float64).ravel())
        observation, _, terminated, truncated, _ = environment.step(
            environment.action_space.sample()
        )
        if terminated or truncated:
            observation, _ = environment.reset()
    return np.array(seen)
