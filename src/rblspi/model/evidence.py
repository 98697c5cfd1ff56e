"""The prior and the noise that maximise the evidence, the probability of the sums.

With A, b, C of `statistics`, let Sigma = A'C^-1 A and g = A'C^-1 b. The prior is N(0, I / alpha) in
all directions but one: along the constant function, weights u, it is flat. The overall level of
values says nothing about how much they differ, and a prior that drew this level towards zero would
spoil every interval where the discount is near 1.

Let Sigma' and g' be the parts of Sigma and g in the other k - 1 directions, e_i the eigenvalues of
Sigma', and q_i the components of g' along its eigenvectors. With the constant integrated out, and
given the noise precision beta, the evidence of lambda = alpha / beta is

    ln p(b | lambda) = 1/2 sum_i (ln lambda - ln (e_i + lambda) + beta q_i^2 / (e_i + lambda)) + ...

Such a prior is right about directions that are alike. Where the discount is near 1, a slow
direction has an e_i far below all others and a far larger weight, and would be drawn towards 0 by
more than its error. With t_i = beta^1/2 q_i e_i^-1/2, its weight by least squares in standard
deviations,

    |drawn by| / deviation = |t_i| lambda (e_i (e_i + lambda))^-1/2

and lambda is so small that this is at most 1/4 wherever the data know the weight: where |t_i| is
above (2 ln k)^1/2, the largest that is to be expected of k noises.

1 / beta is the sum of squared TD errors, divided by the number of transitions less the number of
weights that the data determine. lambda and beta are estimated in turn.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from rblspi.core.types import Matrix, Vector
from rblspi.model.incremental import BLOCK_UPDATE, derive_normal
from rblspi.model.posterior import Posterior, of_statistics
from rblspi.model.statistics import Statistics, TDErrorSums

#: rounds in which lambda and beta are estimated in turn; they settle in two or three
ROUNDS = 4
#: the least lambda, in units of the trace of Sigma: it makes the condition number about 1e12, which
#: leaves four digits
LEAST_PENALTY = 1e-12
#: the largest lambda, in transitions with features of mean length. A prior that weighs as much as a
#: transition draws the values of rarely visited states towards the other values
LARGEST_PENALTY = 0.01
#: a prior may draw what the data know towards 0 by this share of a standard deviation: the 95%
#: interval then contains it with 94%
MOST_DRAWN = 0.25
#: steps of ln lambda in the search for the best; the evidence is flat around its maximum, and a
#: choice among few values does not depend on rounding
SPACING = 0.5
#: the least noise variance, as a fraction of the mean square of rewards: rounding errors
LEAST_NOISE = 1e-14


class Precisions(NamedTuple):
    """Precision of the prior and of the noise."""

    prior: float  # alpha
    noise: float  # beta


def posterior_by_evidence(
    statistics: Statistics,
    td_errors: TDErrorSums,
    constant: Vector | None,
    prior_precision: float | None = None,
    noise_precision: float | None = None,
    ridge: float = 1e-6,
    squared_length: float | None = None,
    most_drawn: float = MOST_DRAWN,
) -> Posterior:
    """The posterior; a precision that is not given is estimated.

    ``constant`` has the weights u of the constant function, along which the prior is flat. The
    mean of |phi(s)|^2 is ``squared_length``, and follows from C unless C is a sum over traces. The
    prior draws no known weight towards 0 by more than ``most_drawn`` deviations.
    """
    incremental = of_statistics(statistics, ridge, 1.0)
    derive_normal(incremental)
    normal, given = (
        incremental.normal,
        (prior_precision, noise_precision, squared_length, most_drawn),
    )
    alpha, beta = estimate_precisions(statistics, td_errors, normal, constant, *given)
    # The method BLOCK_UPDATE uses the normal matrix as it is.
    incremental = incremental._replace(penalty=alpha / beta, method=np.array([BLOCK_UPDATE]))
    flat = None if constant is None else constant / np.linalg.norm(constant)
    if flat is not None:
        normal[:-1, :-1] -= incremental.penalty * np.outer(flat, flat)
    posterior = Posterior.from_incremental(incremental, beta)
    return replace(posterior, prior_precision=alpha, flat=flat)


def shrinkage(weights: int, constant: Vector | None) -> Matrix:
    """The projection onto the complement of the constant function: I - uu'/u'u, shape (k, k)."""
    if constant is None:
        return np.eye(weights)
    return np.eye(weights) - np.outer(constant, constant) / (constant @ constant)


def estimate_precisions(
    statistics: Statistics,
    td_errors: TDErrorSums,
    normal: Matrix,
    constant: Vector | None,
    prior: float | None = None,
    noise: float | None = None,
    squared_length: float | None = None,
    most_drawn: float = MOST_DRAWN,
) -> Precisions:
    """Estimate alpha and beta, or the one of them that is not given as ``prior`` or ``noise``.

    ``normal`` is Sigma with g as last column, shape (k + 1, k + 1), of which only the upper
    triangle is read; ``constant`` is u, if the features have weights of the constant function.
    """
    k, count = len(normal) - 1, float(statistics.count.sum())
    sigma, g = np.triu(normal[:k, :k]), normal[:k, k]
    sigma += np.triu(sigma, 1).T
    rotated = _without_constant(sigma, g, constant)
    least = LEAST_NOISE * float(td_errors.reward_square[0]) / count
    if squared_length is None:
        squared_length = float(np.trace(statistics.gram, axis1=1, axis2=2).sum()) / count
    penalty = 1e-10 * rotated.trace
    for _ in range(ROUNDS):
        if noise is None:
            theta = rotated.solve(penalty)
            determined = float((rotated.values / (rotated.values + penalty)).sum()) + 1.0
            squares = td_errors.squared_td_errors(statistics, theta)
            variance = max(squares / max(count - determined, 1.0), least)
            beta = 1.0 / variance if variance > 0.0 else 1.0  # all rewards are zero
        else:
            beta = noise
        if prior is None:
            largest = LARGEST_PENALTY * squared_length
            penalty = _best_penalty(rotated, beta, largest, most_drawn)
        else:
            penalty = prior / beta
    return Precisions(penalty * beta if prior is None else prior, beta)


class _Rotated(NamedTuple):
    """The eigendecomposition of Sigma', which gives the weights for any penalty."""

    values: Vector  # e, not negative       (k - 1,) or (k,)
    vectors: Matrix  # in terms of weights  (k, k - 1) or (k, k)
    target: Vector  # q
    sigma_u: Vector  # Sigma u, u of length 1; zeros if there is none  (k,)
    unit: Vector  # u
    curvature: float  # u'Sigma u
    slope: float  # u'g
    trace: float  # of Sigma; 1 if that is 0

    def solve(self, penalty: float) -> Vector:
        """The posterior mean for lambda."""
        theta: Vector = self.vectors @ (self.target / (self.values + penalty))
        if self.curvature > 0.0:
            theta = theta + self.unit * ((self.slope - self.sigma_u @ theta) / self.curvature)
        return theta


def _without_constant(sigma: Matrix, g: Vector, constant: Vector | None) -> _Rotated:
    """Sigma and g without the constant function.

    With Sigma = M'M and g = M'y, the remaining parts of M and y are orthogonal to Mu. Where the
    discount is near 1, Mu is small, and so are its rounding errors; those of Sigma u are not. Where
    Mu consists of rounding errors, as without discount and terminal states, the data say nothing
    about the constant: its weight stays zero.
    """
    k = len(g)
    unit = np.zeros(k) if constant is None else constant / np.linalg.norm(constant)
    sigma_u = sigma @ unit
    trace = float(np.trace(sigma)) or 1.0
    values, vectors = eigh(sigma)
    rounding = k * np.finfo(np.float64).eps * trace  # as in `numpy.linalg.matrix_rank`
    known = values > rounding
    root = np.sqrt(values[known])
    m, y = root[:, None] * vectors[:, known].T, vectors[:, known].T @ g / root
    along = m @ unit
    curvature, slope = float(along @ along), float(along @ y)
    if curvature > rounding:
        m = m - np.outer(along, along @ m / curvature)
        y = y - along * (slope / curvature)
    else:
        curvature = 0.0
    others = np.eye(k) if constant is None else _complement(unit)
    m = m @ others
    left, singular, right = np.linalg.svd(m, full_matrices=True)
    count = len(singular)
    values, target = np.zeros(len(right)), np.zeros(len(right))
    values[:count], target[:count] = singular**2, singular * (left.T @ y)[:count]
    unknown = values <= rounding
    values[unknown], target[unknown] = 0.0, 0.0
    return _Rotated(values, others @ right.T, target, sigma_u, unit, curvature, slope, trace)


def _complement(unit: Vector) -> Matrix:
    """All directions but this one, by a Householder reflection: orthonormal, (k, k - 1)."""
    mirror = unit.copy()
    mirror[0] += math.copysign(1.0, unit[0])
    mirror /= np.linalg.norm(mirror)
    return np.eye(len(unit))[:, 1:] - 2.0 * np.outer(mirror, mirror[1:])


def _least_drawing(rotated: _Rotated, beta: float, most: float) -> float:
    """The largest lambda that draws no known weight by more than so many deviations.

    With u = lambda / e and the bound c, it solves t^2 u^2 = c^2 (1 + u).
    """
    e = np.maximum(rotated.values, LEAST_PENALTY * rotated.trace)
    squares = beta * rotated.target**2 / e  # t^2
    known = squares > 2.0 * math.log(max(len(e), 2))
    if not known.any() or math.isinf(most):
        return math.inf
    t, bound = squares[known], most**2
    ratios = (bound + np.sqrt(bound**2 + 4.0 * bound * t)) / (2.0 * t)
    return float((e[known] * ratios).min())


def _best_penalty(rotated: _Rotated, beta: float, largest: float, most_drawn: float) -> float:
    """The lambda of the highest evidence; the largest lambda if the evidence is constant."""
    values, squares = rotated.values, beta * rotated.target**2

    def cost(penalty: float) -> float:
        terms = np.log1p(values / penalty) - squares / (values + penalty)
        return float(terms.sum())

    steps = int(math.log(max(largest / (LEAST_PENALTY * rotated.trace), 1.0)) / SPACING)
    first = math.log(max(largest / _least_drawing(rotated, beta, most_drawn), 1.0)) / SPACING
    tried = range(min(math.ceil(first), steps), steps + 1)
    return min((largest * math.exp(-SPACING * step) for step in tried), key=cost)
