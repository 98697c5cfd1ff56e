"""Agents that act by a plan, and plan afresh between episodes on all that they remember."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.compiled import jit_inlined
from rblspi.core.types import Allowed, Array, Integers, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.online.agent import Agent
from rblspi.policies.choice import greedy
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import Draws
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition, ends_episode

#: places in `State.counters`; ENDED: whether an episode has ended since the last plan; STEP: of the
#: plan, for the next action
TRANSITIONS, PLANNED_AT, ENDED, STEP = range(4)

#: within an episode, the agent plans again when it has seen this fraction more than before
GROWTH = 0.1


class State(NamedTuple):
    """What an agent carries from step to step, beside its memory."""

    weights: Matrix  # that it acts by, a row for every step of the plan  (steps, k)
    counters: Integers  # see above                                       (4,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that compiled code can use as indices, by field."""
        return {"counters": (0, [LARGEST_COUNT, LARGEST_COUNT, 1, len(self.weights) - 1])}


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Greedy in the value function that it explores by."""
    return greedy(agent.weights[agent.counters[STEP]], x, allowed)


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition; the loop puts it into the memory.

    A plan of several steps begins again when it is over, as if a new episode had begun.
    """
    agent.counters[TRANSITIONS] += 1
    agent.counters[STEP] += 1
    over = agent.counters[STEP] == len(agent.weights)
    ended = ends_episode(transition)
    if ended or over:
        agent.counters[STEP] = 0
    if ended or (over and len(agent.weights) > 1):
        agent.counters[ENDED] = 1


class PlanningAgent(Agent):
    """An agent that plans in Python, on the transitions in its memory.

    It plans after every episode. Where episodes are long it also plans within them, whenever it
    has seen a tenth more than at its last plan, unless the plan is one for every step to a horizon.
    """

    functions = AgentFunctions(act, observe)
    state: Any
    #: the fraction by which the memory grows before the end of an episode is worth a new plan
    least_growth: ClassVar[float] = 0.0
    #: transitions behind it, weights and draws around them
    _best: tuple[int, Array, Draws | None] | None = None

    @abstractmethod
    def _value_function(self, log: Transitions, explore: bool) -> Array:
        """Weights by action, shape (actions, n): to explore by, or of the best estimate.

        To explore, they may be random, and may begin with `_last_plan`. A plan of several steps has
        such weights for each.
        """

    def _estimate(self, log: Transitions) -> tuple[Array, Draws | None]:
        """The best estimate, and draws around it if it comes with any."""
        return self._value_function(log, explore=False), None

    def _steps_of_plan(self) -> int:
        return 1

    def _initial_state(self) -> Any:
        shape = (self._steps_of_plan(), self.actions * self.features.size)
        return State(self.rng.standard_normal(shape), np.zeros(4, np.int64))

    @property
    def _last_plan(self) -> Matrix:
        """The weights that it explores by, shape (actions, n), if the plan is of one step."""
        weights: Matrix = self.state.weights.reshape(self.actions, -1)
        return weights

    def _steps_to_plan(self) -> int:
        counters = self.state.counters
        if counters[ENDED]:
            return 0
        if len(self.state.weights) > 1:
            return len(self.state.weights) - int(counters[STEP])
        steps, planned = int(counters[TRANSITIONS]), int(counters[PLANNED_AT])
        return planned + max(1, int(GROWTH * planned)) - steps

    def _plan(self) -> None:
        counters, weights = self.state.counters, self.state.weights
        if counters[TRANSITIONS] >= (1.0 + self.least_growth) * counters[PLANNED_AT]:
            planned = self._value_function(self._remembered(), explore=True)
            weights[...] = planned.reshape(weights.shape)
            self._best = None  # the plan may have other features
            counters[PLANNED_AT] = counters[TRANSITIONS]
        counters[ENDED] = 0

    def leave_episode(self) -> None:
        """Begin a new episode, with the first step of the plan."""
        super().leave_episode()
        self.state.counters[STEP] = 0

    def _remembered(self) -> Transitions:
        return self.session.memory.transitions(self.features.shape)

    def _weights(self, explore: bool) -> Vector:
        steps = int(self.state.counters[TRANSITIONS])
        if explore or not self.session.memory.size:
            weights: Vector = self.state.weights[self.state.counters[STEP]]
            return weights
        if self._best is None or self._best[0] != steps:
            self._best = (steps, *self._estimate(self._remembered()))
        return self._best[1].ravel()

    def _draws(self) -> Draws | Callable[[LinearPolicy], Draws] | None:
        self._weights(explore=False)
        return self._best[2] if self._best and self._best[2] else super()._draws()
