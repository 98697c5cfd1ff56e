"""Approximate policy iteration on a fixed set of transitions: what LSPI and BLSPI share.

Least squares depends on a policy only through its actions in the next states of the data. If these
actions equal those of the preceding policy, policy iteration has converged; if they equal those of
an earlier one, it is in a cycle.

A cycle is left by a mixture: the policy that, in every next state, follows each policy of the
cycle with the same probability. Its sums are the mean of their sums, so it is evaluated like any
other policy, and iteration continues with the policy that is greedy in its values. If the same
cycle occurs a second time, the policy is kept that has the highest mean value in the next states
of the data, by its own evaluation.

If the basis is chosen, iteration starts from the policy of fitted Q iteration, and of all policies
on the way the one is kept that a `Judge` values most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from rblspi.core.types import Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.accumulation import (
    Data,
    PolicySums,
    Problem,
    require_finite,
    sums_of_policy,
)
from rblspi.offline.fitted_q import fitted_q_iteration, greedy_in, on_observations
from rblspi.offline.iterations import Iteration, OnIteration
from rblspi.offline.judge import Judge
from rblspi.offline.model_selection import first_rows
from rblspi.offline.policy_learner import PolicyLearner
from rblspi.policies.choice import Greedy
from rblspi.policies.given import BatchPolicy, FunctionPolicy, PolicyFunction, first_action

#: The weights of a policy's action values, (k,), and the better policy that follows from them.
Improvement: TypeAlias = tuple[Vector, BatchPolicy]


class PolicyIteration(PolicyLearner):
    """Finds a policy, with one pass over the transitions for every policy that is evaluated."""

    initial_policy: PolicyFunction | None
    _sums: PolicySums  # over all transitions so far

    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        initial = self._initial_policy(problem, chunks)
        improve = partial(self._improve, problem)
        goals = (int(self.max_iterations), float(self.tolerance))
        found = iterate(chunks, problem, improve, initial, *goals, callback)
        if self.selection_ is not None:
            found = self._kept(found, initial, problem, chunks)
        self._settle(problem, found)

    def partial_fit(self, transitions: Data, callback: OnIteration | None = None) -> Self:
        """Add transitions, and iterate again from the policy that was found so far.

        Sums over the new transitions follow every policy, and are merged with those over the
        earlier ones, which are no longer needed: their next actions stay those of the policy that
        was found from them. The first call is `fit`.
        """
        if not hasattr(self, "_sums"):
            return self.fit(transitions, callback)
        chunks, before = self._read(transitions, again=True), self._sums
        problem = Problem(self.features_, self.observation_space_, self.actions_, self.discount)
        policy = self._improve(problem, before)[1]
        goals = (int(self.max_iterations), float(self.tolerance))
        found = iterate(
            chunks,
            problem,
            lambda sums: self._improve(problem, before.merge(sums)),
            policy,
            *goals,
            callback,
        )
        self._settle(problem, found._replace(sums=before.merge(found.sums)))
        self.n_iter_ = len(self.history_)
        self._warn_unless_converged()
        return self

    def _settle(self, problem: Problem, found: Result) -> None:
        self._sums, self.history_, self.converged_, self.cycle_ = found
        self._conclude(problem, self._sums)

    def _check_tolerance(self) -> None:
        if self.tolerance != 0.0:
            super()._check_tolerance()

    def _improve(self, problem: Problem, sums: PolicySums) -> Improvement:
        """Compute the weights from the sums of a policy, and the policy that is greedy in them."""
        weights = self._solve(problem, sums)
        return weights, Greedy(weights.reshape(problem.blocks, -1))

    def _kept(
        self, found: Result, initial: BatchPolicy, problem: Problem, chunks: Iterable[Transitions]
    ) -> Result:
        """The policy of the path that is worth most in cells of the observations."""
        judge = Judge.of(first_rows(chunks), problem.blocks, problem.discount)
        if not judge.can_tell:
            return found
        path = [greedy_in(iteration.weights, problem) for iteration in found.history]
        values = [judge.value(on_observations(policy, problem.features)) for policy in path]
        pure = [i for i, iteration in enumerate(found.history) if iteration.mixed == 1]
        best = max(pure, key=lambda i: (values[i], i))
        if best == len(path) - 1:
            return found
        evaluated = initial if best == 0 else path[best - 1]
        return found._replace(sums=sums_of_policy(problem, evaluated, chunks), converged=False)

    def _initial_policy(self, problem: Problem, chunks: Iterable[Transitions]) -> BatchPolicy:
        if self.initial_policy is None:
            if self.selection_ is None:
                return first_action
            found = fitted_q_iteration(problem, chunks, self.selection_.ridge, 500, 1e-3)
            return greedy_in(found.weights, problem)
        if not callable(self.initial_policy):
            raise TypeError(
                f"initial_policy={self.initial_policy!r} must be a function from a batch of "
                "observations to actions, or None for the first action everywhere"
            )
        return FunctionPolicy(self.initial_policy)


class Result(NamedTuple):
    """The outcome of policy iteration."""

    sums: PolicySums  # the policy that was found is greedy in the weights they give
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
    improve: Callable[[PolicySums], Improvement],
    policy: BatchPolicy,
    max_iterations: int,
    tolerance: float,
    tell: OnIteration | None = None,
) -> Result:
    """Evaluate, improve, repeat, starting with a policy and passing over the data each time.

    Iteration has also converged if the relative change of the weights is at most ``tolerance``.
    Every `Iteration` is passed to ``tell`` when it is done.
    """
    history: list[Iteration] = []
    path: list[Visit] = []  # the policies since the last mixture
    known: set[bytes] = set()  # the digests of those before it
    previous: BatchPolicy | None = None
    evaluated: PolicySums | None = None  # the sums behind the latest weights
    for _ in range(max_iterations):
        sums = sums_of_policy(problem, policy, chunks, previous)
        digests = [visit.digest for visit in path]
        cycle = path[digests.index(sums.policy) :] if sums.policy in digests else []
        if len(cycle) == 1 and evaluated is not None:
            return Result(evaluated, history, True, 0)
        if cycle and known.issuperset(visit.digest for visit in cycle):
            # The best policy is greedy in the values of the one before it.
            best = max(range(len(cycle)), key=lambda i: cycle[i].value)
            evaluated = sums_of_policy(problem, cycle[best - 1].policy, chunks)
            return Result(evaluated, history, False, len(cycle))

        mixed = [sums_of_policy(problem, visit.policy, chunks) for visit in cycle]
        evaluated = PolicySums.mixture(mixed) if cycle else sums
        weights, better = improve(evaluated)
        digest = sums.policy.hex()
        change = math.inf
        if history:
            change = _relative_change(history[-1].weights, weights, problem.constant)
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
                return Result(evaluated, history, True, 0)
        previous, policy = policy, better
    assert evaluated is not None
    return Result(evaluated, history, False, 0)


def _relative_change(before: Vector, after: Vector, constant: Vector | None) -> float:
    """|theta - theta_before|, relative to the length of theta without its constant part.

    How large values are in all says nothing about how much they differ, which is what policies
    depend on.
    """
    shape = after
    if constant is not None:
        shape = after - constant * (constant @ after / (constant @ constant))
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(shape))
        distance = float(np.linalg.norm(after - before))
    require_finite(length, distance)
    return distance / length if length > 0.0 else distance
