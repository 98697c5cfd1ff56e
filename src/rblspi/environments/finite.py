"""Environments with finitely many states, which can be solved exactly.

With the transition probabilities P(s' | s, a) and the expected rewards R(s, a), the action values
of a policy pi and of the best policy are

    Q_pi(s, a) = R(s, a) + discount sum_s' P(s' | s, a) Q_pi(s', pi(s'))
    Q*(s, a)   = R(s, a) + discount sum_s' P(s' | s, a) max_a' Q*(s', a')

Where a step may terminate the episode, P(. | s, a) adds up to less than 1: the rest is the
probability of the end, after which there is nothing to be had.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.types import Array, Integers, Matrix, Vector
from rblspi.environments.base import CompiledEnvironment

#: how much better an action has to be to replace another one: more than rounding makes it
_CLEARLY = 1e-11


class FiniteEnvironment(CompiledEnvironment):
    """An environment with Discrete observations that knows its own probabilities."""

    #: whether every policy comes to a terminal state
    terminates: ClassVar[bool] = False

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        raise NotImplementedError

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        raise NotImplementedError

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
        are states. In a problem that is over by then, this one is the best already.
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
        """The largest mean reward of a step in the long run.

        Policy iteration with the gain g and the bias h of a policy, g + h = R_pi + P_pi h. It needs
        an environment in which every policy comes back to state 0.
        """
        if self.terminates:
            raise ValueError(f"{type(self).__name__} terminates: no step is in the long run")
        transitions, rewards = self.transition_probabilities(), self.expected_rewards()
        states = np.arange(len(rewards))
        policy = rewards.argmax(axis=1)
        while True:
            # The bias is relative to that of state 0, whose place the gain takes.
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
    """The greedy policy, where it is clearly better, so that equal actions do not alternate."""
    states = np.arange(len(policy))
    scale = max(float(np.ptp(action_values)), 1e-300)
    gain = action_values.max(axis=1) - action_values[states, policy]
    best: Integers = np.where(gain > _CLEARLY * scale, action_values.argmax(axis=1), policy)
    return best
