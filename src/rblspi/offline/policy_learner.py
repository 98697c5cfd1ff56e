"""What LSPI, BLSPI and FQI share: they find a policy, and choose what the user does not."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.data.dataset import Dataset
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, Network
from rblspi.offline.accumulation import Data, first_rows, over_chunks
from rblspi.offline.estimator import Estimator
from rblspi.offline.learnt_basis import learnt_network
from rblspi.offline.linear_draws import draws_of_weights
from rblspi.offline.model_selection import Selection, candidates, select
from rblspi.offline.off_policy import policy_value
from rblspi.offline.policy_iteration import ConvergenceWarning, Iteration, OnIteration
from rblspi.offline.problem import Problem, observed_space
from rblspi.policies.linear import LinearPolicy


class PolicyLearner(Estimator):
    """Finds a policy; a basis or number of actions that is None follows from the data."""

    max_iterations: int
    tolerance: float

    actions_: int
    selection_: Selection | None
    converged_: bool
    cycle_: int
    history_: list[Iteration]
    _log: Transitions  # the first rows

    def fit(self, transitions: Data, callback: OnIteration | None = None) -> Self:
        """Find a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of their columns, iterable of Transitions, or log
            Collected by any policy. Every iteration iterates over an iterable once. A log is a
            file or a table that `rblspi.data.read_log` reads.
        callback : callable, optional
            Called with every `Iteration` when it is done.
        """
        chunks = self._read(transitions)
        self._find(self._problem(chunks), chunks, callback)
        self._log = first_rows(chunks)
        self._warn_unless_converged()
        return self

    def policy(self, env: gym.Env[Any, Any] | str | None = None) -> LinearPolicy:
        """The policy that takes the best action by the estimated action values.

        The errors of its values, see `rblspi.offline.linear_draws`, are estimated from the first
        50,000 transitions when they are first asked for. A pessimistic policy states those of the
        posterior that it acts by.

        Parameters
        ----------
        env : gymnasium.Env or str, optional
            The environment in which the policy will act. The policy and its file then know how to
            make it.
        """
        policy = super().policy(env)
        if policy.pessimism:
            return policy
        return replace(policy, draws=partial(draws_of_weights, self._log))

    def score(self, transitions: Data, y: Any = None) -> float:
        """What the policy is worth by other data than those of the fit.

        The value is estimated by `policy_value` in the default basis of these data, whichever basis
        the policy has, so that policies in different bases can be compared. ``y`` is ignored.
        """
        self._require_fitted()
        chunks = self._read(transitions, again=True)
        basis = candidates(chunks, self.observation_space)[0].basis
        return policy_value(
            chunks, self.policy(), basis, self.actions_, discount=self.discount
        ).mean

    def act(self, observations: Any) -> Any:
        """The actions of the policy in a batch of observations, shape (N,), or in a single one.

        States may be given as in the log, see `rblspi.data.Encoding`. Actions with names are these
        names, others are numbers.
        """
        batches, single = self._batches(observations)
        policy = self.policy()
        actions = np.concatenate([policy(batch) for batch in batches])
        return policy.named(actions[0] if single else actions)

    @property
    def n_iter_(self) -> int:
        """The number of iterations."""
        return len(self.history_)

    @abstractmethod
    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        """Find the policy, and set the fitted attributes."""

    def _basis_and_actions(self, chunks: Iterable[Transitions]) -> tuple[BasisLike, int | None]:
        actions, self.selection_ = self._number_of_actions(chunks), None
        if isinstance(self.basis, Network) and self.basis.weights is None:
            log, space = first_rows(chunks), self.observation_space or observed_space(chunks)
            return learnt_network(self.basis, log, actions, self.discount, space), actions
        if self.basis is not None:
            return self.basis, actions
        self.selection_ = select(chunks, actions, self.discount, self.observation_space)
        return self.selection_.basis, actions

    def _number_of_actions(self, chunks: Iterable[Transitions]) -> int:
        if self.actions is not None:
            return check.count("actions", self.actions)
        if self.action_names_:
            return len(self.action_names_)
        known = chunks.actions if isinstance(chunks, Dataset) else None
        return known or over_chunks(chunks, lambda chunk: 1 + int(chunk.actions.max()), max)

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
