"""Environments with finitely many states, as tables that can be solved exactly.

A `Table` has the rewards of every state and action and up to three outcomes with their
probabilities. The compiled steps, the transition probabilities P(s' | s, a) and the expected
rewards R(s, a) follow from it. With these, the action values of a policy pi and of the best
policy are

    Q_pi(s, a) = R(s, a) + discount sum_s' P(s' | s, a) Q_pi(s', pi(s'))
    Q*(s, a)   = R(s, a) + discount sum_s' P(s' | s, a) max_a' Q*(s', a')

Where a step may terminate the episode, P(. | s, a) adds up to less than 1: the rest is the
probability of the end, after which there are no rewards.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit
from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.environments.base import CompiledEnvironment, Dynamics

#: how much better an action has to be to replace another one: more than rounding errors
_CLEARLY = 1e-11
#: a threshold above every random number, for which none is drawn
ALWAYS = np.inf
#: places in the state of a table that counts
PLACE, COUNT = range(2)

#: parameters before the table: states, actions, the first state or -1, the limit, and the slip
_HEAD = 5
#: numbers of a state and action: reward, noise, count, terminal, two thresholds, three outcomes
_ENTRY = 9


class Table(NamedTuple):
    """The effect of every action in every state.

    A uniform number below the first threshold leads to the first outcome, one below the second to
    the second, and any other to the third. `ALWAYS` as the first threshold draws no number.
    """

    rewards: Matrix  # (states, actions)
    outcomes: Array  # the states that may follow                       (states, actions, 3)
    below: Array  # thresholds of a uniform number                      (states, actions, 2)
    terminal: Mask  # whether the step ends the episode                 (states, actions)
    noise: Matrix  # standard deviations of the rewards                 (states, actions)
    counted: Matrix  # added to the second number of a state by the step  (states, actions)

    @classmethod
    def certain(cls, rewards: Matrix, following: ArrayLike) -> Self:
        """A table in which every action has one outcome and no step is terminal or counted."""
        shape = rewards.shape
        outcomes = np.repeat(np.asarray(following, np.float64)[:, :, None], 3, axis=2)
        below = np.full((*shape, 2), ALWAYS)
        return cls(
            rewards, outcomes, below, np.zeros(shape, bool), np.zeros(shape), np.zeros(shape)
        )

    def entries(self) -> Vector:
        """All numbers in the order of compiled code."""
        first = (self.rewards, self.noise, self.counted, self.terminal)
        return np.concatenate([np.stack(first, axis=2), self.below, self.outcomes], axis=2).ravel()


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start in the given state, or in any."""
    state[:] = 0.0
    state[PLACE] = parameters[2] if parameters[2] >= 0.0 else rng.integers(0, int(parameters[0]))


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Look up the effect of the action, or of a random one with the probability of a slip."""
    actions, limit, slip = int(parameters[1]), parameters[3], parameters[4]
    if slip > 0.0 and rng.random() < slip:
        action = int(rng.random() * actions)
    entry = _HEAD + _ENTRY * (actions * int(state[PLACE]) + action)
    reward, noise, count, terminal, first, second = parameters[entry : entry + 6]
    if noise > 0.0:
        reward += noise * rng.standard_normal()
    outcome = entry + 6
    if first != ALWAYS:
        chance = rng.random()
        if chance >= first:
            outcome += 1 if chance < second else 2
    state[PLACE] = parameters[outcome]
    if len(state) == 1:
        return reward, terminal > 0.0, False
    state[COUNT] += count
    return reward, terminal > 0.0, state[COUNT] >= limit


class FiniteEnvironment(CompiledEnvironment):
    """An environment with Discrete observations that is a table.

    Parameters
    ----------
    table : Table
    start : int, optional
        The first state of an episode; any unless given.
    limit : int, optional
        The count at which an episode is truncated.
    slip : float
        Probability with which the action that is carried out is drawn at random.
    render_mode : str, optional
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}

    def __init__(
        self,
        table: Table,
        start: int | None = 0,
        *,
        limit: int | None = None,
        slip: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.table, self.slip = table, slip
        states, actions = table.rewards.shape
        #: whether every policy comes to a terminal state
        self.terminates = bool(table.terminal.any())
        head = (states, actions, -1 if start is None else start, limit or np.inf, slip)
        parameters, counts = np.array([*head, *table.entries()]), bool(table.counted.any())
        super().__init__(
            Dynamics(reset, step, parameters, state_size=2 if counts else 1),
            gym.spaces.Discrete(states),
            gym.spaces.Discrete(actions),
            render_mode,
        )

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        shares = np.diff(np.minimum(self.table.below, 1.0), prepend=0.0, append=1.0)
        shares[self.table.terminal] = 0.0
        states, actions, _ = np.indices(shares.shape)
        by_action = np.zeros((shares.shape[1], len(shares), len(shares)))
        after = self.table.outcomes.astype(int)
        np.add.at(by_action, (actions, states, after), shares)
        return self._with_slips(by_action, axis=0)

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        return self._with_slips(self.table.rewards, axis=1)

    def _with_slips(self, by_action: Array, axis: int) -> Array:
        if not self.slip:
            return by_action.copy()
        mixed: Array = self.slip * by_action.mean(axis=axis, keepdims=True)
        return mixed + (1.0 - self.slip) * by_action

    def exact_action_values(self, policy: ArrayLike, discount: float) -> Matrix:
        """Q of a deterministic policy, shape (states, actions), without approximation.

        Parameters
        ----------
        policy : array-like of int, shape (states,)
            The action taken in each state.
        discount : float
            At least 0 and below 1; where every episode terminates, 1 is possible.
        """
        self._require_discount(discount)
        transitions, rewards = self.transition_probabilities(), self.expected_rewards()
        states, actions = rewards.shape
        chosen: Any = np.asarray(policy)
        if chosen.shape != (states,) or not np.isin(chosen, np.arange(actions)).all():
            raise ValueError(
                f"policy must be {states} actions, each from 0 to {actions - 1}, not {policy!r}"
            )
        values = _state_values(transitions, rewards, chosen.astype(np.int64), discount)
        return _backup(transitions, rewards, values, discount)

    def optimal_action_values(self, discount: float) -> Matrix:
        """Q of the best policy, shape (states, actions).

        Policy iteration, from the policy that value iteration finds in as many sweeps as there
        are states. If all episodes end within so many steps, this policy is optimal already.
        """
        self._require_discount(discount)
        transitions, rewards = self.transition_probabilities(), self.expected_rewards()
        values = np.zeros(len(rewards))
        for _ in range(len(rewards)):
            before, values = values, _backup(transitions, rewards, values, discount).max(axis=1)
            if np.array_equal(before, values):
                break
        policy = _backup(transitions, rewards, values, discount).argmax(axis=1)
        while True:
            values = _state_values(transitions, rewards, policy, discount)
            action_values = _backup(transitions, rewards, values, discount)
            better = _improved(policy, action_values)
            if np.array_equal(better, policy):
                return action_values
            policy = better

    def optimal_return(self) -> float:
        """The expected return of the best policy, from state 0 and without a discount."""
        return float(self.optimal_action_values(1.0)[0].max())

    def optimal_average_reward(self) -> float:
        """The largest long-run mean reward per step.

        Policy iteration with the gain g and the bias h of a policy, g + h = R_pi + P_pi h. It needs
        an environment in which every policy comes back to state 0.
        """
        if self.terminates:
            raise ValueError(f"{type(self).__name__} terminates: no step is in the long run")
        transitions, rewards = self.transition_probabilities(), self.expected_rewards()
        states = np.arange(len(rewards))
        policy = rewards.argmax(axis=1)
        while True:
            # The bias is relative to state 0, and the gain takes the place of that state's bias.
            system = np.eye(len(states)) - transitions[policy, states]
            system[:, 0] = 1.0
            bias = np.linalg.solve(system, rewards[states, policy])
            gain, bias[0] = float(bias[0]), 0.0
            better = _improved(policy, _backup(transitions, rewards, bias, 1.0))
            if np.array_equal(better, policy):
                return gain
            policy = better

    def _require_discount(self, discount: float) -> None:
        if not (0 <= discount < 1 or (discount == 1 and self.terminates)):
            raise ValueError(f"discount={discount} must be at least 0 and below 1")


def _backup(transitions: Array, rewards: Matrix, values: Vector, discount: float) -> Matrix:
    """R + discount P V, shape (states, actions)."""
    backed_up: Matrix = rewards + discount * (transitions @ values).T
    return backed_up


def _state_values(transitions: Array, rewards: Matrix, policy: Integers, discount: float) -> Vector:
    """V = R_pi + discount P_pi V, shape (states,)."""
    states = np.arange(len(rewards))
    followed = transitions[policy, states]
    system = np.eye(len(states)) - discount * followed
    return np.asarray(np.linalg.solve(system, rewards[states, policy]), dtype=np.float64)


def _improved(policy: Integers, action_values: Matrix) -> Integers:
    """Switch to the greedy action where it is clearly better; equal actions do not alternate."""
    states = np.arange(len(policy))
    scale = max(float(np.ptp(action_values)), 1e-300)
    gain = action_values.max(axis=1) - action_values[states, policy]
    best: Integers = np.where(gain > _CLEARLY * scale, action_values.argmax(axis=1), policy)
    return best
