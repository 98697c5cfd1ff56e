"""Linear SARSA with epsilon-greedy exploration: a skeleton of an agent, to be copied.

After every transition, with the TD error delta = r + gamma Q(s', a') - Q(s, a),

    theta_a += rate delta x / x'x

where x = phi(s), a' is the action that is executed next, and Q(s', a') = 0 if s' is terminal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi import Agent
from rblspi.core import check
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.kernels import dot
from rblspi.core.settings import Setting
from rblspi.core.types import Allowed, Integers, Vector
from rblspi.policies.choice import epsilon_greedy
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition, ends_episode, is_terminal

#: value of `State.chosen` if the next action is not chosen yet
NOT_CHOSEN = -1


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    weights: Vector  # theta, a block of n weights for every action  (k,)
    chosen: Integers  # the next action, or NOT_CHOSEN               (1,)
    discount: float
    rate: float
    epsilon: float

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values of integers that a file may hold, by field."""
        return {"chosen": (NOT_CHOSEN, actions - 1)}


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """The action that `observe` has chosen; in a new episode, an epsilon-greedy one."""
    chosen = agent.chosen[0]
    agent.chosen[0] = NOT_CHOSEN
    if chosen >= 0:
        return int(chosen)
    return epsilon_greedy(agent.weights, x, agent.epsilon, allowed, rng)


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Choose the next action, and learn from the transition."""
    x, action, reward, y, next_allowed, _ = transition
    delta = reward - _value(agent.weights, x, action)
    if not is_terminal(transition):
        next_action = epsilon_greedy(agent.weights, y, agent.epsilon, next_allowed, rng)
        delta += agent.discount * _value(agent.weights, y, next_action)
        agent.chosen[0] = NOT_CHOSEN if ends_episode(transition) else next_action
    step = agent.rate * delta / max(dot(x, x), 1e-300)
    block = agent.weights[action * len(x) : (action + 1) * len(x)]
    for i in range(len(x)):
        block[i] += step * x[i]


@jit_borrowing
def _value(weights: Vector, x: Vector, action: int) -> float:
    """Q(s, a) = phi(s)'theta_a."""
    return dot(weights[action * len(x) : (action + 1) * len(x)], x)


class MyAgent(Agent):
    """Learns online by linear SARSA with epsilon-greedy exploration.

    Parameters
    ----------
    rate : float
        Share of the TD error that a transition corrects.
    epsilon : float
        Probability of a random action.
    env, basis, discount, seed
        As for `RBLSPI`.
    """

    functions = AgentFunctions(act, observe)
    state: State

    rate = Setting(0.1, check.fraction)
    epsilon = Setting(0.1, check.fraction)

    def _initial_state(self) -> State:
        return State(
            weights=np.zeros(self.actions * self.features.size),
            chosen=np.full(1, NOT_CHOSEN, np.int64),
            discount=self.discount,
            rate=self.rate,
            epsilon=self.epsilon,
        )

    def _follows_an_episode(self) -> bool:
        return True

    def _exploring_epsilon(self) -> float:
        return self.epsilon

    def leave_episode(self) -> None:
        """Begin a new episode, whose first action is not chosen yet."""
        super().leave_episode()
        self.state.chosen[0] = NOT_CHOSEN
