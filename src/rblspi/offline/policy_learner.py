"""What LSPI, BLSPI and FQI share: they find a policy, and choose what the user does not."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.offline.accumulation import Data, Problem, over_chunks
from rblspi.offline.estimator import Estimator
from rblspi.offline.iterations import ConvergenceWarning, Iteration, OnIteration
from rblspi.offline.model_selection import Selection, candidates, select
from rblspi.offline.off_policy import policy_value
from rblspi.policies.linear import LinearPolicy


class PolicyLearner(Estimator):
    """Finds a policy; a basis or number of actions that is None follows from the data."""

    basis: BasisLike | None  # type: ignore[assignment]

    basis_: BasisLike
    actions_: int
    selection_: Selection | None
    max_iterations: int
    tolerance: float

    n_iter_: int
    converged_: bool
    cycle_: int
    history_: list[Iteration]

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
        check.count("max_iterations", self.max_iterations)
        self._check_tolerance()
        chunks = self._read(transitions)
        self._find(self._problem(chunks), chunks, callback)
        self.n_iter_ = len(self.history_)
        self._warn_unless_converged()
        return self

    def score(self, transitions: Data, y: Any = None) -> float:
        """What the policy is worth by other data than those of the fit.

        The value is estimated by `policy_value` in the default basis of these data, whichever basis
        the policy has, so that policies in different bases can be compared. ``y`` is ignored.
        """
        self._require_fitted()
        chunks = self._read(transitions, again=True)
        basis = candidates(chunks, self.observation_space)[0].basis
        policy = self._choosing_policy()
        return policy_value(chunks, policy, basis, self.actions_, discount=self.discount).mean

    @abstractmethod
    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        """Find the policy, and set the fitted attributes."""

    def _check_tolerance(self) -> None:
        check.positive("tolerance", self.tolerance)

    def act(self, observations: Any) -> Any:
        """The actions of the policy in a batch of observations, shape (N,), or in a single one.

        States may be given as in the log, see `rblspi.data.Encoding`. Actions with names are these
        names, others are numbers.
        """
        batches, single = self._batches(observations)
        policy = self._choosing_policy()
        actions = np.concatenate([policy(batch) for batch in batches])
        return policy.named(actions[0] if single else actions)

    def policy(self, env: gym.Env[Any, Any] | str | None = None) -> LinearPolicy:
        """The policy that was found; the argument is that of `LSTD.policy`."""
        return self._choosing_policy(env)

    def _choosing_policy(self, env: gym.Env[Any, Any] | str | None = None) -> LinearPolicy:
        """The policy with what it needs to choose actions."""
        self._require_fitted()
        return super(PolicyLearner, self._settled()).policy(env)

    def _columns(self, actions: ArrayLike | None, count: int) -> tuple[Any, Any]:
        return super(PolicyLearner, self._settled())._columns(actions, count)

    def _problem(self, chunks: Iterable[Transitions], look: bool = True) -> Problem:
        self._check()
        discount = check.fraction("discount", self.discount)
        if self.actions is None and self.action_names_:
            self.actions_ = len(self.action_names_)
        elif self.actions is None:
            known = getattr(chunks, "actions", None)  # a log may tell of actions that it lacks
            seen = known if isinstance(known, int) else None
            self.actions_ = seen or over_chunks(chunks, _actions_in_chunk, max)
        else:
            self.actions_ = check.count("actions", self.actions)
        self.selection_ = None
        chosen = self.basis
        if chosen is None:
            self.selection_ = select(chunks, self.actions_, discount, self.observation_space)
            chosen = self.selection_.basis
        self.basis_ = chosen
        return super(PolicyLearner, self._settled())._problem(chunks, look)

    def _settled(self) -> Self:
        """A copy in which nothing is left to choose."""
        return copy(self).set_params(basis=self.basis_, actions=self.actions_)

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


def _actions_in_chunk(chunk: Transitions) -> int:
    return 1 + int(chunk.actions.max())
