"""Linear Bayesian reinforcement learning: sample linear dynamics, and plan in them.

Beside the algorithm of Tziortziotis, Dimitrakakis and Blekas:

    1   for every episode:                                                 `PlanningAgent`
    2       for every action: posterior over B_a, V_a                      `_posteriors`
    3           B_a, V_a ~ posterior                                       `sample`
    4       simulate the sampled model, from states S, by every action     `_simulate`
    5       theta = least-squares value iteration on what was simulated    `value_iteration`
    6       for every step of the episode: a = argmax_a phi(s)'theta_a     `act`
    7       remember s, a, r, s'                                           the loop

**The model.** For every action, the change of the observation s' - s, the reward and whether the
episode terminates are the outputs of one regression, y = x'B_a + e, e ~ N(0, V_a), under a
matrix-normal-inverse-Wishart prior. The paper knows the rewards; here they are learnt like the
dynamics. Inputs are x = (1, s, phi(s)): the part that is linear in the observation is learnt from a
few transitions, and the features of the basis correct it. A sampled output for the termination
counts as its probability, and is clipped to [0, 1]. Next observations are clipped to the bounds of
the space, or to the observed range where it has none. Rewards are clipped to the range that covers
all observed rewards and three deviations around their mean.

Outputs are centred and scaled by their standard deviation over all transitions. In these units the
noise of the prior is 0.1 and, because lambda = 0.01, an output far from all data has the deviation
1. The prior follows the units of observations and rewards, so there is nothing to tune. The unit of
a constant output is its absolute value, or 1 if it is 0: terminations or rewards that never
happened may happen elsewhere.

**The states.** Planning starts from up to a thousand remembered states, and from as many points of
a lattice that covers the box, because a sampled model also leads to unvisited states.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.lattice import lattice
from rblspi.core.settings import Setting
from rblspi.core.types import Array, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.spaces import is_unbounded, limits
from rblspi.features import BasisLike
from rblspi.model.matrix_normal import MatrixNormalInverseWishart
from rblspi.online.planning_agent import PlanningAgent
from rblspi.online.value_iteration import (
    PRECISION,
    REACH,
    Regression,
    Rows,
    ValueScale,
    thin,
    value_iteration,
)

#: number of remembered states to plan from, and number of points of the lattice
STATES = 1000
#: lambda of the regression of planned values, in simulated transitions
PENALTY = 0.01


class Box(NamedTuple):
    """The box that contains all observations."""

    low: Vector
    high: Vector

    @classmethod
    def of(cls, space: gym.Space[Any], log: Transitions) -> Self:
        """The bounds of the space, or the observed range where it has none."""
        seen = np.vstack([_flat(log.observations), _flat(log.next_observations)])
        low, high = limits(space)
        unbounded = is_unbounded(low, high)
        return cls(
            np.where(unbounded, seen.min(axis=0), low), np.where(unbounded, seen.max(axis=0), high)
        )

    def scaled(self, observations: Matrix) -> Matrix:
        """Observations scaled to [-1, 1] in every dimension; 0 in a dimension without width."""
        width = self.high - self.low
        away = 2.0 * observations - self.low - self.high
        return np.divide(away, width, out=np.zeros_like(away), where=width > 0.0)

    def lattice(self, size: int) -> Matrix:
        """Points that cover the box evenly."""
        return self.low + (self.high - self.low) * lattice(size, len(self.low))


class Outputs(NamedTuple):
    """The outputs of the model, s' - s, reward and termination, with means and deviations."""

    rows: Matrix  # in their own units   (rows, d + 2)
    mean: Vector  #                      (d + 2,)
    unit: Vector

    @classmethod
    def of(cls, log: Transitions) -> Self:
        """The outputs of transitions."""
        change = _flat(log.next_observations) - _flat(log.observations)
        rows = np.column_stack([change, log.rewards, log.terminated])
        mean, unit = rows.mean(axis=0), rows.std(axis=0)
        unit = np.where(unit > 1e-9 * np.abs(mean), unit, np.abs(mean))
        return cls(rows, mean, np.where(unit > 0.0, unit, 1.0))

    def reward_limits(self) -> tuple[float, float]:
        """The range that covers all observed rewards and three deviations around their mean."""
        seen, mean, reach = self.rows[:, -2], self.mean[-2], REACH * self.unit[-2]
        return float(min(seen.min(), mean - reach)), float(max(seen.max(), mean + reach))


class LBRL(PlanningAgent):
    """Explores by planning in sampled linear models of the dynamics; for continuous observations.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise of the prior, in units of the outputs' deviations.
    prior_std : float
        Standard deviation of a prediction far from all data.
    env, basis, discount, seed
        As for `RBLSPI`. Observations are in a Box; the features serve both the model and the
        planned values. A discount of 1 is possible where every episode terminates.

    References
    ----------
    Tziortziotis, Dimitrakakis and Blekas, Linear Bayesian reinforcement learning, International
    Joint Conference on Artificial Intelligence, 2013.
    """

    noise_std = Setting(0.1, check.positive)
    prior_std = Setting(1.0, check.positive)

    def _recipe(self, given: BasisLike | None) -> BasisLike | None:
        if not isinstance(self.env.observation_space, gym.spaces.Box):
            raise TypeError(
                f"{type(self).__name__} needs observations in a Box, not "
                f"{self.env.observation_space}: for discrete ones take PSRL or OPSRL"
            )
        return given

    def _value_function(self, log: Transitions, explore: bool) -> Matrix:
        if log.next_allowed is not None:
            raise ValueError(
                f"the environment has action masks, and {type(self).__name__} plans with next "
                "states that it imagines, of which nobody knows what is allowed there: take RLSVI "
                "or RBLSPI"
            )
        rows = self._simulate(log, explore)
        scale = ValueScale.of(log, self.discount)
        return value_iteration(
            Regression.of(rows, PENALTY, scale.constant(self.features, self.actions)),
            self.discount,
            scale.limits(),
            PRECISION * scale.spread,
            self._last_plan if explore else None,
        )

    def _posteriors(self, log: Transitions) -> list[Any]:
        """Line 2, by action."""
        outputs, penalty = Outputs.of(log), (self.noise_std / self.prior_std) ** 2
        x, y = self._inputs(log, _flat(log.observations)), outputs.rows - outputs.mean
        return [
            self._posterior(x[a], y[a] / outputs.unit, penalty, self.noise_std**2)
            for a in (log.actions == action for action in range(self.actions))
        ]

    def _posterior(self, x: Matrix, y: Matrix, penalty: float, variance: float) -> Any:
        """Of the model of one action, which can `sample` and has an `average`."""
        return MatrixNormalInverseWishart.of(x, y, penalty, variance)

    def _inputs(self, log: Transitions, states: Matrix) -> Matrix:
        """(1, s, phi(s))."""
        return np.hstack([self._linear_inputs(log, states), self.features(states)])

    def _linear_inputs(self, log: Transitions, states: Matrix) -> Matrix:
        """(1, s), with s scaled to the box."""
        scaled = Box.of(self.env.observation_space, log).scaled(states)
        return np.hstack([np.ones((len(states), 1)), scaled])

    def _simulate(self, log: Transitions, explore: bool) -> Rows:
        """Lines 3 and 4, by every action from every state; the best estimate has no noise."""
        posteriors = self._posteriors(log)
        models = [p.sample(self.rng) if explore else p.average() for p in posteriors]
        outputs, box = Outputs.of(log), Box.of(self.env.observation_space, log)
        remembered = np.linspace(0, log.size - 1, min(STATES, log.size)).astype(int)
        states = np.vstack([_flat(log.observations)[remembered], box.lattice(STATES)])
        x, count = self._inputs(log, states), len(states)
        shape = (self.actions, count, len(outputs.mean))
        noise = self.rng.standard_normal(shape) if explore else np.zeros(shape)
        after, rewards, going = [], [], []
        for model, draw in zip(models, noise, strict=True):
            found = outputs.mean + outputs.unit * model.outputs(x, draw)
            after.append((states + found[:, :-2]).clip(*box))
            rewards.append(found[:, -2].clip(*outputs.reward_limits()))
            going.append(1.0 - found[:, -1].clip(0.0, 1.0))
        return Rows(
            [thin(self.features(states))] * self.actions,
            [np.arange(a * count, (a + 1) * count) for a in range(self.actions)],
            np.concatenate(rewards),
            thin(self.features(np.vstack(after))),
            np.concatenate(going),
        )


def _flat(observations: Array) -> Matrix:
    return observations.reshape(len(observations), -1)
