"""Bayesian least-squares temporal differences: a Gaussian posterior of the weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import gymnasium as gym

from rblspi.core import check
from rblspi.core.types import Matrix, Vector
from rblspi.data.columns import Columns
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, as_basis
from rblspi.features.refinement import finer
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.offline.accumulation import PolicySums, Problem, require_finite
from rblspi.offline.estimator import Estimator
from rblspi.offline.lstd import numerical_rank
from rblspi.offline.observed_space import sample_observations
from rblspi.offline.policy_evaluation import PolicyEvaluation


class Bayesian(Estimator):
    """Computes the posterior given b = A theta + noise; the base of BLSTD and BLSPI."""

    prior_precision: float | None
    noise_precision: float | None
    ridge: float

    posterior_: Posterior

    def _check(self) -> None:
        check.positive("ridge", self.ridge)
        for name in ("prior_precision", "noise_precision"):
            if getattr(self, name) is not None:
                check.positive(name, getattr(self, name))

    def _posterior(self, problem: Problem, sums: PolicySums) -> Posterior:
        require_finite(sums.statistics.gram, sums.statistics.cross, *sums.td_errors)
        alpha, beta = self.prior_precision, self.noise_precision
        if alpha is not None and beta is not None:
            posterior = Posterior.from_statistics(sums.statistics, alpha, beta, self.ridge)
        else:
            posterior = Posterior.by_evidence(
                sums.statistics, sums.td_errors, problem.constant, alpha, beta, self.ridge
            )
        require_finite(posterior.mean, posterior.factor, posterior.jitter)
        return posterior

    def _solve(self, problem: Problem, sums: PolicySums) -> Vector:
        return self._posterior(problem, sums).mean

    def _conclude(self, problem: Problem, sums: PolicySums) -> None:
        self.posterior_ = self._posterior(problem, sums)
        self.posterior_.warn_if_uncertain()
        self.weights_ = self.posterior_.mean
        self.condition_ = self.posterior_.condition
        super()._conclude(problem, sums)

    @property
    def rank_(self) -> int:
        """The rank of A: how many weights the data determine."""
        return numerical_rank(self.statistics_)

    def _moments(self, x: Matrix) -> tuple[Matrix, Matrix]:
        return self.posterior_.predict(x)


@dataclass(eq=False, repr=False)
class BLSTD(Bayesian, PolicyEvaluation):
    """Values of a policy with their uncertainty, by Bayesian least-squares temporal differences.

    The sums of `LSTD`, with C = sum x x', obey b = A theta + noise, noise ~ N(0, C / beta). With
    the prior theta ~ N(0, I / alpha), the posterior is N(m, S):

        S^-1 = alpha I + beta A'C^-1 A,    m = beta S A'C^-1 b

    As alpha / beta goes to 0, the mean m becomes the solution of LSTD. The posterior is about the
    values of this policy in this basis: what the basis cannot represent, it does not know.

    Parameters
    ----------
    basis, actions, discount, observation_space
        As for `LSTD`.
    prior_precision, noise_precision : float, optional
        alpha and beta. What is not given is estimated: beta is the reciprocal of the mean squared
        TD error, and alpha maximises the evidence, with a prior that does not shrink a constant.
        Values, standard deviations and choices then have the units of the rewards, whatever these
        are. With both, this is the model of the paper.
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
    prior_precision: float | None = None
    noise_precision: float | None = None
    ridge: float = 1e-6
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None


def finer_fits(blstd: BLSTD, chunks: Iterable[Transitions]) -> Iterator[BLSTD]:
    """The same evaluation of the same policy in finer versions of the basis."""
    policy, space = blstd.policy_, blstd.observation_space_
    for basis in finer(as_basis(blstd.basis), space, sample_observations(chunks)):
        other = replace(blstd, basis=basis, observation_space=space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)  # of a basis that nobody asked for
            yield other.fit(chunks, policy)
