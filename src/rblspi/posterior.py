"""The Gaussian over weights that a user holds: mean, precision, samples, predictions, evidence.

The sums obey b = A theta + noise, noise ~ N(0, C / beta), under the prior theta ~ N(0, I / alpha).
With Sigma = A'C^-1 A, g = A'C^-1 b, h = b'C^-1 b and lambda = alpha / beta, everything below
follows from the triangular factor R'R = Sigma + lambda I, the vector v = R'^-1 g and the number
h - v'v, which `belief` keeps. Nothing is inverted.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, qr, solve_triangular

from rblspi import check
from rblspi.belief import AFRESH, LIFTED, Belief, improve, new_belief
from rblspi.linear_algebra import reciprocal_condition
from rblspi.statistics import Statistics

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: correct digits of the mean below which `Posterior.warn_if_uncertain` speaks up
FEW_DIGITS = 3.0


class ConditionWarning(UserWarning):
    """Rounding errors have taken most digits of a result."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """N(theta | m, S) with S^-1 = alpha I + beta Sigma and m = beta S g, equation (3).

    Made by `from_statistics` or `from_belief`.

    Attributes
    ----------
    mean : ndarray, shape (k,)
        m.
    factor : ndarray, shape (k, k)
        R, upper triangular: beta R'R is the precision.
    whitened : ndarray, shape (k,)
        v = R'^-1 g.
    residual : float
        h - v'v, the part of the rewards that no weights under this prior explain.
    gram_factor : ndarray, shape (actions, n, n)
        Upper triangular factors of the blocks of C, the ridge included.
    prior_precision, noise_precision : float
        alpha and beta.
    actions : int
        Blocks of weights.
    lift : float
        The most that had to be added to a diagonal, of C or of Sigma, to make up for rounding.
    lifted : int
        How often that was necessary.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    mean: Vector
    factor: Matrix
    whitened: Vector
    residual: float
    gram_factor: NDArray[np.float64]
    prior_precision: float
    noise_precision: float
    actions: int
    lift: float
    lifted: int

    @classmethod
    def from_statistics(
        cls,
        statistics: Statistics,
        prior_precision: float,
        noise_precision: float,
        ridge: float = 1e-6,
    ) -> Self:
        """The posterior given the sums over some transitions.

        Parameters
        ----------
        statistics : Statistics
        prior_precision, noise_precision : float
            alpha and beta.
        ridge : float
            Added to the diagonal of C, which has to have an inverse.
        """
        alpha = check.positive("prior_precision", prior_precision)
        beta = check.positive("noise_precision", noise_precision)
        belief = new_belief(
            statistics.actions,
            statistics.features,
            check.positive("ridge", ridge),
            penalty=alpha / beta,
            capacity=1,
            route=AFRESH,
        )._replace(statistics=statistics)
        return cls.from_belief(belief, alpha, beta)

    @classmethod
    def from_belief(cls, belief: Belief, prior_precision: float, noise_precision: float) -> Self:
        """The posterior given all transitions that a belief has absorbed.

        Transitions that an agent still has put aside are not part of it. The belief is left as
        it is, and shares no memory with the posterior.
        """
        alpha = check.positive("prior_precision", prior_precision)
        beta = check.positive("noise_precision", noise_precision)
        if not math.isclose(belief.penalty, alpha / beta, rel_tol=1e-12):
            raise ValueError(
                f"prior_precision={alpha} and noise_precision={beta} are not those of the belief, "
                f"whose ratio is {belief.penalty}"
            )
        belief = belief._replace(
            gram_factor=belief.gram_factor.copy(),
            moment=belief.moment.copy(),
            factor=belief.factor.copy(),
            residual=belief.residual.copy(),
            tally=belief.tally.copy(),
            lift=belief.lift.copy(),
        )
        k = len(belief.factor)
        mean = np.empty(k)
        improve(belief, np.zeros(k), mean, np.empty(k))
        return cls(
            mean=mean,
            factor=np.triu(belief.factor[:, :k]),
            whitened=belief.factor[:, k].copy(),
            residual=float(belief.residual[0]),
            gram_factor=np.triu(belief.gram_factor),
            prior_precision=alpha,
            noise_precision=beta,
            actions=belief.statistics.actions,
            lift=float(belief.lift[0]),
            lifted=int(belief.tally[LIFTED]),
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
        """S, shape (k, k); samples and predictions do without it."""
        identity = np.eye(len(self.mean))
        inverse: Matrix = cho_solve((self.factor, False), identity) / self.noise_precision
        return inverse

    def sample(self, rng: np.random.Generator, size: int | None = None) -> NDArray[np.float64]:
        """Draw weights: theta = m + beta^-1/2 R^-1 z with z ~ N(0, I).

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int, optional
            Number of samples.

        Returns
        -------
        ndarray, shape (k,), or (size, k) if a size is given
        """
        rows = 1 if size is None else check.count("size", size, least=0)
        z = rng.standard_normal((rows, len(self.mean)))
        spread: Matrix = solve_triangular(self.factor, z.T, check_finite=False).T
        samples = self.mean + spread / math.sqrt(self.noise_precision)
        return samples[0] if size is None else samples

    def predict(self, x: ArrayLike) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of Q for all actions, given state features.

        For phi = e_a (x) x they are phi'm and (phi'S phi)^1/2.

        Parameters
        ----------
        x : array-like, shape (N, n)

        Returns
        -------
        mean, std : ndarray, shape (N, actions)
        """
        features = np.asarray(x, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self.features:
            raise ValueError(
                f"x of shape {features.shape} must have shape (N, {self.features}): a row of "
                "features for every state"
            )
        variances = [
            np.square(features @ spread.T).sum(axis=1) for spread in self._spread_of_actions
        ]
        return features @ self.weights.T, np.sqrt(np.stack(variances, axis=1))

    @cached_property
    def _spread_of_actions(self) -> list[Matrix]:
        """For every action T with T'T = S_aa, its block of the covariance; (n, n) each.

        S_aa = beta^-1 G'G where G are the action's columns of R'^-1. Its factor is that of
        G = QT, which keeps the digits that forming G'G would lose.
        """
        n = self.features
        spreads = []
        for a in range(self.actions):
            # R'^-1 is lower triangular: rows before the action's own are zero.
            lower = self.factor[a * n :, a * n :]
            unit = np.eye(len(lower), n)
            columns = solve_triangular(lower, unit, trans="T", check_finite=False)
            (triangle,) = qr(columns, mode="r", check_finite=False)
            spreads.append(triangle[:n] / math.sqrt(self.noise_precision))
        return spreads

    def misfit(self, theta: ArrayLike) -> float:
        """E_D(theta) = (A theta - b)'C^-1 (A theta - b), the paper's MSPBE of the data.

        Computed as |R theta - v|^2 - lambda |theta|^2 + h - v'v.
        """
        weights = self._as_weights(theta)
        penalty = self.prior_precision / self.noise_precision
        distance = self.factor @ weights - self.whitened
        return float(distance @ distance - penalty * (weights @ weights) + self.residual)

    def log_likelihood(self, theta: ArrayLike) -> float:
        """The paper's ln p(b | theta, beta).

        It is (k ln beta - ln |C| - k ln 2 pi - beta E_D(theta)) / 2.
        """
        k, beta = len(self.mean), self.noise_precision
        constant = k * math.log(beta / (2.0 * math.pi)) - self._log_gram
        return 0.5 * (constant - beta * self.misfit(theta))

    def log_evidence(self) -> float:
        """The likelihood averaged over the prior, ln p(b | alpha, beta): for comparing settings.

        b is N(0, C / beta + A A' / alpha), whose log density is
        (k ln alpha - ln |C| - k ln 2 pi - ln |R'R| - beta (h - v'v)) / 2.
        """
        k = len(self.mean)
        constant = k * math.log(self.prior_precision / (2.0 * math.pi)) - self._log_gram
        quadratic = _log_determinant(self.factor) + self.noise_precision * self.residual
        return 0.5 * (constant - quadratic)

    @property
    def _log_gram(self) -> float:
        """The term ln |C|."""
        return sum(_log_determinant(upper) for upper in self.gram_factor)

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
            lifted = f" ({self.lift:.2g} was added to a diagonal)" if self.lifted else ""
            warnings.warn(
                f"with condition numbers of {self.condition:.2g} for the precision and "
                f"{self.gram_condition:.2g} for C{lifted}, no more than {self.digits:.0f} digits "
                "of the mean can be trusted: make the features overlap less, use fewer of them, "
                "or raise prior_precision / noise_precision",
                ConditionWarning,
                stacklevel=2,
            )

    def _as_weights(self, theta: ArrayLike) -> Vector:
        weights = np.asarray(theta, dtype=np.float64)
        if weights.shape != self.mean.shape:
            raise ValueError(f"theta of shape {weights.shape} must have shape {self.mean.shape}")
        return weights


def _log_determinant(upper: Matrix) -> float:
    """Ln |R'R|."""
    return 2.0 * float(np.log(np.diagonal(upper)).sum())


def _scaled_condition(upper: Matrix) -> float:
    """Condition number of R'R, scaled to a diagonal of ones, in the 1-norm as LAPACK estimates it.

    Rounding in Cholesky factors does not depend on the units of the features, and so neither
    should what is said about it.
    """
    scaled = np.ascontiguousarray(upper / np.linalg.norm(upper, axis=0))
    norm = float(np.linalg.norm(scaled.T @ scaled, 1))
    reciprocal = reciprocal_condition(scaled, len(scaled), norm)
    return 1.0 / reciprocal if reciprocal > 0.0 else math.inf
