"""Bayesian regression of several outputs on the same inputs, with unknown noise covariance.

Rows of outputs obey y = x'B + e, e ~ N(0, V), under the conjugate prior

    V ~ inverse Wishart(Psi_0, nu_0),    B | V ~ matrix normal(0, K_0^-1, V),    K_0 = lambda I

After N rows X and Y the posterior has the same form, with

    K = K_0 + X'X,   M = K^-1 X'Y,   Psi = Psi_0 + Y'Y - M'K M,   nu = nu_0 + N
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from rblspi.core.types import Matrix


class LinearModel(NamedTuple):
    """y = x'B + T e with standard normal e; V = T T'."""

    weights: Matrix  # B     (inputs, outputs)
    root: Matrix  # T        (outputs, outputs)

    def outputs(self, x: Matrix, noise: Matrix) -> Matrix:
        """Rows of outputs for rows of inputs and of standard normal noise."""
        return x @ self.weights + noise @ self.root.T


class MatrixNormalInverseWishart(NamedTuple):
    """The posterior over B and V."""

    mean: Matrix  # M                              (inputs, outputs)
    factor: Matrix  # R, where R'R = K             (inputs, inputs)
    scale_root: Matrix  # P, lower: P P' = Psi     (outputs, outputs)
    degrees: float  # nu, above outputs + 1

    @classmethod
    def of(cls, x: Matrix, y: Matrix, penalty: float, variance: float) -> Self:
        """The posterior after rows of inputs and outputs; there may be none.

        The prior has V = ``variance`` I on average, with the fewest degrees of freedom for which it
        has an average, nu_0 = outputs + 2.
        """
        (_, inputs), (rows, outputs) = x.shape, y.shape
        factor = cholesky(x.T @ x + penalty * np.eye(inputs))
        whitened = solve_triangular(factor, x.T @ y, trans=1)
        mean = solve_triangular(factor, whitened)
        # The residuals and lambda M'M, rather than Y'Y - M'K M, which rounding could make negative.
        errors = y - x @ mean
        scale = variance * np.eye(outputs) + errors.T @ errors + penalty * mean.T @ mean
        return cls(mean, factor, cholesky(scale, lower=True), outputs + 2.0 + rows)

    def sample(self, rng: np.random.Generator) -> LinearModel:
        """Draw V, by Bartlett's decomposition, and then B given V.

        V = T T' with T = P L'^-1, where L is lower triangular, L_ii^2 ~ chi^2 with nu - i degrees
        of freedom (i from 0), and L_ij ~ N(0, 1) below the diagonal. B = M + R^-1 Z T'.
        """
        outputs = len(self.scale_root)
        diagonal = np.sqrt(rng.chisquare(self.degrees - np.arange(outputs)))
        lower = np.tril(rng.standard_normal((outputs, outputs)), -1) + np.diag(diagonal)
        root = solve_triangular(lower, self.scale_root.T, lower=True).T
        z = rng.standard_normal(self.mean.shape)
        return LinearModel(self.mean + solve_triangular(self.factor, z) @ root.T, root)

    def average(self) -> LinearModel:
        """M, and a root of the mean of V."""
        spare = self.degrees - len(self.scale_root) - 1.0
        return LinearModel(self.mean, self.scale_root / np.sqrt(spare))
