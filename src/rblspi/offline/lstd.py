"""Least-squares temporal differences: the weights that solve A theta = b."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.linalg import lapack, svdvals

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.columns import Columns
from rblspi.features import BasisLike
from rblspi.model.evidence import shrinkage
from rblspi.model.statistics import Statistics
from rblspi.offline.accumulation import PolicySums, Problem, require_finite
from rblspi.offline.estimator import Estimator
from rblspi.offline.policy_evaluation import PolicyEvaluation


def solve(
    statistics: Statistics, ridge: float, constant: Vector | None = None
) -> tuple[Vector, float]:
    """Solve (A + ridge I) theta = b by LU factors, the paper's equation (2).

    With the weights u of the constant function, the ridge is I - uu'/u'u, which does not shrink
    a constant. Returns theta, and the condition number of the matrix in the 1-norm as LAPACK
    estimates it.
    """
    require_finite(statistics.cross)
    matrix = statistics.drift + ridge * shrinkage(statistics.weights, constant)
    factors, pivots, info = lapack.dgetrf(matrix)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"A has rank {numerical_rank(statistics)} of {statistics.weights}: some features or "
            f"actions do not occur in the data; ridge={ridge} has to be larger"
        )
    weights, _ = lapack.dgetrs(factors, pivots, statistics.reward)
    reciprocal, _ = lapack.dgecon(factors, np.linalg.norm(matrix, 1))
    require_finite(weights)
    return weights, 1.0 / reciprocal if reciprocal > 0.0 else np.inf


def numerical_rank(statistics: Statistics) -> int:
    """The rank of A without any ridge: how many weights the data determine."""
    values = svdvals(statistics.drift)
    threshold = values[0] * len(values) * np.finfo(np.float64).eps
    return int((values > threshold).sum())


class LeastSquares(Estimator):
    """Solves A theta = b for the weights; the base of LSTD and LSPI."""

    ridge: float

    def _check(self) -> None:
        if self.ridge != 0.0:
            check.positive("ridge", self.ridge)

    def _solve(self, problem: Problem, sums: PolicySums) -> Vector:
        return solve(sums.statistics, self.ridge, problem.constant)[0]

    def _conclude(self, problem: Problem, sums: PolicySums) -> None:
        found = solve(sums.statistics, self.ridge, problem.constant)
        self.weights_, self.condition_ = found
        super()._conclude(problem, sums)

    @property
    def rank_(self) -> int:
        """The rank of A: how many weights the data determine."""
        return numerical_rank(self.statistics_)


@dataclass(eq=False, repr=False)
class LSTD(LeastSquares, PolicyEvaluation):
    """Values of a policy by least-squares temporal differences.

    With x = phi(s), y = phi(s') or 0 if s' is terminal, the weights of state values solve

        A theta = b,    A = sum x (x - gamma y)',    b = sum x r

    and those of action values the same with phi(s, a) = e_a (x) phi(s) and phi(s', pi(s')).

    Parameters
    ----------
    basis : Basis, callable or transformer
        phi. Every action has its own block of weights.
    actions : int, optional
        The number of actions, to estimate values of actions; by default values of states.
    discount : float
        gamma.
    ridge : float
        This multiple of the identity is added to A; 0 or more. A constant is not shrunk by it, if
        the basis has one: rewards that are all larger by c make values larger by c / (1 - gamma).
    observation_space : gymnasium.Space, optional
        The space that the basis is built for. By default it is the range of the observations in
        the data, unless the basis has its own bounds.
    columns : Columns, optional
        Which columns of a log hold what; by default this is guessed from their names.

    Attributes
    ----------
    weights_ : ndarray, shape (k,)
        theta.
    statistics_ : Statistics
        The sums A and b, and the Gram matrix.
    rank_ : int
        The rank of A: how many weights the data determine.
    condition_ : float
        The condition number of the system that was solved.
    features_ : Features
        The basis, built for the observation space.

    References
    ----------
    S. J. Bradtke and A. G. Barto (1996). Linear least-squares algorithms for temporal
    difference learning. Machine Learning 22.
    """

    _bayesian = "BLSTD"

    basis: BasisLike
    actions: int | None = None
    _: KW_ONLY
    discount: float = 0.99
    ridge: float = 1e-6
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None
