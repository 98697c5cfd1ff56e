"""Fitted Q iteration: regress r + gamma max_a' Q(s', a') on the features, and repeat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.columns import Columns
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.offline.accumulation import PolicySums, Problem, sums_of_policy
from rblspi.offline.fitted_q import fitted_q_iteration, greedy_in
from rblspi.offline.iterations import OnIteration
from rblspi.offline.model_selection import RIDGE
from rblspi.offline.policy_learner import PolicyLearner


@dataclass(eq=False, repr=False)
class FQI(PolicyLearner):
    """A policy from logged transitions, by fitted Q iteration.

    Every iteration regresses the same targets on the features, one regression for each action,

        t = r + gamma max_a' Q(s', a'),    Q clipped to what the rewards allow,
        theta_a = argmin sum (t - phi(s)'theta_a)^2 + lambda |theta_a - c u|^2,

    where c is the mean target and u are the weights of the constant function, if the basis has
    one. Sums of discounted rewards lie between r_min / (1 - gamma) and r_max / (1 - gamma); where
    episodes end, also a single reward is possible. Clipping keeps the iteration from diverging.
    Where transitions take different times, r_min and r_max are rewards of a unit of time.

    Rewards times a constant scale the values, and change no policy. Neither does a constant that
    is added to all rewards, if no episode ends in a terminal state.

    Parameters
    ----------
    basis, actions, discount, observation_space, columns
        As for `LSPI`.
    ridge : float, optional
        lambda, as a multiple of the mean diagonal element of sum phi phi'; positive. By default it
        is chosen together with the basis, or 1e-4 if the basis is given.
    max_iterations : int
        The largest number of regressions.
    tolerance : float
        Stop when the weights, relative to c u, change by at most this multiple of their length.

    Attributes
    ----------
    weights_ : ndarray, shape (k,)
        theta. `act` is greedy in them.
    history_ : list of Iteration
        The weights of every iteration. The policy of an iteration is the one that is greedy in the
        weights before it.
    n_iter_, converged_
        The number of iterations, and whether they stopped because of the tolerance.
    limits_ : tuple of float
        The least and the greatest value that the rewards allow.
    statistics_ : Statistics
        The sums of the policy that was found, as LSTD needs them.
    ridge_ : float
        The ridge that was used.
    basis_, actions_, selection_, rank_, features_
        As for `LSPI`.

    References
    ----------
    D. Ernst, P. Geurts and L. Wehenkel (2005). Tree-based batch mode reinforcement learning.
    Journal of Machine Learning Research 6.
    """

    _bayesian = "BLSPI"

    basis: BasisLike | None = None
    actions: int | None = None
    _: KW_ONLY
    discount: float = 0.99
    max_iterations: int = 500
    tolerance: float = 1e-3
    ridge: float | None = None
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None

    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        default = RIDGE if self.selection_ is None else self.selection_.ridge
        self.ridge_ = default if self.ridge is None else self.ridge
        goals = (int(self.max_iterations), float(self.tolerance))
        found = fitted_q_iteration(problem, chunks, self.ridge_, *goals, callback)
        self.weights_, self.history_, self.converged_, self.limits_ = found
        self.cycle_ = 0
        self._conclude(problem, sums_of_policy(problem, greedy_in(found.weights, problem), chunks))

    def _conclude(self, problem: Problem, sums: PolicySums) -> None:
        super()._conclude(problem, sums)
        ranks = np.linalg.matrix_rank(sums.statistics.gram, hermitian=True)
        self.rank_ = int(ranks.sum())

    def _solve(self, problem: Problem, sums: PolicySums) -> Vector:
        return self.weights_

    def _check(self) -> None:
        if self.ridge is not None:
            check.positive("ridge", self.ridge)
