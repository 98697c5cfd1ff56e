"""The Gaussian over weights that a user holds: mean, precision, samples, predictions, evidence.

The sums obey b = A theta + noise, noise ~ N(0, C / beta), under the prior theta ~ N(0, I / alpha).
With Sigma = A'C^-1 A, g = A'C^-1 b, h = b'C^-1 b and lambda = alpha / beta, everything below
follows from the triangular factor R'R = Sigma + lambda I, the vector v = R'^-1 g and the number
h - v'v, which `incremental` computes. Nothing is inverted.

Where alpha follows from the data, the prior is flat along the constant function with weights u:
lambda I becomes lambda (I - ff'), f = u / |u|.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, lapack, qr, solve_triangular

from rblspi.core import check
from rblspi.core.types import Array, Matrix, Vector
from rblspi.model.incremental import (
    JITTERED,
    RECOMPUTE,
    IncrementalPosterior,
    improve,
    new_incremental_posterior,
)
from rblspi.model.statistics import Statistics

#: correct digits of the mean below which `Posterior.warn_if_uncertain` warns
FEW_DIGITS = 3.0


class ConditionWarning(UserWarning):
    """Rounding errors have taken most digits of a result."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """N(theta | m, S), equation (3). Made by `from_statistics` or `from_incremental`.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    mean: Vector  # m                                            (k,)
    factor: Matrix  # R, upper triangular: beta R'R is S^-1      (k, k)
    residual: float  # h - v'v: the part of the rewards that the weights do not explain
    gram_factor: Array  # factors of the blocks of C + ridge I   (actions, n, n)
    prior_precision: float  # alpha
    noise_precision: float  # beta
    actions: int  # blocks of weights
    jitter: float = 0.0  # the largest jitter that rounding made necessary
    jitter_count: int = 0  # how often jitter was necessary
    flat: Vector | None = None  # f: along it the prior is flat  (k,)

    @classmethod
    def from_statistics(
        cls,
        statistics: Statistics,
        prior_precision: float,
        noise_precision: float,
        ridge: float = 1e-6,
        prior_mean: Vector | None = None,
    ) -> Self:
        """The posterior given the sums over some transitions; ``ridge`` makes C invertible."""
        alpha = check.positive("prior_precision", prior_precision)
        beta = check.positive("noise_precision", noise_precision)
        if prior_mean is not None:
            cross = statistics.cross.copy()
            cross[:, :, -1] -= (statistics.drift @ prior_mean).reshape(cross.shape[:2])
            statistics = statistics._replace(cross=cross)
        found = cls.from_incremental(of_statistics(statistics, ridge, alpha / beta), beta)
        mean = found.mean if prior_mean is None else found.mean + prior_mean
        return replace(found, mean=mean, prior_precision=alpha)

    @classmethod
    def from_incremental(cls, incremental: IncrementalPosterior, noise_precision: float) -> Self:
        """The posterior given all transitions that were absorbed so far; alpha = lambda beta.

        Transitions that an agent still has in its buffer are not included. The incremental
        posterior stays as it is and shares no memory with the result.
        """
        changed = ("gram_factor", "normal", "factor", "residual", "counters", "jitter")
        copies = {name: getattr(incremental, name).copy() for name in changed}
        incremental = incremental._replace(**copies)
        k = len(incremental.factor)
        mean = np.empty(k)
        improve(incremental, mean, np.zeros(k))
        return cls(
            mean=mean,
            factor=np.triu(incremental.factor[:, :k]),
            residual=float(incremental.residual[0]),
            gram_factor=np.triu(incremental.gram_factor),
            prior_precision=incremental.penalty * noise_precision,
            noise_precision=noise_precision,
            actions=incremental.statistics.actions,
            jitter=float(incremental.jitter[0]),
            jitter_count=int(incremental.counters[JITTERED]),
        )

    @property
    def features(self) -> int:
        """n, the number of state features."""
        return len(self.mean) // self.actions

    @property
    def weights(self) -> Matrix:
        """The mean by action, shape (actions, n)."""
        return self.mean.reshape(self.actions, -1)

    @property
    def precision(self) -> Matrix:
        """S^-1 = alpha I + beta Sigma, shape (k, k)."""
        return self.noise_precision * (self.factor.T @ self.factor)

    def covariance(self) -> Matrix:
        """S, shape (k, k); samples and predictions do not need it."""
        identity = np.eye(len(self.mean))
        inverse: Matrix = cho_solve((self.factor, False), identity) / self.noise_precision
        return inverse

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:
        """Draw weights, shape (k,) or (size, k): m + beta^-1/2 R^-1 z with z ~ N(0, I)."""
        rows = 1 if size is None else check.count("size", size, least=0)
        z = rng.standard_normal((rows, len(self.mean)))
        deviations: Matrix = solve_triangular(self.factor, z.T, check_finite=False).T
        samples = self.mean + deviations / math.sqrt(self.noise_precision)
        return samples[0] if size is None else samples

    def predict(self, x: ArrayLike) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of Q for all actions, given state features.

        For phi = e_a (x) x they are phi'm and (phi'S phi)^1/2. From x of shape (N, n) follow
        two arrays of shape (N, actions).
        """
        features = np.asarray(x, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self.features:
            raise ValueError(
                f"x of shape {features.shape} must have shape (N, {self.features}): a row of "
                "features for every state"
            )
        variances = [np.square(features @ upper.T).sum(axis=1) for upper in self.covariance_factors]
        return features @ self.weights.T, np.sqrt(np.stack(variances, axis=1))

    @cached_property
    def covariance_factors(self) -> list[Matrix]:
        """For every action T with T'T = S_aa, its block of the covariance; (n, n) each.

        S_aa = beta^-1 G'G where G are the action's columns of R'^-1. Its factor is that of
        G = QT, which keeps the digits that forming G'G would lose.
        """
        n = self.features
        factors = []
        for a in range(self.actions):
            # R'^-1 is lower triangular: rows before the action's own are zero.
            lower = self.factor[a * n :, a * n :]
            unit = np.eye(len(lower), n)
            columns = solve_triangular(lower, unit, trans="T", check_finite=False)
            (triangle,) = qr(columns, mode="r", check_finite=False)
            factors.append(triangle[:n] / math.sqrt(self.noise_precision))
        return factors

    def log_evidence(self) -> float:
        """The likelihood averaged over the prior, ln p(b | alpha, beta): for comparing settings.

        b is N(0, C / beta + A A' / alpha), whose log density is
        (k ln alpha - ln |C| - k ln 2 pi - ln |R'R| - beta (h - v'v)) / 2.
        """
        k = len(self.mean) - (self.flat is not None)
        constant = k * math.log(self.prior_precision / (2.0 * math.pi))
        determinants = sum(_log_determinant(upper) for upper in (self.factor, *self.gram_factor))
        return 0.5 * (constant - determinants - self.noise_precision * self.residual)

    @cached_property
    def condition(self) -> float:
        """Condition number of the precision, scaled to a diagonal of ones."""
        return _scaled_condition(self.factor)

    @cached_property
    def gram_condition(self) -> float:
        """The largest condition number of a block of C, scaled to a diagonal of ones."""
        return max(_scaled_condition(upper) for upper in self.gram_factor)

    @property
    def digits(self) -> float:
        """Decimal digits of the mean, relative to its length, that rounding leaves.

        Two linear systems lead to the mean, one in C and one in the precision. The relative
        error of a solution is at most about the rounding error of one operation times the
        condition number; often it is much smaller.
        """
        error = np.finfo(np.float64).eps * max(self.condition, self.gram_condition)
        return max(0.0, -math.log10(error)) if math.isfinite(error) else 0.0

    def warn_if_uncertain(self) -> None:
        """Issue a `ConditionWarning` if few digits of the mean can be trusted."""
        if self.digits < FEW_DIGITS:
            jitter = f" (with a jitter of {self.jitter:.2g})" if self.jitter_count else ""
            warnings.warn(
                f"with condition numbers of {self.condition:.2g} for the precision and "
                f"{self.gram_condition:.2g} for C{jitter}, no more than {self.digits:.0f} digits "
                "of the mean can be trusted: make the features overlap less, use fewer of them, "
                "or raise prior_precision / noise_precision",
                ConditionWarning,
                stacklevel=2,
            )


def of_statistics(statistics: Statistics, ridge: float, penalty: float) -> IncrementalPosterior:
    """An incremental posterior that has absorbed these sums."""
    return new_incremental_posterior(
        *(statistics.actions, statistics.features, check.positive("ridge", ridge)),
        penalty=penalty,
        capacity=1,
        method=RECOMPUTE,
    )._replace(statistics=statistics)


def _log_determinant(upper: Matrix) -> float:
    """Ln |R'R|."""
    return 2.0 * float(np.log(np.diagonal(upper)).sum())


def _scaled_condition(upper: Matrix) -> float:
    """Condition number of R'R, scaled to a diagonal of ones, in the 1-norm as LAPACK estimates it.

    Rounding in Cholesky factors does not depend on the units of the features, so this number should
    not either.
    """
    scaled = upper / np.linalg.norm(upper, axis=0)
    norm = float(np.linalg.norm(scaled.T @ scaled, 1))
    reciprocal, _ = lapack.dpocon(scaled, norm)
    return 1.0 / float(reciprocal) if reciprocal > 0.0 else math.inf
