"""Fitted Q iteration: regress r + gamma max_a' Q(s', a') on the features, and repeat."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from rblspi.core import check
from rblspi.data.transitions import Transitions
from rblspi.offline.estimator import Solution, checked
from rblspi.offline.fitted_q import fitted_q_iteration
from rblspi.offline.model_selection import RIDGE
from rblspi.offline.policy_iteration import OnIteration
from rblspi.offline.policy_learner import PolicyLearner
from rblspi.offline.problem import PolicySums, Problem


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
    history_ : list of Iteration
        The weights of every iteration. The policy of an iteration is the one that is greedy in the
        weights before it.
    converged_ : bool
        Whether the iterations stopped because of the tolerance.
    limits_ : tuple of float
        The least and the greatest value that the rewards allow.
    ridge_ : float
        The ridge that was used.
    weights_, basis_, actions_, selection_
        As for `LSPI`.

    References
    ----------
    D. Ernst, P. Geurts and L. Wehenkel (2005). Tree-based batch mode reinforcement learning.
    Journal of Machine Learning Research 6.
    """

    _: KW_ONLY
    max_iterations: int = checked(500, check.count)
    tolerance: float = checked(1e-3, check.positive)
    ridge: float | None = checked(None, check.positive)

    limits_: tuple[float, float] = field(init=False)
    ridge_: float = field(init=False)

    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        default = RIDGE if self.selection_ is None else self.selection_.ridge
        self.ridge_ = default if self.ridge is None else self.ridge
        goals = (int(self.max_iterations), float(self.tolerance))
        found = fitted_q_iteration(problem, chunks, self.ridge_, *goals, callback)
        self.weights_, self.history_, self.converged_, self.limits_ = found
        self.cycle_ = 0
        self._conclude(problem, self._pass(problem, chunks, problem.greedy(found.weights)))

    def _solve(self, problem: Problem, sums: PolicySums) -> Solution:
        return Solution(self.weights_, math.nan)  # of the last regression

    @property
    def rank_(self) -> int:
        """The rank of the regressions: how many weights the data determine."""
        ranks = np.linalg.matrix_rank(self.statistics_.gram, hermitian=True)
        return int(ranks.sum())
