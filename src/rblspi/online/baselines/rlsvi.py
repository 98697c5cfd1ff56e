"""Randomised least-squares value iteration: deep exploration with linear value functions.

Beside Algorithms 1 and 2 of Osband, Van Roy and Wen, as published, for episodes of H steps:

    1   for every episode:                                              `PlanningAgent`
    2       for h = H - 1, ..., 0:                                      `_finite_horizon`
    3           t = r + max_a' phi(s')'theta_(h+1)a', or r if h = H - 1, for transitions of step h
    4           theta_ha ~ N(m, sigma^2 (C_a + lambda I)^-1) around     `Regression.solve`
                    m = (C_a + lambda I)^-1 (sum x t + lambda theta_0), C_a = sum x x'
    5       for h = 0, ..., H - 1: a = argmax_a phi(s)'theta_ha         `act`
    6           remember s, a, r, s'                                    the loop

With a discount and without a horizon, one theta takes the place of theta_0, ..., theta_(H-1): the
same sample is on both sides of lines 3 and 4, which are repeated until it converges
(`_stationary`).

In line 3 the targets contain the sample itself, so that optimism about a state spreads to the
states that lead there. The paper's lambda is this lambda over sigma^2, and its theta_0 is 0.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.core.settings import Setting
from rblspi.core.types import Array, Integers, Matrix
from rblspi.data.transitions import Transitions
from rblspi.online.planning_agent import PlanningAgent
from rblspi.online.value_iteration import PRECISION, Regression, Rows, ValueScale, value_iteration
from rblspi.policies.choice import masked

#: default of sigma, in units of the spread of values
NOISE = 0.1


class RLSVI(PlanningAgent):
    """Explores by value functions sampled around the solution of least-squares value iteration.

    Parameters
    ----------
    noise_std : float, optional
        sigma, the standard deviation of the noise in r + gamma max Q. By default a tenth of the
        spread of values that the rewards so far allow, see `ValueScale`.
    prior_std : float, optional
        sigma lambda^-1/2, the standard deviation of weights before any data. By default this is the
        spread of values: an untried action may have any plausible value.
    horizon : int, optional
        H, the steps of an episode; if it goes on, the next H steps count as another one. As in the
        paper, every step has its own value function, instead of one for all steps.
    env, basis, discount, seed
        As for `RBLSPI`. The discount of the paper is 1. Without a horizon, 1 is possible where
        every episode terminates.

    Notes
    -----
    If the basis has a constant, the weights are shrunk towards a constant function: the
    value of continuing as before. Without a horizon, values are clipped to three deviations of the
    prior. With a horizon, the best estimate, by which `policy` acts, is of the value with H steps
    to go, whatever the step: it learns from the transitions of all steps.

    References
    ----------
    Osband, Van Roy and Wen, Generalization and exploration via randomized value functions,
    International Conference on Machine Learning, 2016.
    """

    noise_std = Setting[float | None](None, check.positive)
    prior_std = Setting[float | None](None, check.positive)
    horizon = Setting[int | None](None, check.count)

    def _follows_an_episode(self) -> bool:
        return self.horizon is not None

    def _steps_of_plan(self) -> int:
        return self.horizon or 1

    def _value_function(self, log: Transitions, explore: bool) -> Array:
        shape = (self.horizon or 1, self.actions, self.features.size)
        draw = self.rng.standard_normal(shape) if explore else np.zeros(shape)
        if self.horizon is None:
            return self._stationary(log, draw[0], self._last_plan if explore else None)
        if not explore:
            return np.asarray(self._finite_horizon(log, None, draw)[0])
        memory = self.session.memory
        return self._finite_horizon(log, memory.steps[memory.order()] % self.horizon, draw)

    def _stationary(self, log: Transitions, draw: Matrix, start: Matrix | None = None) -> Matrix:
        """The value function of a standard normal draw; the draw zero gives the best estimate."""
        scale = ValueScale.of(log, self.discount)
        noise, prior = self._deviations(scale)
        rows = Rows.of(log, self.features, self.actions)
        centre = scale.constant(self.features, self.actions)
        return value_iteration(
            Regression.of(rows, (noise / prior) ** 2, centre),
            self.discount,
            scale._replace(spread=max(prior, scale.spread)).limits(),
            PRECISION * scale.spread,
            start,
            noise * draw,
        )

    def _finite_horizon(self, log: Transitions, steps: Integers | None, draw: Array) -> Array:
        """Lines 2 to 4: the value functions of all steps, shape (H, actions, n), of a draw.

        ``steps`` has the step of every transition; None means that all transitions count for every
        step.
        """
        noise, prior = self._deviations(ValueScale.of(log, self.discount, len(draw)))
        penalty, nothing = (noise / prior) ** 2, np.zeros(draw.shape[1:])
        weights = np.zeros((len(draw) + 1, *draw.shape[1:]))
        regression = None
        for h in reversed(range(len(draw))):
            if regression is None or steps is not None:
                here = slice(None) if steps is None else steps == h
                rows = Rows.of(log.select(here), self.features, self.actions)
                regression = Regression.of(rows, penalty, nothing)
            ahead = masked(rows.y @ weights[h + 1].T, rows.allowed).max(axis=1)
            targets = rows.rewards + self.discount * rows.going * ahead  # line 3
            scale = ValueScale.of(log, self.discount, len(draw) - h)
            centre = scale.constant(self.features, self.actions)
            weights[h] = regression._replace(prior_mean=centre).solve(targets, noise * draw[h])
        return weights[:-1]

    def _deviations(self, scale: ValueScale) -> tuple[float, float]:
        """Standard deviations of the noise and of the prior."""
        noise = NOISE * scale.spread if self.noise_std is None else self.noise_std
        return noise, scale.spread if self.prior_std is None else self.prior_std
