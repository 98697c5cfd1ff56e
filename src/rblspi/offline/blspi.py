"""Bayesian least-squares policy iteration: evaluate by BLSTD, improve greedily, repeat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, Self

import gymnasium as gym

from rblspi.core import check
from rblspi.data.columns import Columns
from rblspi.data.transitions import Transitions, joined
from rblspi.features import BasisLike
from rblspi.offline.accumulation import Data, PolicySums, Problem
from rblspi.offline.blstd import Bayesian
from rblspi.offline.iterations import OnIteration
from rblspi.offline.model_selection import MOST_ROWS, first_rows
from rblspi.offline.policy_iteration import Improvement, PolicyIteration, Result
from rblspi.offline.values import value_posterior
from rblspi.policies.choice import Pessimistic
from rblspi.policies.given import BatchPolicy, PolicyFunction
from rblspi.policies.values import ValuePosterior


@dataclass(eq=False, repr=False)
class BLSPI(Bayesian, PolicyIteration):
    """A policy from logged transitions, and the posterior of its values.

    As `LSPI`, but every policy is evaluated by `BLSTD`, and the next one is greedy in the
    posterior mean, or in a lower bound that is c standard deviations below it:

        pi(s) = argmax_a phi(s, a)'m - c (phi(s, a)'S phi(s, a))^1/2

    Parameters
    ----------
    basis, actions, discount, max_iterations, tolerance, initial_policy
        As for `LSPI`.
    observation_space, columns
        As for `LSPI`.
    prior_precision, noise_precision, ridge
        As for `BLSTD`.
    pessimism : float
        c, 0 or more. The larger it is, the more the policy avoids actions on which there are few
        data. Predicted values do not depend on it.

    Attributes
    ----------
    posterior_, weights_, condition_
        As for `BLSTD`, of the last policy that was evaluated.
    history_, n_iter_, converged_, cycle_, basis_, actions_, selection_
        As for `LSPI`.
    statistics_, rank_, features_
        As for `LSPI`.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    basis: BasisLike | None = None  # type: ignore[assignment]
    actions: int | None = None
    _: KW_ONLY
    discount: float = 0.99
    prior_precision: float | None = None
    noise_precision: float | None = None
    pessimism: float = 0.0
    max_iterations: int = 20
    tolerance: float = 1e-6
    initial_policy: PolicyFunction | None = None
    ridge: float = 1e-6
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None

    def _check(self) -> None:
        super()._check()
        if self.pessimism != 0.0:
            check.positive("pessimism", self.pessimism)

    def _kept(
        self, found: Result, initial: BatchPolicy, problem: Problem, chunks: Iterable[Transitions]
    ) -> Result:
        if self.pessimism:  # the policies on the way are not greedy in their weights
            return found
        return super()._kept(found, initial, problem, chunks)

    def _improve(self, problem: Problem, sums: PolicySums) -> Improvement:
        if not self.pessimism:
            return super()._improve(problem, sums)
        posterior = self._posterior(problem, sums)
        return posterior.mean, Pessimistic(posterior, self.pessimism)

    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        super()._find(problem, chunks, callback)
        self._log = first_rows(chunks)
        self._values: ValuePosterior | None = None

    def partial_fit(self, transitions: Data, callback: OnIteration | None = None) -> Self:
        """Add transitions, as `LSPI.partial_fit`; values are estimated from the latest 50,000."""
        before = getattr(self, "_log", None)
        super().partial_fit(transitions, callback)
        if before is not None:
            log = joined([before, first_rows(self._read(transitions, again=True))])
            self._log, self._values = log.rows(max(0, log.size - MOST_ROWS), log.size), None
        return self

    def value_posterior(self, env: gym.Env[Any, Any] | str | None = None) -> ValuePosterior:
        """What the actions of the policy are worth; the argument is that of `policy`.

        The values have all errors that are known of, see `rblspi.offline.values`, and not only
        those that the posterior over the weights knows. They are estimated from the first 50,000
        transitions at the first call, which may take some seconds. With ``pessimism``, the
        posterior is the one that the policy acts by.
        """
        policy = self.policy(env)
        if self._values is None:
            self._values = value_posterior(policy, self._log)
        posterior = policy.posterior if self.pessimism else self._values.posterior
        return replace(self._values, policy=policy, posterior=posterior)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy and what its actions are worth to one file."""
        self.value_posterior().save(path)
