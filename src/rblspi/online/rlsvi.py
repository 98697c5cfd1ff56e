"""Randomised least-squares value iteration: deep exploration with linear value functions.

Beside the algorithm of Osband, Van Roy and Wen, for a stationary value function with a discount in
place of one for every step to a horizon:

    1   for every episode:                                              `PlanningAgent`
    2       C_a = sum x x' over all transitions with action a           `Regression.of`
    3       theta_a ~ N(theta_a, sigma^2 (C_a + lambda I)^-1) around    `value_iteration`
                theta_a = (C_a + lambda I)^-1 (sum x t + lambda theta_0),
                t = r + gamma max_a' phi(s')'theta_a'
            where the same sample is on both sides
    4       for every step of the episode: a = argmax_a phi(s)'theta_a  `act`
    5       remember s, a, r, s'                                        the loop

In line 3 the targets contain the sample itself: what is worth trying a few steps ahead makes the
way there worth taking. In the paper's finite horizon, theta of step h is regressed on targets of
step h + 1. That is this algorithm with the step as a part of the state, and a discount of 1.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.types import Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.online.planning_agent import PlanningAgent
from rblspi.online.value_iteration import Regression, Rows, ValueScale, value_iteration

#: sigma, in units of the spread of values, unless it is given
NOISE = 0.1
#: of planned values, in units of their spread
PRECISION = 0.01
#: values further from the centre than so many deviations of the prior are clipped
LIMIT = 3.0


class RLSVI(PlanningAgent):
    """Explores by value functions sampled around the solution of least-squares value iteration.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, or the id of one.
    basis : Basis, callable or fitted transformer, optional
        State features, as for `RBLSPI`.
    noise_std : float, optional
        sigma, the standard deviation of the noise in r + gamma max Q. By default a tenth of the
        spread of values that the rewards so far allow, see `ValueScale`.
    prior_std : float, optional
        sigma lambda^-1/2, the standard deviation of weights before anything is seen. By default
        that spread: what was never tried may be worth whatever anything is worth.
    discount : float
        gamma. 1 is possible where every episode terminates.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

    Notes
    -----
    The weights are drawn towards those of a constant function, of the value of going on as until
    now, if the basis has a constant. Values are clipped to three deviations of the prior.

    References
    ----------
    Osband, Van Roy and Wen, Generalization and exploration via randomized value functions,
    International Conference on Machine Learning, 2016.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None = None,
        *,
        noise_std: float | None = None,
        prior_std: float | None = None,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        self.noise_std = None if noise_std is None else check.positive("noise_std", noise_std)
        self.prior_std = None if prior_std is None else check.positive("prior_std", prior_std)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _sampled_plan(self, transitions: Transitions, start: Matrix) -> Matrix:
        return self._solve(transitions, self.rng.standard_normal(start.shape), start)

    def _best_plan(self, transitions: Transitions) -> Matrix:
        return self._solve(transitions, np.zeros((self.actions, self.features.size)))

    def _solve(self, transitions: Transitions, draw: Matrix, start: Matrix | None = None) -> Matrix:
        """The value function of a standard normal draw; that of zero is the best estimate."""
        scale = ValueScale.of(transitions.rewards, transitions.terminated, self.discount)
        noise = NOISE * scale.spread if self.noise_std is None else self.noise_std
        prior = scale.spread if self.prior_std is None else self.prior_std
        centre = np.zeros_like(draw)
        if self.features.constant is not None:
            centre += scale.centre * self.features.constant
        rows = Rows.of(transitions, self.features, self.actions)
        reach = LIMIT * max(prior, scale.spread)
        return value_iteration(
            Regression.of(rows, (noise / prior) ** 2, centre),
            self.discount,
            (scale.centre - reach, scale.centre + reach),
            centre if start is None else start,
            noise * draw,
            PRECISION * scale.spread,
        )
