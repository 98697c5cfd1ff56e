"""Collecting transitions: let a policy act in an environment, and log the transitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
import numba
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.types import Allowed, Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.actions import action_set
from rblspi.environments.base import runs_compiled
from rblspi.environments.lookup import make
from rblspi.environments.spaces import (
    as_vector,
    checked_masks,
    input_size,
    observation_shape,
    vector_space,
)
from rblspi.features.base import Features
from rblspi.policies.choice import random_action
from rblspi.rollout.loop import EPISODES, STEPS, AgentFunctions
from rblspi.rollout.memory import TERMINATED, TRUNCATED, Transition
from rblspi.rollout.session import Session
from rblspi.rollout.steps import Act, Step, random_act, rollout

#: transitions of a chunk, which is written as one row group
CHUNK = 2**19


def collect(
    env: gym.Env[Any, Any] | str,
    transitions: int | None = None,
    policy: Act | None = None,
    seed: int = 0,
    *,
    episodes: int | None = None,
) -> Iterator[Transitions]:
    """Act for a number of steps or of episodes; yields the transitions in chunks.

    Parameters
    ----------
    env : gymnasium.Env or str
        Random actions in a compiled environment are taken inside compiled code.
    transitions, episodes : int
        At least one of them; collecting stops when the first limit is reached.
    policy : callable, optional
        Maps an observation to an action of the environment; by default actions are random. Of a
        Box of actions, the nearest point of its grid is taken, see `rblspi.environments.actions`.
    seed : int
    """
    environment = make(env)
    action_set(environment.action_space)
    if transitions is None and episodes is None:
        raise ValueError("collect() needs transitions or episodes")
    steps = math.inf if transitions is None else check.count("transitions", transitions)
    left = check.LARGEST_COUNT if episodes is None else check.count("episodes", episodes)
    check.seed("seed", seed)
    walk = _walk(environment, policy, seed)
    while steps > 0 and left > 0:
        log, masks, ended = walk.log(int(min(steps, CHUNK)), left)
        steps -= len(log)
        left -= ended
        found = _as_transitions(log, vector_space(environment.observation_space))
        yield replace(found, next_allowed=masks)


def _walk(env: gym.Env[Any, Any], policy: Act | None, seed: int) -> _CompiledWalk | _Walk:
    if policy is None and runs_compiled(env):
        return _CompiledWalk(env, seed)
    environment_seed, action_seed = np.random.SeedSequence(seed).generate_state(2) >> 1
    env.action_space.seed(int(action_seed))
    return _Walk(env, policy or random_act(env), int(environment_seed))


def random_walk(env: gym.Env[Any, Any] | str, transitions: int, seed: int) -> Transitions:
    """Transitions of uniformly random actions, which are drawn before the first step."""
    environment = make(env)
    actions = action_set(environment.action_space)
    taken = np.random.default_rng(seed).integers(actions.count, size=transitions)
    drawn = map(actions.action, taken)
    walk = _Walk(environment, lambda _, **masks: next(drawn), seed)
    log, _, _ = walk.log(transitions, transitions)
    return _as_transitions(log, vector_space(environment.observation_space))


def _as_transitions(log: Matrix, space: gym.Space[Any]) -> Transitions:
    """Turn the rows (s, s', a, r, end) of a log into transitions."""
    size = (log.shape[1] - 3) // 2
    shape = (len(log), *(space.shape or ()))
    kind = np.int64 if np.issubdtype(space.dtype, np.integer) else np.float64
    states, after = (
        np.ascontiguousarray(part.reshape(shape), kind)
        for part in (log[:, :size], log[:, size : 2 * size])
    )
    action, reward, end = np.ascontiguousarray(log[:, 2 * size :].T)
    return Transitions(
        states, action.astype(np.int64), reward, after, end == TERMINATED, end == TRUNCATED
    )


# Inside compiled code: an agent that acts at random and remembers everything ----------------


class Walker(NamedTuple):
    """A log, and how many rows of it are filled."""

    log: Matrix
    rows: Integers


@jit_inlined
def act(agent: Walker, x: Vector, allowed: Allowed, rng: Any) -> int:
    """A uniformly random allowed action."""
    return random_action(allowed, rng)


@jit_inlined
def observe(agent: Walker, transition: Transition, rng: Any) -> None:
    """Write a row of the log."""
    row, n = agent.log[agent.rows[0]], len(transition.x)
    for i in range(n):
        row[i] = transition.x[i]
        row[n + i] = transition.y[i]
    row[2 * n] = transition.action
    row[2 * n + 1] = transition.reward
    row[2 * n + 2] = transition.end
    agent.rows[0] += 1


@jit_borrowing
def _identity(parameters: Vector, observation: Vector, out: Vector) -> None:
    """The observation itself as features."""
    for i in range(len(observation)):
        out[i] = observation[i]


FUNCTIONS = AgentFunctions(
    act, observe, numba.typeof(Walker(np.zeros((1, 1)), np.zeros(1, np.int64)))
)


class _CompiledWalk:
    """Random actions in a compiled environment."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        space = env.observation_space
        self.inputs = input_size(space)
        features = Features(_identity, np.empty(0), self.inputs, observation_shape(space))
        self.session = Session(env, features, seed)

    def log(self, rows: int, episodes: int) -> tuple[Matrix, Mask | None, int]:
        """Rows for a log or this many episodes, no masks, and the number of ended episodes."""
        log, counts = np.empty((rows, 2 * self.inputs + 3)), np.zeros(2, np.int64)
        walker = Walker(log, np.zeros(1, np.int64))
        rng, record = self.session.environment_rng, np.empty((min(episodes, rows), 2))
        self.session.run(FUNCTIONS, walker, rng, rows, record, counts)
        return log[: counts[STEPS]], None, int(counts[EPISODES])


class _Walk:
    """Any policy in any environment."""

    def __init__(self, env: gym.Env[Any, Any], policy: Act, seed: int) -> None:
        self.space = env.observation_space
        self.inputs = input_size(self.space)
        self.actions = action_set(env.action_space)

        def act(observation: Any, **masks: Any) -> Any:
            """The action with an index that is nearest to the chosen one."""
            return self.actions.action(self.actions.index(policy(observation, **masks)))

        self.steps = rollout(env, act, seed=seed)

    def log(self, rows: int, episodes: int) -> tuple[Matrix, Mask | None, int]:
        """Rows for a log or this many episodes, their masks, and the number of ended episodes."""
        log, ended, made = np.empty((rows, 2 * self.inputs + 3)), 0, 0
        masks = np.ones((rows, self.actions.count), np.bool_)
        for i, step in enumerate(islice(self.steps, rows)):
            log[i] = self._row(step)
            if step.next_mask is not None:
                masks[i] = checked_masks(step.next_mask, self.actions.count, 1)[0]
            ended, made = ended + step.ended, i + 1
            if ended == episodes:
                break
        return log[:made], None if masks[:made].all() else masks[:made], ended

    def _row(self, step: Step) -> Vector:
        end = TERMINATED if step.terminated else TRUNCATED if step.truncated else 0
        return np.concatenate(
            [
                as_vector(self.space, step.observation),
                as_vector(self.space, step.next_observation),
                [self.actions.index(step.action), step.reward, end],
            ]
        )
