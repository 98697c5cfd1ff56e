"""Logged episodes and what the policy under evaluation would do in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Integers, Mask, Vector
from rblspi.data.transitions import Transitions, joined
from rblspi.features import Basis, BasisLike
from rblspi.offline.accumulation import Data, batch_rows, chunks_of, first_chunks
from rblspi.offline.problem import Problem
from rblspi.policies.given import PolicyFunction


@dataclass(frozen=True)
class Episodes:
    """All transitions of a log in memory, with the actions of a policy in their states.

    Values are estimated relative to a constant, the ``centre``: the value that every state would
    have if all rewards were the same. A constant that is added to the rewards of a continuing
    problem is therefore added to every value, also where a basis has no constant feature.
    """

    log: Transitions
    problem: Problem
    here: Integers  # pi(s), (N,)
    ahead: Integers  # pi(s'), 0 where s' is terminal, (N,)
    firsts: NDArray[Any]  # the first states whose mean value is wanted
    first_actions: Integers  # pi in these
    sampled: bool  # whether these are the first states of the logged episodes

    @cached_property
    def starts(self) -> Integers:
        """The first row of every episode, shape (E,)."""
        return np.flatnonzero(self.log.starts())

    @cached_property
    def lengths(self) -> Integers:
        """The number of transitions in every episode, shape (E,)."""
        return np.diff(np.append(self.starts, self.log.size))

    @property
    def count(self) -> int:
        """E, the number of episodes."""
        return len(self.starts)

    @cached_property
    def terminated(self) -> Mask:
        """Whether an episode ended in a terminal state, not cut short, shape (E,)."""
        ended: Mask = self.log.terminated[self.starts + self.lengths - 1]
        return ended

    @cached_property
    def episode(self) -> Integers:
        """The episode of every row, shape (N,)."""
        return np.repeat(np.arange(self.count), self.lengths)

    @cached_property
    def segments(self) -> Integers:
        """The segment of every row, shape (N,); see `Transitions.segments`."""
        return self.log.segments()

    @cached_property
    def discounts(self) -> float | Vector:
        """The discount of every transition, (N,), or of all of them."""
        return self.log.discounts(self.problem.discount)

    @cached_property
    def elapsed(self) -> Vector:
        """How long every transition took, (N,): usually 1."""
        elapsed = self.log.elapsed
        return np.ones(self.log.size) if elapsed is None else elapsed

    @cached_property
    def times(self) -> Vector:
        """The time from the start of the episode to every row, (N,): steps, if each takes 1."""
        before = np.cumsum(self.elapsed) - self.elapsed
        times: Vector = before - before[self.starts[self.episode]]
        return times

    @cached_property
    def ending(self) -> Vector:
        """The probability that everything ends: 1 - gamma, or 1 where s' is terminal, (N,)."""
        return np.where(self.log.terminated, 1.0, 1.0 - self.discounts)

    @cached_property
    def centre(self) -> float:
        """The constant value whose mean TD error is 0."""
        total = float(self.ending.sum())
        return float(self.log.rewards.sum()) / total if total > 0.0 else 0.0

    @cached_property
    def rewards(self) -> Vector:
        """The TD errors of the constant value ``centre``, shape (N,)."""
        rewards: Vector = self.log.rewards - self.centre * self.ending
        return rewards

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a step; one after a terminal state is 0.

        If steps take different times, it is the reward of a unit of time.
        """
        rewards = self.log.reward_rates(self.problem.discount)
        after = 0.0 if self.log.terminated.any() else rewards[0]
        return float(min(rewards.min(), after)), float(max(rewards.max(), after))

    @property
    def value_range(self) -> tuple[float, float]:
        """The values of getting the least, or the greatest, reward forever."""
        least, greatest = self.reward_range
        if self.problem.discount == 1.0:
            return -np.inf, np.inf
        return least / (1.0 - self.problem.discount), greatest / (1.0 - self.problem.discount)

    @property
    def room(self) -> tuple[float, float]:
        """How much lower and how much higher than the centre a value can be."""
        least, greatest = self.value_range
        return max(self.centre - least, 0.0), max(greatest - self.centre, 0.0)

    @cached_property
    def half(self) -> Mask:
        """Whether an episode is in the first half, shape (E,).

        The halves follow from the states and actions of the episodes, in whatever order they are.
        """
        columns = self.log.observations.astype(np.float64), self.log.actions, self.log.rewards
        parts = (np.split(column, self.starts[1:]) for column in columns)
        keys = [
            (blake2b(states.tobytes() + actions.tobytes()).digest(), rewards.tolist())
            for states, actions, rewards in zip(*parts, strict=True)
        ]
        half = np.zeros(self.count, np.bool_)
        half[sorted(range(self.count), key=keys.__getitem__)[::2]] = True
        return half

    def of_states(self) -> Episodes:
        """The same episodes for values of states: as if there were one action."""
        none = np.zeros(self.log.size, np.int64)
        return replace(
            self,
            log=replace(self.log, actions=none),
            problem=self.problem._replace(actions=None),
            here=none,
            ahead=none,
            first_actions=np.zeros(len(self.firsts), np.int64),
        )

    def linear(self, observations: NDArray[Any], actions: Integers, weights: Vector) -> Vector:
        """Products phi(s, a)'weights for every observation and action, shape (N,)."""
        by_action, values = weights.reshape(self.problem.blocks, -1), np.empty(len(observations))
        for part in self._batches(len(observations)):
            x = self.problem.features(observations[part])
            values[part] = np.einsum("ij,ij->i", x, by_action[actions[part]])
        return values

    def weighted_features(
        self, observations: NDArray[Any], actions: Integers, weights: Vector
    ) -> Vector:
        """The sum of weight times phi(s, a) over observations and actions, shape (k,)."""
        total = np.zeros((self.problem.blocks, self.problem.features.size))
        for part in self._batches(len(observations)):
            by_action = np.eye(self.problem.blocks)[actions[part]] * weights[part, None]
            total += by_action.T @ self.problem.features(observations[part])
        return total.ravel()

    def _batches(self, count: int) -> Iterator[slice]:
        rows = batch_rows(self.problem.features)
        return (slice(start, start + rows) for start in range(0, count, rows))

    def in_basis(self, basis: Basis) -> Episodes:
        """The same in another basis for the same observations."""
        features = basis.build(self.problem.space)
        return replace(self, problem=self.problem._replace(features=features))

    def under(self, policy: PolicyFunction) -> Episodes:
        """The same with the actions of another policy."""
        log, problem, ahead = self.log, self.problem, np.zeros(self.log.size, np.int64)

        def asked(observations: NDArray[Any]) -> Integers:
            found = policy(observations) if len(observations) else np.zeros(0, np.int64)
            return problem.chosen(found, observations)

        going_on = ~log.terminated
        ahead[going_on] = asked(log.next_observations[going_on])
        here, first_actions = asked(log.observations), asked(self.firsts)
        return replace(self, here=here, ahead=ahead, first_actions=first_actions)


def episodes_of(
    transitions: Data,
    policy: PolicyFunction,
    basis: BasisLike,
    actions: int,
    discount: float,
    first_observations: ArrayLike | None = None,
    observation_space: gym.Space[Any] | None = None,
) -> Episodes:
    """Gather a log, and ask the policy for its actions; the arguments are those of `estimates`."""
    log = joined(first_chunks(chunks_of(transitions)))
    problem = Problem.of(basis, actions, discount, observation_space, [log])
    problem.require_actions(log.actions)
    firsts = log.observations[log.starts()]
    if first_observations is not None:
        firsts = np.asarray(first_observations)
        firsts = firsts[None] if firsts.shape == problem.features.shape else firsts
    none = np.zeros(0, np.int64)
    episodes = Episodes(log, problem, none, none, firsts, none, first_observations is None)
    return episodes.under(policy)
