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
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import NDArray

from rblspi import check
from rblspi import linear_algebra as la
from rblspi.agents.base import Agent, Range
from rblspi.agents.schedule import is_due
from rblspi.agents.storage import MANY
from rblspi.compiled import jit, jit_borrowing, jit_inlined
from rblspi.features import BasisLike
from rblspi.interaction import AgentFunctions
from rblspi.policies import epsilon_greedy, greedy
from rblspi.recent import Recent, gather, is_full, new_recent, remember

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: transitions put aside at the most before they are added to the sums
BLOCK = 64


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    recent: Recent
    cross: Matrix  # [A, b], a block of rows for every action  (actions, n, k + 1)
    weights: Vector  # theta                                   (k,)
    epsilon: Vector  #                                         (1,)
    clock: NDArray[np.int64]  # transitions; next action, -1: not chosen yet; singular (3,)
    discount: float
    decay: float
    least: float  # the smallest epsilon
    update_every: int
    on_policy: bool
    scratch_x: Matrix  # rows x                                (BLOCK, n)
    scratch_d: Matrix  # rows d, r                             (BLOCK, k + 1)
    scratch_square: Matrix  # A' and its factors               (k, k)
    scratch_pivots: NDArray[np.int32]  #                       (k,)


@jit_inlined
def act(agent: State, x: Vector, rng: Any) -> int:
    """Epsilon-greedy; on-policy, the action that was already chosen."""
    chosen = agent.clock[1]
    agent.clock[1] = -1
    if chosen >= 0:
        return int(chosen)
    return epsilon_greedy(agent.weights, x, agent.epsilon[0], rng)


@jit_inlined
def observe(
    agent: State,
    x: Vector,
    action: int,
    reward: float,
    y: Vector,
    terminated: bool,
    ended: bool,
    rng: Any,
) -> None:
    """Take in a transition; every K of them, solve for the weights."""
    agent.epsilon[0] = max(agent.least, agent.decay * agent.epsilon[0])
    next_action = -1
    if not terminated:
        if agent.on_policy:
            next_action = epsilon_greedy(agent.weights, y, agent.epsilon[0], rng)
            agent.clock[1] = -1 if ended else next_action
        else:
            next_action = greedy(agent.weights, y)
    remember(agent.recent, x, action, reward, y, next_action)
    agent.clock[0] += 1
    due = is_due(agent.update_every, agent.clock[0], ended)
    if due or is_full(agent.recent):
        _absorb(agent)
    if due:
        _solve(agent)


@jit_borrowing
def _absorb(agent: State) -> None:
    stop = 0
    for action in range(len(agent.cross)):
        start = stop
        stop = gather(agent.recent, agent.discount, action, start, agent.scratch_x, agent.scratch_d)
        if stop > start:
            la.add_product_tn(
                1.0,
                agent.scratch_x[start:stop],
                agent.scratch_d[start:stop],
                1.0,
                agent.cross[action],
            )
    agent.recent.size[0] = 0


@jit
def _solve(agent: State) -> None:
    """Theta = A^-1 b; a singular A leaves the weights as they are, and is counted."""
    actions, n, _ = agent.cross.shape
    k = actions * n
    right = np.empty(k)
    for a in range(actions):
        for i in range(n):
            right[a * n + i] = agent.cross[a, i, k]
            for j in range(k):
                agent.scratch_square[j, a * n + i] = agent.cross[a, i, j]
    if la.solve_general(agent.scratch_square, right, agent.scratch_pivots):
        agent.weights[:] = right
    else:
        agent.clock[2] += 1


def _new_state(
    actions: int,
    n: int,
    discount: float,
    epsilon: float,
    decay: float,
    least: float,
    update_every: int,
    on_policy: bool,
    initial_diagonal: float,
) -> State:
    k = actions * n
    cross = np.zeros((actions, n, k + 1))
    np.fill_diagonal(cross.reshape(k, k + 1)[:, :k], initial_diagonal)
    return State(
        new_recent(BLOCK, n),
        cross,
        np.zeros(k),
        np.array([epsilon]),
        np.array([0, -1, 0]),
        discount,
        decay,
        least,
        update_every,
        on_policy,
        np.zeros((BLOCK, n)),
        np.zeros((BLOCK, k + 1)),
        np.zeros((k, k)),
        np.zeros(k, np.int32),
    )


class OnlineLSPI(Agent):
    """Learns online by least-squares policy iteration with epsilon-greedy exploration.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, or the id of one.
    basis : Basis, callable or fitted transformer, optional
        State features; one block of weights per action is learnt over them. Chosen by the
        observation space unless given.
    policy : {"on", "off"}
        Which next action enters A: the executed one or the greedy one.
    epsilon, epsilon_decay, epsilon_final : float
        Probability of a random action, its factor after every step, and where it stops.
    update_every : int or "episode"
        K: transitions between improvements of the policy.
    discount : float
        gamma.
    initial_diagonal : float
        A starts at this multiple of the identity.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.
    """

    functions = AgentFunctions(
        act, observe, numba.typeof(_new_state(1, 1, 0.0, 0.0, 0.0, 0.0, 0, True, 1.0))
    )
    state: State

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None = None,
        *,
        policy: Literal["on", "off"] = "on",
        epsilon: float = 1.0,
        epsilon_decay: float = 0.9968,
        epsilon_final: float = 0.0,
        update_every: int | Literal["episode"] = 20,
        discount: float = 0.99,
        initial_diagonal: float = 1e-6,
        seed: int | None = None,
    ) -> None:
        if policy not in ("on", "off"):
            raise ValueError(f"policy={policy!r} is neither 'on' nor 'off'")
        self.policy = policy
        self.epsilon = check.fraction("epsilon", epsilon)
        self.epsilon_decay = check.fraction("epsilon_decay", epsilon_decay)
        self.epsilon_final = check.fraction("epsilon_final", epsilon_final)
        self.update_every = check.period("update_every", update_every)
        self.initial_diagonal = check.positive("initial_diagonal", initial_diagonal)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _initial_state(self) -> State:
        return _new_state(
            self.actions,
            self.features.size,
            self.discount,
            self.epsilon,
            self.epsilon_decay,
            self.epsilon_final,
            self.update_every,
            self.policy == "on",
            self.initial_diagonal,
        )

    def leave_episode(self) -> None:
        """Begin a new episode, whose first action is not chosen yet."""
        super().leave_episode()
        self.state.clock[1] = -1

    def _mean_weights(self) -> Vector:
        return self.state.weights

    def _integer_ranges(self) -> dict[str, Range]:
        clock = ((0, -1, 0), (MANY, self.actions - 1, MANY))
        return super()._integer_ranges() | {"state.clock": clock}

    def _exploring_actions(self, x: Matrix) -> NDArray[np.int64]:
        epsilon = self.state.epsilon[0]
        return np.array([epsilon_greedy(self.state.weights, row, epsilon, self.rng) for row in x])

    def _raise_concerns(self) -> None:
        if (singular := int(self.state.clock[2])) > 0:
            warnings.warn(
                f"{singular} improvements were left out so far, because their equations had no "
                "solution: a larger initial_diagonal, or features that do not repeat each other",
                stacklevel=3,
            )

    def diagnostics(self) -> dict[str, float]:
        """The probability of a random action."""
        return {"epsilon": float(self.state.epsilon[0])}
