"""Evaluate, improve, repeat: what LSPI and BLSPI share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check
from rblspi.estimators.base import Estimator
from rblspi.estimators.iteration import Improvement, Iteration, iterate
from rblspi.estimators.passes import Data, chunks_of
from rblspi.estimators.rules import Chosen, Greedy, Policy, Rule, first_action
from rblspi.statistics import Statistics


class ConvergenceWarning(UserWarning):
    """Policy iteration ended before its policy repeated itself."""


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
        How many policies follow one another for ever; 0 if that is not so. The one kept is that
        of the highest mean value in the next states of the data by its own evaluation.
    """

    actions: int
    max_iterations: int
    tolerance: float
    initial_policy: Policy | None

    history_: list[Iteration]
    n_iter_: int
    converged_: bool
    cycle_: int

    def fit(self, transitions: Data, callback: Callable[[Iteration], object] | None = None) -> Self:
        """Find a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of five columns, or iterable of Transitions
            Of any policy. An iterable is gone through once for every iteration.
        callback : callable, optional
            Called with every `Iteration` as soon as it is done.
        """
        cap = check.count("max_iterations", self.max_iterations)
        check.count("actions", self.actions)
        tolerance = self.tolerance and check.positive("tolerance", self.tolerance)
        problem = self._problem(transitions)
        outcome = iterate(
            chunks_of(transitions),
            problem,
            self._improve,
            self._initial_rule(),
            cap,
            tolerance,
            callback,
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
        """Actions in a batch of observations, shape (N,), or in one; first ones if tied."""
        values = self.predict(observations)
        actions: NDArray[np.int64] = values.argmax(axis=-1)
        return actions

    def _improve(self, statistics: Statistics) -> Improvement:
        """The weights that the sums of a policy lead to, and the policy greedy in them."""
        weights = self._solve(statistics)
        return Improvement(weights, Greedy(weights.reshape(self.actions, -1)))

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
            what = (
                f"{self.cycle_} policies follow one another for ever; the one of the highest mean "
                "value by its own evaluation is kept"
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
