"""Agents that act by a plan, and plan afresh between episodes on all that they remember."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import gymnasium as gym
import numba
import numpy as np

from rblspi.core.compiled import jit_inlined
from rblspi.core.types import Integers, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.online.agent import Agent
from rblspi.policies.choice import greedy
from rblspi.rollout.loop import CONTINUES, AgentFunctions

#: places in `State.counters`; ENDED: whether an episode has ended since the last plan
TRANSITIONS, PLANNED_AT, ENDED = range(3)

#: within an episode, the agent plans again when it has seen this fraction more than before
GROWTH = 0.1


class State(NamedTuple):
    """What an agent carries from step to step, beside its memory."""

    sampled: Vector  # the weights it acts by           (k,)
    counters: Integers  # see above                     (3,)


@jit_inlined
def act(agent: State, x: Vector, rng: Any) -> int:
    """Greedy in the sampled value function."""
    return greedy(agent.sampled, x)


@jit_inlined
def observe(
    agent: State, x: Vector, action: int, reward: float, y: Vector, end: int, rng: Any
) -> None:
    """Count the transition; the loop puts it into the memory."""
    agent.counters[TRANSITIONS] += 1
    if end != CONTINUES:
        agent.counters[ENDED] = 1


class PlanningAgent(Agent):
    """An agent that plans in Python, on the transitions in its memory.

    It plans after every episode. Where episodes are long it also plans within them, whenever it
    has seen a tenth more than at its last plan.
    """

    functions = AgentFunctions(
        act, observe, numba.typeof(State(np.zeros(1), np.zeros(3, np.int64)))
    )
    state: State

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None,
        *,
        discount: float,
        seed: int | None,
    ) -> None:
        self._best: tuple[int, Matrix] | None = None  # transitions behind it, weights
        super().__init__(env, basis, discount=discount, seed=seed)

    @abstractmethod
    def _sampled_plan(self, transitions: Transitions, start: Matrix) -> Matrix:
        """Weights by action, shape (actions, n), of a value function to explore by.

        ``start`` has the weights of the plan before.
        """

    @abstractmethod
    def _best_plan(self, transitions: Transitions) -> Matrix:
        """Weights by action of the best estimate of the value function."""

    def _initial_state(self) -> State:
        sampled = self.rng.standard_normal(self.actions * self.features.size)
        return State(sampled, np.zeros(3, np.int64))

    def _steps_to_plan(self) -> int:
        counters = self.state.counters
        if counters[ENDED]:
            return 0
        steps, planned = int(counters[TRANSITIONS]), int(counters[PLANNED_AT])
        return planned + max(1, int(GROWTH * planned)) - steps

    def _plan(self) -> None:
        counters = self.state.counters
        start = self.state.sampled.reshape(self.actions, -1)
        self.state.sampled[:] = self._sampled_plan(self._remembered(), start).ravel()
        counters[PLANNED_AT], counters[ENDED] = counters[TRANSITIONS], 0

    def _remembered(self) -> Transitions:
        return self.session.memory.transitions(self.features.shape)

    def _weights(self, explore: bool) -> Vector:
        steps = int(self.state.counters[TRANSITIONS])
        if explore or not steps:
            return self.state.sampled
        if self._best is None or self._best[0] != steps:
            self._best = (steps, self._best_plan(self._remembered()))
        return self._best[1].ravel()
