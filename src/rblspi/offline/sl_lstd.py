"""slLSTD: values of a policy in any parameterisation, by statistical linearisation.

With parameters theta of which theta_0 ~ N(start, sigma_0^2 I), beside the paper's recursion:

    1   for every transition s, r, s' of the policy:
    2       draw sigma points around theta: +- sqrt(p) L_j, where P = L L'        `_linearised`
    3       v, A = mean of V(s) and its linear regression on theta; likewise v', A' of s'
    4       K = M A / (sigma^2 + (A - gamma A')'M A)                              `update`
    5       theta = theta + K (r + gamma v' - v)
    6       M = M - K (A - gamma A')'M
    7       P = P - P A A'P / (sigma^2 + A'P A)

P is the covariance if the values were observed themselves; it only sets the width of the sigma
points. Where V is linear, A is the feature vector and theta that of LSTD with the ridge
(sigma / sigma_0)^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular

from rblspi.core import check
from rblspi.core.types import Matrix, Vector
from rblspi.data.transitions import Transitions

#: values(parameters, state): V(s) for every row of parameters, shape (N, p) -> (N,)
ValueFunction = Callable[[Matrix, Any], Any]


class SLLSTD:
    """Statistically linearised least-squares temporal differences.

    Parameters
    ----------
    values : callable
        ``values(parameters, state)`` returns V(s) for every row of parameters, shape (N, p).
    start : array_like, shape (p,)
        The mean of the parameters before any transition. A network should start at random.
    prior_std, noise_std : float
        sigma_0 and sigma: standard deviations of a parameter, and of r + gamma V(s') - V(s).
    discount : float

    Notes
    -----
    A transition is linearised once, around the parameters at its time. Where values are far from
    linear within ``prior_std`` of the start, the recursion may not find good ones.

    References
    ----------
    M. Geist and O. Pietquin (2010). Statistically linearized least-squares temporal differences.
    International Congress on Ultra Modern Telecommunications and Control Systems.
    """

    def __init__(
        self,
        values: ValueFunction,
        start: ArrayLike,
        *,
        prior_std: float = 1.0,
        noise_std: float = 1.0,
        discount: float = 0.99,
    ) -> None:
        self.values = values
        self.parameters: Vector = np.array(start, dtype=np.float64)
        if self.parameters.ndim != 1 or not np.isfinite(self.parameters).all():
            raise ValueError(f"start={start!r} must be a list of finite numbers")
        prior = check.positive("prior_std", prior_std) ** 2 * np.eye(len(self.parameters))
        self.covariance: Matrix = prior
        self.noise_std = check.positive("noise_std", noise_std)
        self.discount = check.fraction("discount", discount)
        self._gain: Matrix = prior.copy()  # M

    def fit(self, transitions: Transitions) -> Self:
        """Learn from transitions of the policy, one after the other; again learns on."""
        columns = transitions.observations, transitions.rewards, transitions.next_observations
        for s, r, s_next, terminated in zip(*columns, transitions.terminated, strict=True):
            self.update(s, float(r), s_next, bool(terminated))
        return self

    def update(self, state: Any, reward: float, next_state: Any, terminated: bool = False) -> None:
        """Learn from one transition: lines 2 to 7."""
        factor = cholesky(self.covariance, lower=True)
        value, slope = self._linearised(state, factor)
        ahead, slope_ahead = (0.0, np.zeros_like(slope))
        if not terminated:
            ahead, slope_ahead = self._linearised(next_state, factor)
        noise, change = self.noise_std**2, slope - self.discount * slope_ahead
        gained = self._gain @ slope
        gain = gained / (noise + change @ gained)
        self.parameters += gain * (reward + self.discount * ahead - value)
        self._gain -= np.outer(gain, change @ self._gain)
        spread = self.covariance @ slope
        self.covariance -= np.outer(spread, spread / (noise + slope @ spread))

    def predict(self, state: Any, return_std: bool = False) -> Any:
        """V(s), and if asked for its standard deviation, both over the parameters."""
        value, slope = self._linearised(state, cholesky(self.covariance, lower=True))
        return (value, math.sqrt(slope @ self.covariance @ slope)) if return_std else value

    def _linearised(self, state: Any, factor: Matrix) -> tuple[float, Vector]:
        """With values f+ and f- of the pairs of sigma points, A = L'^-1 (f+ - f-) / (2 p^1/2)."""
        reach = math.sqrt(len(factor)) * factor.T
        above = np.asarray(self.values(self.parameters + reach, state), np.float64)
        below = np.asarray(self.values(self.parameters - reach, state), np.float64)
        if above.shape != (len(factor),) or not np.isfinite([above, below]).all():
            raise ValueError(
                f"values(parameters, {state!r}) must return a finite number for each of "
                f"{len(factor)} rows of parameters, not {above}"
            )
        slopes = (above - below) / (2.0 * math.sqrt(len(factor)))
        slope: Vector = solve_triangular(factor, slopes, lower=True, trans=1)
        return float(np.mean([above, below])), slope
