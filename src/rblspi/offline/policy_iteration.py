"""Approximate policy iteration on a fixed set of transitions: what LSPI and BLSPI share.

Least squares depends on a policy only through its actions in the next states of the data. If these
actions equal those of the preceding policy, policy iteration has converged; if they equal those of
an earlier one, it is in a cycle.

A cycle is left by a mixture: the policy that, in every next state, follows each policy of the
cycle with the same probability. Its sums are the mean of their sums, so it is evaluated like any
other policy, and iteration continues with the policy that is greedy in its values. If the same
cycle occurs a second time, the policy is kept that has the highest mean value in the next states
of the data, by its own evaluation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.types import Integers, Vector
from rblspi.data.transitions import Transitions
from rblspi.model.statistics import Statistics, empty
from rblspi.offline.accumulation import Data, Problem, chunks_of, require_finite, sums_of_policy
from rblspi.offline.estimator import Estimator
from rblspi.policies.choice import Greedy
from rblspi.policies.given import BatchPolicy, FunctionPolicy, PolicyFunction, first_action

#: The weights of a policy's action values, (k,), and the better policy that follows from them.
Improvement: TypeAlias = tuple[Vector, BatchPolicy]


class ConvergenceWarning(UserWarning):
    """Policy iteration ended before it converged."""


class PolicyIteration(Estimator):
    """Finds a policy, with one pass over the transitions for every policy that is evaluated."""

    actions: int
    max_iterations: int
    tolerance: float
    initial_policy: PolicyFunction | None

    def fit(self, transitions: Data, callback: Callable[[Iteration], object] | None = None) -> Self:
        """Find a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of their columns, or iterable of Transitions
            Collected by any policy. Every iteration iterates over an iterable once.
        callback : callable, optional
            Called with every `Iteration` when it is done.
        """
        cap = check.count("max_iterations", self.max_iterations)
        check.count("actions", self.actions)
        tolerance = self.tolerance and check.positive("tolerance", self.tolerance)
        chunks = chunks_of(transitions)
        problem = self._problem(chunks)
        initial = self._initial_policy()
        found = iterate(chunks, problem, self._improve, initial, cap, tolerance, callback)
        self.features_, self.observation_space_ = problem.features, problem.space
        self.statistics_, self.history_, self.converged_, self.cycle_ = found
        self.n_iter_ = len(self.history_)
        self._conclude(self.statistics_)
        self._warn_unless_converged()
        return self

    def act(self, observations: ArrayLike) -> Integers:
        """The actions of the policy in a batch of observations, shape (N,), or in a single one."""
        batches, single = self._batches(observations)
        policy = self.policy()
        actions = np.concatenate([policy(batch) for batch in batches])
        return actions[0] if single else actions

    def _improve(self, statistics: Statistics) -> Improvement:
        """Compute the weights from the sums of a policy, and the policy that is greedy in them."""
        weights = self._solve(statistics)
        return weights, Greedy(weights.reshape(self.actions, -1))

    def _initial_policy(self) -> BatchPolicy:
        if self.initial_policy is None:
            return first_action
        if not callable(self.initial_policy):
            raise TypeError(
                f"initial_policy={self.initial_policy!r} must be a function from a batch of "
                "observations to actions, or None for the first action everywhere"
            )
        return FunctionPolicy(self.initial_policy)

    def _warn_unless_converged(self) -> None:
        if self.cycle_:
            what = (
                f"{self.cycle_} policies follow one another in a cycle; the one with the highest "
                "mean value by its own evaluation is kept"
            )
        elif not self.converged_:
            what = "the policy still changes: raise max_iterations"
        else:
            return
        warnings.warn(
            f"after {self.n_iter_} iterations of {type(self).__name__}, {what}",
            ConvergenceWarning,
            stacklevel=3,
        )


class Iteration(NamedTuple):
    """The evaluation of one policy.

    The first policy is the initial one. A mixture consists of several earlier policies. Any other
    policy is greedy in the weights of the preceding iteration.

    ``policy`` is a digest of the policy's actions in the next states of the data; for a mixture,
    "mixture" and the digest of the policy that closed the cycle. ``changed`` counts the next
    states in which its action differs from that of the preceding policy. For the first policy,
    it counts the next states that are not terminal; for a mixture, it is 0.
    """

    weights: Vector  # of the policy's action values, (k,)
    policy: str
    changed: int
    change: float  # |theta - theta_before| / |theta|; infinite for the first policy
    mixed: int = 1  # the number of policies in a mixture


class Result(NamedTuple):
    """The outcome of policy iteration."""

    statistics: Statistics  # the policy that was found is greedy in the weights they give
    history: list[Iteration]
    converged: bool
    cycle: int  # the number of policies in the final cycle; 0 if there is none


class Visit(NamedTuple):
    """A policy that was evaluated."""

    policy: BatchPolicy
    digest: bytes
    value: float  # its sum of values over the next states, by its own evaluation


def iterate(
    chunks: Iterable[Transitions],
    problem: Problem,
    improve: Callable[[Statistics], Improvement],
    policy: BatchPolicy,
    max_iterations: int,
    tolerance: float,
    tell: Callable[[Iteration], object] | None = None,
) -> Result:
    """Evaluate, improve, repeat, starting with a policy and passing over the data each time.

    Iteration has also converged if the relative change of the weights is at most ``tolerance``.
    Every `Iteration` is passed to ``tell`` when it is done.
    """
    history: list[Iteration] = []
    path: list[Visit] = []  # the policies since the last mixture
    known: set[bytes] = set()  # the digests of those before it
    previous: BatchPolicy | None = None
    statistics = empty(problem.blocks, problem.features.size)
    for _ in range(max_iterations):
        sums = sums_of_policy(problem, policy, chunks, previous)
        digests = [visit.digest for visit in path]
        cycle = path[digests.index(sums.policy) :] if sums.policy in digests else []
        if len(cycle) == 1:
            return Result(statistics, history, True, 0)
        if cycle and known.issuperset(visit.digest for visit in cycle):
            # The best policy is greedy in the values of the one before it.
            best = max(range(len(cycle)), key=lambda i: cycle[i].value)
            statistics = sums_of_policy(problem, cycle[best - 1].policy, chunks).statistics
            return Result(statistics, history, False, len(cycle))

        mixed = [sums_of_policy(problem, visit.policy, chunks).statistics for visit in cycle]
        statistics = _mean(mixed) if cycle else sums.statistics
        weights, better = improve(statistics)
        digest = sums.policy.hex()
        change = _relative_change(history[-1].weights, weights) if history else math.inf
        if cycle:
            history.append(Iteration(weights, f"mixture {digest}", 0, change, len(cycle)))
        else:
            history.append(Iteration(weights, digest, sums.changed, change))
        if tell is not None:
            tell(history[-1])
        if cycle:
            known.update(visit.digest for visit in path)
            path = []
        else:
            path.append(Visit(policy, sums.policy, float(sums.ahead @ weights)))
            if history[-1].change <= tolerance:
                return Result(statistics, history, True, 0)
        previous, policy = policy, better
    return Result(statistics, history, False, 0)


def _mean(mixed: list[Statistics]) -> Statistics:
    """The sums of a mixture."""
    total = reduce(Statistics.merge, mixed)
    return Statistics(total.gram / len(mixed), total.cross / len(mixed), total.count // len(mixed))


def _relative_change(before: Vector, after: Vector) -> float:
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(after))
        distance = float(np.linalg.norm(after - before))
    require_finite(length, distance)
    return distance / length if length > 0.0 else distance
