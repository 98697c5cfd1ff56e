"""Bayesian least-squares temporal differences: a Gaussian posterior of the weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import gymnasium as gym

from rblspi.core import check
from rblspi.core.types import Matrix, Vector
from rblspi.features import BasisLike
from rblspi.model.posterior import Posterior
from rblspi.model.statistics import Statistics
from rblspi.offline.accumulation import require_finite
from rblspi.offline.estimator import Estimator
from rblspi.offline.lstd import numerical_rank
from rblspi.offline.policy_evaluation import PolicyEvaluation


class Bayesian(Estimator):
    """Computes the posterior given b = A theta + noise; the base of BLSTD and BLSPI."""

    prior_precision: float
    noise_precision: float
    ridge: float

    posterior_: Posterior

    def _check(self) -> None:
        for name in ("prior_precision", "noise_precision", "ridge"):
            check.positive(name, getattr(self, name))

    def _posterior(self, statistics: Statistics) -> Posterior:
        require_finite(statistics.gram, statistics.cross)
        precisions = self.prior_precision, self.noise_precision
        posterior = Posterior.from_statistics(statistics, *precisions, self.ridge)
        require_finite(posterior.mean, posterior.factor, posterior.jitter)
        return posterior

    def _solve(self, statistics: Statistics) -> Vector:
        return self._posterior(statistics).mean

    def _conclude(self, statistics: Statistics) -> None:
        self.posterior_ = self._posterior(statistics)
        self.posterior_.warn_if_uncertain()
        self.weights_ = self.posterior_.mean
        self.condition_ = self.posterior_.condition
        self.rank_ = numerical_rank(statistics)

    def _moments(self, x: Matrix) -> tuple[Matrix, Matrix]:
        return self.posterior_.predict(x)


@dataclass(eq=False, repr=False)
class BLSTD(Bayesian, PolicyEvaluation):
    """Values of a policy with their uncertainty, by Bayesian least-squares temporal differences.

    The sums of `LSTD`, with C = sum x x', obey b = A theta + noise, noise ~ N(0, C / beta). With
    the prior theta ~ N(0, I / alpha), the posterior is N(m, S):

        S^-1 = alpha I + beta A'C^-1 A,    m = beta S A'C^-1 b

    As alpha / beta goes to 0, the mean m becomes the solution of LSTD.

    Parameters
    ----------
    basis, actions, discount, observation_space
        As for `LSTD`.
    prior_precision, noise_precision : float
        alpha and beta.
    ridge : float
        This multiple of the identity is added to C, which has to be invertible; positive.

    Attributes
    ----------
    posterior_ : Posterior
        N(m, S).
    weights_ : ndarray, shape (k,)
        m.
    condition_ : float
        The condition number of S, scaled to a diagonal of ones.
    statistics_, rank_, features_
        As for `LSTD`.

    References
    ----------
    N. Tziortziotis and C. Dimitrakakis (2017). Bayesian inference for least squares temporal
    difference regularization. ECML PKDD.
    """

    basis: BasisLike
    actions: int | None = None
    _: KW_ONLY
    discount: float = 0.99
    prior_precision: float = 0.01
    noise_precision: float = 1.0
    ridge: float = 1e-6
    observation_space: gym.Space[Any] | None = None
