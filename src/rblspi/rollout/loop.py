"""The loop of agent and environment, written once.

The source below is compiled if the environment and the basis are compiled. Otherwise it runs as
plain Python around the same compiled agent.
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

import numba
import numpy as np
from numba import types
from numpy.typing import ArrayLike

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.compiled import (
    FEATURES,
    FLOAT,
    GENERATOR,
    INT,
    MASK,
    MATRIX,
    RESET,
    STEP,
    VECTOR,
    Entry,
    function_type,
    jit,
)
from rblspi.core.held import hold, memory_for, reader, releaser
from rblspi.core.linear_algebra import all_finite
from rblspi.core.types import Allowed, Integers, Matrix, Vector
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

#: values of ``EpisodeState.failure``
FINE, BAD_OBSERVATION, BAD_REWARD, BAD_FEATURES = range(4)

#: value of ``EpisodeState.steps`` where the next step begins a new episode
NOT_STARTED = -1

#: places in the ``counts`` of `interact`
STEPS, EPISODES = range(2)


class EpisodeState(NamedTuple):
    """The state of the episode under way."""

    state: Vector  # of the environment               (state_size,)
    x: Vector  # features of the present observation  (n,)
    y: Vector  # features of the next observation     (n,)
    steps: Integers  # in this episode, or NOT_STARTED  (1,)
    failure: Integers  # what stopped the loop, or FINE (1,)
    episode_return: Vector  # undiscounted, so far      (1,)
    allowed: Allowed  # which actions, at present       (actions,)
    next_allowed: Allowed  # after the step; environments without masks leave it 1  (actions,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        return {"steps": (NOT_STARTED, LARGEST_COUNT), "failure": (FINE, FINE)}


def new_episode_state(state_size: int, features: int, actions: int) -> EpisodeState:
    """The state before the first episode."""
    return EpisodeState(
        np.zeros(state_size),
        np.zeros(features),
        np.zeros(features),
        np.full(1, NOT_STARTED, np.int64),
        np.full(1, FINE, np.int64),
        np.zeros(1),
        np.ones(actions, np.uint8),
        np.ones(actions, np.uint8),
    )


def act(agent: Any, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Choose an allowed action; a placeholder, see `AgentFunctions.inside`."""
    raise NotImplementedError


def observe(agent: Any, transition: Transition, rng: Any) -> None:
    """Learn from a transition; a placeholder for the agent's function."""
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
    episode: EpisodeState,
    memory: Memory,
    steps: int,
    record: Matrix,
    counts: Integers,
    environment_rng: Any,
    agent_rng: Any,
) -> None:
    """Let the agent act for some steps, or until ``record`` is full of finished episodes.

    Line numbers are those of Algorithm 1. A row of ``record`` gets the length and the undiscounted
    return of an episode. ``counts`` has the number of steps and of episodes so far, and is right
    even if an environment in Python raises an error.
    """
    state, x, y, elapsed, failure, episode_return, allowed, next_allowed = episode
    observation = state[:inputs]
    for _ in range(steps):
        if elapsed[0] < 0:
            reset(parameters, state, environment_rng)  # line 2
            failure[0] = first_failure(observation, 0.0)
            if failure[0] == FINE:
                features(basis, observation, x)
                failure[0] = FINE if all_finite(x) else BAD_FEATURES
            if failure[0] != FINE:
                return
            elapsed[0] = 0
            episode_return[0] = 0.0
            allowed[:] = next_allowed
            memory.counters[EPISODE] += 1
        memory.workspace[:] = observation
        action = act(agent, x, allowed, agent_rng)  # line 4
        reward, terminated, truncated = step(parameters, state, action, environment_rng)  # line 5
        elapsed[0] += 1
        episode_return[0] += reward
        failure[0] = first_failure(observation, reward)
        if failure[0] == FINE:
            features(basis, observation, y)
            failure[0] = FINE if all_finite(y) else BAD_FEATURES
        if failure[0] != FINE:
            return
        end = CONTINUES
        if terminated:
            end = TERMINATED
        elif truncated or elapsed[0] == limit:
            end = TRUNCATED
        transition = Transition(x, action, reward, y, next_allowed, end)
        observe(agent, transition, agent_rng)  # lines 6-12
        remember(memory, memory.counters[EPISODE], elapsed[0] - 1, observation, transition)
        x[:] = y
        allowed[:] = next_allowed
        counts[STEPS] += 1
        if end != CONTINUES:
            record[counts[EPISODES], 0] = elapsed[0]
            record[counts[EPISODES], 1] = episode_return[0]
            counts[EPISODES] += 1
            elapsed[0] = NOT_STARTED
            if counts[EPISODES] == len(record):
                return


@jit
def first_failure(observation: Vector, reward: float) -> int:
    """FINE, or which of the two is not a finite number."""
    if not math.isfinite(reward):
        return BAD_REWARD
    return FINE if all_finite(observation) else BAD_OBSERVATION


class AgentFunctions(NamedTuple):
    """The interface of an agent for the loop: two compiled functions over a state."""

    act: Callable[..., int]  # act(agent, x, allowed, rng)
    observe: Callable[..., None]  # observe(agent, transition, rng)
    state_type: Any = None  # Numba's type of the agent's state, the first argument of both

    def over(self, state: Any) -> AgentFunctions:
        """The functions for states of the same type as this one."""
        return self._replace(state_type=numba.typeof(state))

    def require_signatures(self) -> None:
        """Raise an error if the functions do not take the arguments of the loop."""
        for own, loop in ((self.act, act), (self.observe, observe)):
            expected = list(inspect.signature(loop).parameters)
            given = inspect.signature(getattr(own, "py_func", own)).parameters
            if len(given) != len(expected):
                raise TypeError(
                    f"{loop.__name__} of {own.__module__} takes ({', '.join(given)}), but the loop "
                    f"passes ({', '.join(expected)})"
                )

    def inside(self, function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
        """Put the agent's own ``act`` and ``observe`` into a loop, or into a part of one.

        The compiler can then inline them. The state is a tuple of some thirty arrays; passing it to
        two functions at every step takes longer than their work. ``more`` replaces further names.
        """
        names = {**function.__globals__, **self._asdict(), **more}
        made = FunctionType(function.__code__, names)
        # The name of the file in the cache. It differs for every agent, every version of its source
        # and every type of its state, because the held arrays do not record this type.
        layout = hashlib.sha256(str(self.state_type).encode()).hexdigest()[:12]
        origin = f"{self.act.__module__}.{_origin(self.act)}"
        made.__qualname__ = f"{function.__name__}.{origin}.{layout}"
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
def compiled_loop(agent: AgentFunctions) -> Callable[..., None]:
    """The loop, compiled together with the agent."""
    agent.require_signatures()
    return Entry(
        agent.inside(interact),
        *(function_type(RESET), function_type(STEP), VECTOR, INT),
        *(function_type(FEATURES), VECTOR, INT),
        *(agent.state_type, numba.typeof(new_episode_state(1, 1, 1))),
        numba.typeof(new_memory(1, 1, 1)),
        *(INT, MATRIX, INT[::1], GENERATOR, GENERATOR),
        what="the interaction loop",
    )


@cache
def plain_loop(
    agent: AgentFunctions, source: Callable[..., None] = interact
) -> Callable[..., None]:
    """A loop as plain Python, around the compiled agent.

    Compiled code reads the agent's state and random numbers from memory. Passing them from Python
    at every step would cost 40 us.
    """
    agent.require_signatures()
    held, memory = types.Tuple((agent.state_type, GENERATOR)), INT[::1]
    empty = memory_for(held)

    def entry(function: Callable[..., Any], *argument_types: Any) -> Entry:
        source = agent.inside(function, read=reader(held), release=releaser(held))
        return Entry(source, *argument_types, what="the agent")

    hold_both = entry(_hold, agent.state_type, GENERATOR, memory)
    release_both = entry(_release, memory)
    act_held = entry(_act, memory, VECTOR, MASK, memory)
    observe_held = entry(_observe, memory, VECTOR, INT, FLOAT, VECTOR, MASK, INT)

    def observe_flat(room: Integers, transition: Transition, _rng: Integers) -> None:
        observe_held(room, *transition)

    loop = agent.inside(source, act=act_held, observe=observe_flat)

    def run(*arguments: Any) -> None:
        """The loop with memory in place of the agent's state and of its random numbers."""
        *environment, state, episode, kept, steps, record, counts, environment_rng, rng = arguments
        room = empty.copy()
        try:
            hold_both(state, rng, room)
            loop(*environment, room, episode, kept, steps, record, counts, environment_rng, room)
        finally:
            release_both(room)

    return run


def read(memory: Integers) -> Any:
    """The value in memory; a placeholder for the function that `reader` makes."""
    raise NotImplementedError


def release(memory: Integers) -> None:
    """Release the value in memory; a placeholder for the function that `releaser` makes."""
    raise NotImplementedError


def _act(memory: Integers, x: Vector, allowed: Allowed, _memory: Integers) -> int:
    agent, rng = read(memory)
    return act(agent, x, allowed, rng)


def _observe(
    memory: Integers, x: Vector, action: int, reward: float, y: Vector, allowed: Allowed, end: int
) -> None:
    agent, rng = read(memory)
    observe(agent, Transition(x, action, reward, y, allowed, end), rng)


def _hold(agent: Any, rng: Any, memory: Integers) -> None:
    hold((agent, rng), memory)


def _release(memory: Integers) -> None:
    release(memory)
