"""Values of one fixed policy: what LSTD and BLSTD share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rblspi.estimators.base import Estimator
from rblspi.estimators.passes import Data, Problem, chunks_of, evaluate
from rblspi.estimators.rules import Chosen, Listed, Policy, Rule, first_action
from rblspi.transitions import Transitions


class PolicyEvaluation(Estimator):
    """One pass over the transitions, then one solution."""

    policy_: Policy | None

    def fit(self, transitions: Data, policy: Policy | NDArray[Any] | None = None) -> Self:
        """Estimate the values of a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of five columns, or iterable of Transitions
            Those of any policy if actions are valued; of the policy itself if states are.
        policy : callable or array of int
            For values of actions: ``policy(observations)`` gives the action in each of a batch
            of next observations, or an array lists them, shape (N,). For values of states, the
            policy is the one that made the data: none is given.
        """
        problem = self._problem(transitions)
        return self._add(problem, chunks_of(transitions), policy)

    def partial_fit(self, transitions: Data, policy: Policy | NDArray[Any] | None = None) -> Self:
        """Add transitions; in the end the same as `fit` of all of them.

        Parameters
        ----------
        transitions : as in `fit`
        policy : callable or array of int, optional
            As in `fit`: it has to be the same policy. A callable is remembered from the first
            time.
        """
        if not hasattr(self, "statistics_"):
            problem = self._problem(transitions, look=False)
            return self._add(problem, chunks_of(transitions), policy)
        problem = Problem(self.features_, self.actions, self.discount)
        remembered = self.policy_ if policy is None else policy
        return self._add(problem, chunks_of(transitions), remembered, more=True)

    def _add(
        self,
        problem: Problem,
        chunks: Iterable[Transitions],
        policy: Policy | NDArray[Any] | None,
        more: bool = False,
    ) -> Self:
        rule = _rule(problem, policy)
        statistics = evaluate(problem, rule, chunks).statistics
        if isinstance(rule, Listed):
            rule.require_used_up()
        self.features_ = problem.features
        self.policy_ = policy if callable(policy) else None
        self.statistics_ = self.statistics_.merge(statistics) if more else statistics
        self._conclude(self.statistics_)
        return self


def _rule(problem: Problem, policy: Policy | NDArray[Any] | None) -> Rule:
    if problem.actions is None:
        if policy is not None:
            raise ValueError(
                "policy is given, but states are valued (actions=None) under the policy that "
                "made the data; set actions to value another one"
            )
        return first_action
    if policy is None:
        raise ValueError(
            "policy=None: actions are valued under a policy; give a function of the next "
            "observations, or an array of next actions"
        )
    return Chosen(policy) if callable(policy) else Listed(np.asarray(policy))
