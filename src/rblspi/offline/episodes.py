"""Logged episodes and what the policy under evaluation would do in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Integers, Mask, Vector
from rblspi.data.transitions import Transitions, joined
from rblspi.features import Basis, BasisLike
from rblspi.offline.accumulation import Data, chunks_of, first_chunks
from rblspi.offline.fitted_q import Rewards
from rblspi.offline.paths import only_action, uncontrolled
from rblspi.offline.problem import ActionFeatures, Problem
from rblspi.policies.given import PolicyFunction


@dataclass(frozen=True, eq=False)
class Episodes:
    """All N transitions of a log in memory, with the actions of a policy in their states.

    Values are estimated relative to a constant, the ``centre``: the value that every state would
    have if all rewards were the same. A constant that is added to the rewards of a continuing
    problem is therefore added to every value, also where a basis has no constant feature.
    """

    log: Transitions
    problem: Problem
    starts: Integers  # the first row of every one of E episodes, (E,)
    lengths: Integers  # transitions in every episode, (E,)
    terminated: Mask  # whether an episode ended in a terminal state, not cut short, (E,)
    episode: Integers  # the episode of every row, (N,)
    segments: Integers  # the segment of every row, see `Transitions.segments`, (N,)
    elapsed: Vector  # how long every transition took, (N,): usually 1
    times: Vector  # from the start of the episode to every row, (N,): steps, if each takes 1
    discounts: float | Vector  # of every transition, (N,), or of all of them
    ending: Vector  # the probability that everything ends: 1 - gamma, or 1 at the end, (N,)
    centre: float  # the constant value whose mean TD error is 0
    firsts: NDArray[Any]  # the first states whose mean value is wanted
    sampled: bool  # whether these are the first states of the logged episodes
    here: Integers  # pi(s), (N,)
    ahead: Integers  # pi(s'), 0 where s' is terminal, (N,)
    first_actions: Integers  # pi in the first states

    @classmethod
    def of(
        cls,
        log: Transitions,
        problem: Problem,
        policy: PolicyFunction,
        first_observations: ArrayLike | None,
    ) -> Self:
        """The episodes of a log, with the actions of a policy."""
        starts = np.flatnonzero(log.starts())
        lengths = np.diff(np.append(starts, log.size))
        episode = np.repeat(np.arange(len(starts)), lengths)
        elapsed = np.ones(log.size) if log.elapsed is None else log.elapsed
        before = np.cumsum(elapsed) - elapsed
        discounts = log.discounts(problem.discount)
        ending = np.where(log.terminated, 1.0, 1.0 - discounts)
        total = float(ending.sum())
        given = log.observations[starts] if first_observations is None else first_observations
        firsts = problem.batch(given)
        return cls(
            log=log,
            problem=problem,
            starts=starts,
            lengths=lengths,
            terminated=log.terminated[starts + lengths - 1],
            episode=episode,
            segments=log.segments(),
            elapsed=elapsed,
            times=before - before[starts[episode]],
            discounts=discounts,
            ending=ending,
            centre=float(log.rewards.sum()) / total if total > 0.0 else 0.0,
            firsts=firsts,
            sampled=first_observations is None,
            **_actions_of(policy, problem, log, firsts),
        )

    def under(self, policy: PolicyFunction) -> Self:
        """The same with the actions of another policy."""
        return replace(self, **_actions_of(policy, self.problem, self.log, self.firsts))

    def in_basis(self, basis: Basis) -> Self:
        """The same in another basis for the same observations."""
        features = basis.build(self.problem.space)
        return replace(self, problem=self.problem._replace(features=features))

    def of_states(self) -> Self:
        """The same episodes for values of states: as if there were one action."""
        problem = self.problem._replace(actions=None)
        return replace(self, log=uncontrolled(self.log), problem=problem).under(only_action)

    @property
    def count(self) -> int:
        """E, the number of episodes."""
        return len(self.starts)

    @property
    def now(self) -> ActionFeatures:
        """phi(s, a) of every transition."""
        return self.problem.action_features(self.log.observations, self.log.actions)

    @property
    def after(self) -> ActionFeatures:
        """phi(s', pi(s')) of every transition."""
        return self.problem.action_features(self.log.next_observations, self.ahead)

    @property
    def first(self) -> ActionFeatures:
        """phi(s, pi(s)) of the first states."""
        return self.problem.action_features(self.firsts, self.first_actions)

    @property
    def rewards(self) -> Vector:
        """The TD errors of the constant value ``centre``, shape (N,)."""
        rewards: Vector = self.log.rewards - self.centre * self.ending
        return rewards

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a unit of time; after a terminal state it is 0."""
        rewards = Rewards.of(self.log, self.problem.discount)
        after = 0.0 if rewards.ends else rewards.least
        return min(rewards.least, after), max(rewards.greatest, after)

    @property
    def value_range(self) -> tuple[float, float]:
        """The least and the greatest value that the rewards allow."""
        if self.problem.discount == 1.0:
            return -math.inf, math.inf
        return Rewards.of(self.log, self.problem.discount).limits(self.problem.discount)

    def widened(self, low: float, high: float, missing: float) -> tuple[float, float]:
        """An interval of a value of which a share, ``missing``, has no data.

        From there on, rewards may be the least or the greatest of the log forever.
        """
        if missing == 0.0:
            return low, high
        least, greatest = self.value_range
        low -= missing * max(self.centre - least, 0.0)
        return low, high + missing * max(greatest - self.centre, 0.0)

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
    return Episodes.of(log, problem, policy, first_observations)


def _actions_of(
    policy: PolicyFunction, problem: Problem, log: Transitions, firsts: NDArray[Any]
) -> dict[str, Any]:
    """The actions of a policy in all states, by the fields of `Episodes`."""

    def asked(observations: NDArray[Any]) -> Integers:
        found = policy(observations) if len(observations) else np.zeros(0, np.int64)
        return problem.chosen(found, observations)

    ahead = np.zeros(log.size, np.int64)
    ahead[~log.terminated] = asked(log.next_observations[~log.terminated])
    return {"here": asked(log.observations), "ahead": ahead, "first_actions": asked(firsts)}
