"""Bayesian least-squares temporal differences: a Gaussian over the weights."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi import check
from rblspi.estimators.base import Estimator
from rblspi.estimators.lstd import numerical_rank
from rblspi.estimators.policy_evaluation import PolicyEvaluation
from rblspi.features import BasisLike
from rblspi.posterior import Posterior
from rblspi.statistics import Statistics

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Bayesian(Estimator):
    """Estimates by the posterior of b = A theta + noise."""

    prior_precision: float
    noise_precision: float
    ridge: float

    posterior_: Posterior

    def _check(self) -> None:
        for name in ("prior_precision", "noise_precision", "ridge"):
            check.positive(name, getattr(self, name))

    def _posterior(self, statistics: Statistics) -> Posterior:
        return Posterior.from_statistics(
            statistics, self.prior_precision, self.noise_precision, self.ridge
        )

    def _solve(self, statistics: Statistics) -> Vector:
        return self._posterior(statistics).mean

    def _conclude(self, statistics: Statistics) -> None:
        self.posterior_ = self._posterior(statistics)
        self.posterior_.warn_if_uncertain()
        self.weights_ = self.posterior_.mean
        self.condition_ = self.posterior_.condition
        self.rank_ = numerical_rank(statistics)

    def _predict(self, x: Matrix, with_std: bool) -> tuple[Matrix, Matrix]:
        return self.posterior_.predict(x) if with_std else super()._predict(x, with_std)


class BLSTD(Bayesian, PolicyEvaluation):
    """Values of a policy with their uncertainty, by Bayesian least-squares temporal differences.

    The sums of `LSTD`, with C = sum x x', obey b = A theta + noise, noise ~ N(0, C / beta). The
    prior theta ~ N(0, I / alpha) turns into the posterior N(m, S):

        S^-1 = alpha I + beta A'C^-1 A,    m = beta S A'C^-1 b

    As alpha / beta goes to 0, the mean m becomes the solution of LSTD.

    Parameters
    ----------
    basis : Basis, callable or transformer
        phi.
    actions : int, optional
        The number of actions, to value actions; states are valued if it is None.
    discount : float
        gamma.
    prior_precision, noise_precision : float
        alpha and beta.
    ridge : float
        C starts at this multiple of the identity: it has to have an inverse.
    observation_space : gymnasium.Space, optional
        What the basis is built for. Unless given, the data's range of observations, where the
        basis has no bounds of its own.

    Attributes
    ----------
    posterior_ : Posterior
    weights_ : ndarray, shape (k,)
        m.
    statistics_ : Statistics
        The sums.
    rank_ : int
        Rank of A: how many of the weights the data determine, and not only the prior.
    condition_ : float
        Condition number of S, scaled to a diagonal of ones.
    features_ : Features

    References
    ----------
    N. Tziortziotis and C. Dimitrakakis (2017). Bayesian inference for least squares temporal
    difference regularization. ECML PKDD.
    """

    def __init__(
        self,
        basis: BasisLike,
        actions: int | None = None,
        *,
        discount: float = 0.99,
        prior_precision: float = 0.01,
        noise_precision: float = 1.0,
        ridge: float = 1e-6,
        observation_space: gym.Space[Any] | None = None,
    ) -> None:
        self.basis = basis
        self.actions = actions
        self.discount = discount
        self.prior_precision = prior_precision
        self.noise_precision = noise_precision
        self.ridge = ridge
        self.observation_space = observation_space
