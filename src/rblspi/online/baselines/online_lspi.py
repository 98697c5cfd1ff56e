"""Online least-squares policy iteration with epsilon-greedy exploration: the paper's baseline.

Every K transitions theta = A^-1 b, with A and b summed over all transitions so far. Off-policy,
A uses the greedy next action; on-policy, the next action that is really executed.

References
----------
Busoniu, Ernst, De Schutter and Babuska, Online least-squares policy iteration for
reinforcement learning control, American Control Conference, 2010.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.kernels import add_product
from rblspi.core.settings import Setting
from rblspi.core.types import Allowed, Array, Integers, Matrix, Vector
from rblspi.model.buffer import CAPACITY, TERMINAL, Buffer, append, gather, is_full, new_buffer
from rblspi.online.agent import Agent
from rblspi.policies.choice import epsilon_greedy, greedy
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition, ends_episode, is_due, is_terminal

#: places in `State.counters`
TRANSITIONS, SINGULAR = range(2)

#: value of `State.chosen` where the next action is not chosen yet
NOT_CHOSEN = -1


class State(NamedTuple):
    """The state of the algorithm."""

    buffer: Buffer
    cross: Array  # [A, b], a block of rows for every action  (actions, n, k + 1)
    weights: Vector  # theta                                   (k,)
    epsilon: Vector  #                                         (1,)
    chosen: Integers  # on-policy, the next action              (1,)
    counters: Integers  # transitions, singular systems        (2,)
    discount: float
    decay: float
    least: float  # the smallest epsilon
    update_every: int
    on_policy: bool
    limit_ends: bool
    workspace_x: Matrix  # rows x                              (CAPACITY, n)
    workspace_d: Matrix  # rows d, r                           (CAPACITY, k + 1)
    workspace_system: Matrix  # [A b] and its factors          (k, k + 1)
    workspace_solution: Vector  #                              (k,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that compiled code can use as indices, by field."""
        return {"chosen": (NOT_CHOSEN, actions - 1)}


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Epsilon-greedy; on-policy, the action that was already chosen."""
    chosen = agent.chosen[0]
    agent.chosen[0] = NOT_CHOSEN
    if chosen >= 0:
        return int(chosen)
    return epsilon_greedy(agent.weights, x, agent.epsilon[0], allowed, rng)


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Absorb a transition; every K of them, solve for the weights."""
    x, action, reward, y, next_allowed, _ = transition
    agent.epsilon[0] = max(agent.least, agent.decay * agent.epsilon[0])
    next_action = TERMINAL
    if not is_terminal(transition, agent.limit_ends):
        if agent.on_policy:
            next_action = epsilon_greedy(agent.weights, y, agent.epsilon[0], next_allowed, rng)
            agent.chosen[0] = NOT_CHOSEN if ends_episode(transition) else next_action
        else:
            next_action = greedy(agent.weights, y, next_allowed)
    append(agent.buffer, x, action, reward, y, next_action)
    agent.counters[TRANSITIONS] += 1
    due = is_due(transition, agent.update_every, agent.counters[TRANSITIONS])
    if due or is_full(agent.buffer):
        _absorb(agent)
    if due:
        _solve(agent)


@jit_borrowing
def _absorb(agent: State) -> None:
    stop, x, d = 0, agent.workspace_x, agent.workspace_d
    for action in range(len(agent.cross)):
        start = stop
        stop = gather(agent.buffer, agent.discount, action, start, x, d)
        if stop > start:
            add_product(1.0, x[start:stop], d[start:stop], agent.cross[action])
    agent.buffer.size[0] = 0


@jit_borrowing
def _solve(agent: State) -> None:
    """Theta = A^-1 b; a singular A leaves the weights as they are, and is counted."""
    actions, n, last = agent.cross.shape[0], agent.cross.shape[1], agent.cross.shape[2] - 1
    rewarded = False
    for a in range(actions):
        for i in range(n):
            rewarded = rewarded or agent.cross[a, i, last] != 0.0
    if not rewarded:  # b = 0, and so is theta, without a factorisation
        agent.weights[:] = 0.0
        return
    for a in range(actions):
        la.copy(agent.cross[a], agent.workspace_system[a * n : (a + 1) * n])
    if la.solve_general(agent.workspace_system, agent.workspace_solution):
        la.copy_vector(agent.workspace_solution, agent.weights)
    else:
        agent.counters[SINGULAR] += 1


class OnlineLSPI(Agent):
    """Learns online by least-squares policy iteration with epsilon-greedy exploration.

    Parameters
    ----------
    on_policy : bool
        Whether the next action in A is the executed one (True) or the greedy one (False).
    epsilon, epsilon_decay, epsilon_final : float
        Probability of a random action, its factor after every step, and its lower limit.
    update_every, limit_ends, env, basis, discount, seed
        As for `RBLSPI`.
    initial_diagonal : float
        A starts at this multiple of the identity.
    """

    functions = AgentFunctions(act, observe)
    state: State

    on_policy = Setting(True, check.boolean)
    epsilon = Setting(1.0, check.fraction)
    epsilon_decay = Setting(0.9968, check.fraction)
    epsilon_final = Setting(0.0, check.fraction)
    update_every = Setting(20, check.period)
    initial_diagonal = Setting(1e-6, check.positive)
    limit_ends = Setting(False, check.boolean)

    def _initial_state(self) -> State:
        actions, n = self.actions, self.features.size
        k = actions * n
        cross = np.zeros((actions, n, k + 1))
        np.fill_diagonal(cross.reshape(k, k + 1)[:, :k], self.initial_diagonal)
        return State(
            buffer=new_buffer(CAPACITY, n),
            cross=cross,
            weights=np.zeros(k),
            epsilon=np.array([self.epsilon]),
            chosen=np.array([NOT_CHOSEN]),
            counters=np.zeros(2, np.int64),
            discount=self.discount,
            decay=self.epsilon_decay,
            least=self.epsilon_final,
            update_every=self.update_every,
            on_policy=self.on_policy,
            limit_ends=self.limit_ends,
            workspace_x=np.zeros((CAPACITY, n)),
            workspace_d=np.zeros((CAPACITY, k + 1)),
            workspace_system=np.zeros((k, k + 1)),
            workspace_solution=np.zeros(k),
        )

    def leave_episode(self) -> None:
        """Begin a new episode, whose first action is not chosen yet."""
        super().leave_episode()
        self.state.chosen[0] = NOT_CHOSEN

    def _follows_an_episode(self) -> bool:
        return self.on_policy

    def _exploring_epsilon(self) -> float:
        return float(self.state.epsilon[0])

    def _warn(self) -> None:
        if (singular := int(self.state.counters[SINGULAR])) > 0:
            warnings.warn(
                f"{singular} improvements were left out so far, because A was singular: use a "
                "larger initial_diagonal, or features that do not repeat each other",
                stacklevel=3,
            )

    def diagnostics(self) -> dict[str, float]:
        """The probability of a random action."""
        return {"epsilon": float(self.state.epsilon[0])}
