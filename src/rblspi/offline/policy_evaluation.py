"""Evaluation of one fixed policy: what LSTD and BLSTD share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.accumulation import Data, PolicySums, Problem, sums_of_policy
from rblspi.offline.estimator import Estimator
from rblspi.policies.given import (
    BatchPolicy,
    FunctionPolicy,
    ListedActions,
    PolicyFunction,
    first_action,
)

#: What `fit` accepts as the policy: a function, the actions it takes, or nothing.
PolicyLike: TypeAlias = PolicyFunction | NDArray[Any] | None


class PolicyEvaluation(Estimator):
    """Estimates the values of a policy with one pass over the transitions."""

    policy_: PolicyFunction | None
    _sums: PolicySums  # over all transitions so far

    def fit(self, transitions: Data, policy: PolicyLike = None) -> Self:
        """Estimate the values of a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of their columns, or iterable of Transitions
            For values of actions, they may come from any policy. For values of states, they must
            come from the policy that is evaluated.
        policy : callable or array of int
            For values of actions: a function that maps a batch of next observations to actions,
            or an array of the next actions, shape (N,). For values of states: None, because it is
            the policy that collected the data.
        """
        chunks = self._read(transitions)
        return self._add(self._problem(chunks), chunks, policy, more=False)

    def partial_fit(self, transitions: Data, policy: PolicyLike = None) -> Self:
        """Add transitions. The result is that of `fit` with all transitions so far.

        The arguments are those of `fit`; the policy has to be the same in all calls. A function is
        remembered and need not be passed again.
        """
        chunks = self._read(transitions, again=hasattr(self, "statistics_"))
        if not hasattr(self, "statistics_"):
            return self._add(self._problem(chunks, look=False), chunks, policy, more=False)
        problem = Problem(self.features_, self.observation_space_, self.actions, self.discount)
        remembered = self.policy_ if policy is None else policy
        return self._add(problem, chunks, remembered, more=True)

    def td_errors(self, transitions: Transitions) -> Vector:
        """The TD error r + gamma Q(s', pi(s')) - Q(s, a) of every transition, shape (N,)."""
        self._require_fitted()
        if self.policy_ is None:
            raise ValueError("TD errors need the policy as a function: pass one to fit")
        log, policy = transitions, self.policy_
        now = self.predict(log.observations, log.actions)
        after = self.predict(log.next_observations, policy(log.next_observations))
        ahead = log.discounts(self.discount) * np.where(log.terminated, 0.0, after)
        errors: Vector = log.rewards + ahead - now
        return errors

    def _add(
        self, problem: Problem, chunks: Iterable[Transitions], policy: PolicyLike, more: bool
    ) -> Self:
        batch_policy = _as_batch_policy(problem, policy)
        sums = sums_of_policy(problem, batch_policy, chunks)
        if isinstance(batch_policy, ListedActions):
            batch_policy.require_exhausted()
        if more:
            sums = self._sums.merge(sums)
        self._conclude(problem, sums)
        self._sums = sums
        self.policy_ = policy if callable(policy) else None
        return self


def _as_batch_policy(problem: Problem, policy: PolicyLike) -> BatchPolicy:
    if problem.actions is None:
        if policy is not None:
            raise ValueError(
                "policy is given, but states are valued (actions=None) under the policy that "
                "collected the data; set actions to evaluate another one"
            )
        return first_action
    if policy is None:
        raise ValueError(
            "policy=None: actions are valued under a policy; give a function of the next "
            "observations, or an array of next actions"
        )
    return FunctionPolicy(policy) if callable(policy) else ListedActions(np.asarray(policy))
