"""Evaluate, improve, repeat: what LSPI and BLSPI share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check
from rblspi.estimators.base import Estimator
from rblspi.estimators.passes import Data, Problem, chunks_of, evaluate
from rblspi.estimators.rules import Chosen, Greedy, Policy, Rule, first_action
from rblspi.statistics import Statistics, empty
from rblspi.transitions import Transitions

Vector = NDArray[np.float64]


class ConvergenceWarning(UserWarning):
    """Policy iteration ended before its policy repeated itself."""


class Iteration(NamedTuple):
    """One evaluation of a policy.

    The policy of the first iteration is the initial one; that of any other one is greedy in the
    weights of the iteration before it.

    Attributes
    ----------
    weights : ndarray, shape (k,)
        Of the policy's action values.
    policy : str
        Digest of the policy's actions in the next states of the data.
    changed : int
        Next states in which it acts differently from the policy before it; at first, all of
        those that are not terminal.
    change : float
        |theta - theta_before| / |theta|; infinite at first.
    """

    weights: Vector
    policy: str
    changed: int
    change: float


class Outcome(NamedTuple):
    """How policy iteration ended."""

    statistics: Statistics  # of the policy evaluated last
    history: list[Iteration]
    converged: bool
    cycle: int  # policies that follow one another for ever; 0 if that is not so


def iterate(
    chunks: Iterable[Transitions],
    problem: Problem,
    solve: Callable[[Statistics], Vector],
    rule: Rule,
    max_iterations: int,
    tolerance: float,
) -> Outcome:
    """Approximate policy iteration on a fixed set of transitions.

    Least squares see a policy only through its actions in the next states of the data. If all of
    these are as in the iteration before, it has converged; as in an earlier one, it cycles.

    Parameters
    ----------
    chunks : iterable of Transitions
        Gone through at every iteration.
    problem : Problem
    solve : callable
        From the sums of a policy to the weights of its action values.
    rule : callable
        The initial policy.
    max_iterations : int
    tolerance : float
        Converged as well if the weights change by less, relative to their length.
    """
    history: list[Iteration] = []
    seen: dict[bytes, int] = {}
    previous: Rule | None = None
    statistics = empty(problem.blocks, problem.features.size)
    before = np.zeros(statistics.weights)
    for iteration in range(max_iterations):
        evaluation = evaluate(problem, rule, chunks, previous)
        if evaluation.policy in seen:
            cycle = iteration - seen[evaluation.policy]
            return Outcome(statistics, history, cycle == 1, cycle if cycle > 1 else 0)
        seen[evaluation.policy] = iteration

        statistics = evaluation.statistics
        weights = solve(statistics)  # policy evaluation
        change = _relative_change(before, weights) if history else math.inf
        digest = evaluation.policy.hex()
        history.append(Iteration(weights, digest, evaluation.changed, change))
        if change <= tolerance:
            return Outcome(statistics, history, True, 0)

        previous, before = rule, weights
        rule = Greedy(weights.reshape(problem.blocks, -1))  # policy improvement
    return Outcome(statistics, history, False, 0)


def _relative_change(before: Vector, after: Vector) -> float:
    length = float(np.linalg.norm(after))
    distance = float(np.linalg.norm(after - before))
    return distance / length if length > 0.0 else distance


class PolicyIteration(Estimator):
    """Finds a policy: a pass over the transitions for every policy on the way.

    Attributes
    ----------
    history_ : list of Iteration
        The weights of every policy on the way.
    n_iter_ : int
        Policies evaluated.
    converged_ : bool
        Whether the last policy is greedy in its own values, as far as the data can tell.
    cycle_ : int
        How many policies follow one another for ever; 0 if that is not so.
    """

    actions: int
    max_iterations: int
    tolerance: float
    initial_policy: Policy | None

    history_: list[Iteration]
    n_iter_: int
    converged_: bool
    cycle_: int

    def fit(self, transitions: Data) -> Self:
        """Find a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of five columns, or iterable of Transitions
            Of any policy. An iterable is gone through once for every iteration.
        """
        cap = check.count("max_iterations", self.max_iterations)
        check.count("actions", self.actions)
        tolerance = self.tolerance and check.positive("tolerance", self.tolerance)
        problem = self._problem(transitions)
        outcome = iterate(
            chunks_of(transitions), problem, self._solve, self._initial_rule(), cap, tolerance
        )
        self.features_ = problem.features
        self.statistics_ = outcome.statistics
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.converged_ = outcome.converged
        self.cycle_ = outcome.cycle
        self._conclude(self.statistics_)
        self._warn_unless_converged()
        return self

    def act(self, observations: ArrayLike) -> NDArray[np.int64]:
        """Greedy actions in a batch of observations, shape (N,), or in one; first ones if tied."""
        values = self.predict(observations)
        actions: NDArray[np.int64] = values.argmax(axis=-1)
        return actions

    def _initial_rule(self) -> Rule:
        if self.initial_policy is None:
            return first_action
        if not callable(self.initial_policy):
            raise TypeError(
                f"initial_policy={self.initial_policy!r} must be a function from a batch of "
                "observations to actions, or None for the first action everywhere"
            )
        return Chosen(self.initial_policy)

    def _warn_unless_converged(self) -> None:
        if self.cycle_:
            what = f"{self.cycle_} policies follow one another for ever; the last one is kept"
        elif not self.converged_:
            what = "the policy still changes: raise max_iterations"
        else:
            return
        warnings.warn(
            f"after {self.n_iter_} iterations of {type(self).__name__}, {what}",
            ConvergenceWarning,
            stacklevel=3,
        )
