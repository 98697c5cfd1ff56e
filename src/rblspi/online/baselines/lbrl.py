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
dynamics. Inputs are x = (1, s, phi(s)), so that what is linear in the observation is learnt from a
few transitions, and the features of the basis correct it where it is not. A sampled output for the
termination is taken for its probability, and clipped to [0, 1]. Next observations are clipped to
the box of those that are possible, or were seen where the space has no bounds. Rewards are clipped
to those that were seen and to three deviations from their mean.

Outputs are counted from their mean, in units of their standard deviation over all transitions.
In these units the noise of the prior is 0.1 and, because lambda = 0.01, an output where nothing is
known has the deviation 1. All of it is in the units of observations and rewards, with nothing to
tune. An output that was always the same is its own unit, and 0 has the unit 1: terminations that
never happened may happen elsewhere, and so may rewards.

**The states.** Planning starts from up to a thousand states that the agent remembers, and from as
many places of a lattice that covers the box: a sampled model also leads to where it never was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.types import Array, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.lookup import EnvironmentLike
from rblspi.environments.spaces import is_unbounded, limits
from rblspi.features import BasisLike
from rblspi.model.matrix_normal import LinearModel, MatrixNormalInverseWishart
from rblspi.online.planning_agent import PlanningAgent
from rblspi.online.value_iteration import Regression, Rows, thin, value_iteration

#: states to plan from that are remembered, and places of the lattice
STATES = 1000
#: lambda of the regression of planned values, in simulated transitions
PENALTY = 0.01
#: of planned values, in units of their spread
PRECISION = 0.01
#: values further from the centre than so many times their spread are clipped; deviations of rewards
LIMIT = 3.0


class Box(NamedTuple):
    """Where observations are."""

    low: Vector
    high: Vector

    @classmethod
    def of(cls, space: gym.Space[Any], seen: Matrix) -> Self:
        """The bounds of the space or, where it has none, the range of what was seen."""
        low, high = limits(space)
        unbounded = is_unbounded(low, high)
        return cls(
            np.where(unbounded, seen.min(axis=0), low), np.where(unbounded, seen.max(axis=0), high)
        )

    def scaled(self, observations: Matrix) -> Matrix:
        """From -1 to 1 in every dimension; 0 in one without width."""
        width = self.high - self.low
        away = 2.0 * observations - self.low - self.high
        return np.divide(away, width, out=np.zeros_like(away), where=width > 0.0)

    def lattice(self, size: int) -> Matrix:
        """Places that cover the box evenly: multiples of powers of a number, modulo 1.

        The number is the root of g^(d + 1) = g + 1, the golden ratio in one dimension.
        """
        dimensions = len(self.low)
        root = 1.5
        for _ in range(100):
            root = (1.0 + root) ** (1.0 / (dimensions + 1.0))
        steps = root ** -np.arange(1.0, dimensions + 1.0)
        places = (0.5 + np.arange(1.0, size + 1.0)[:, None] * steps) % 1.0
        return self.low + (self.high - self.low) * places


class Outputs(NamedTuple):
    """What is predicted, counted from its mean and in units of its deviation."""

    mean: Vector  #   s' - s, reward, termination   (d + 2,)
    unit: Vector
    lowest: float  # of rewards
    highest: float

    @classmethod
    def of(cls, raw: Matrix) -> Self:
        """Means and units of these rows of outputs."""
        mean, unit = raw.mean(axis=0), raw.std(axis=0)
        unit = np.where(unit > 1e-9 * np.abs(mean), unit, np.abs(mean))
        unit = np.where(unit > 0.0, unit, 1.0)
        rewards, reach = raw[:, -2], LIMIT * unit[-2]
        lowest, highest = min(rewards.min(), mean[-2] - reach), max(rewards.max(), mean[-2] + reach)
        return cls(mean, unit, float(lowest), float(highest))


class LBRL(PlanningAgent):
    """Explores by planning in sampled linear models of the dynamics; for continuous observations.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise of the prior, in units of the deviation of what is
        predicted.
    prior_std : float
        That of a prediction where nothing is known.
    env, basis, discount, seed
        As for `RBLSPI`. Observations are in a Box; the features are those of the model and of the
        planned values. A discount of 1 is possible where every episode terminates.

    References
    ----------
    Tziortziotis, Dimitrakakis and Blekas, Linear Bayesian reinforcement learning, International
    Joint Conference on Artificial Intelligence, 2013.
    """

    def __init__(
        self,
        env: EnvironmentLike,
        basis: BasisLike | None = None,
        *,
        noise_std: float = 0.1,
        prior_std: float = 1.0,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        self.noise_std = check.positive("noise_std", noise_std)
        self.prior_std = check.positive("prior_std", prior_std)
        super().__init__(env, basis, discount=discount, seed=seed)
        if not isinstance(self.env.observation_space, gym.spaces.Box):
            raise TypeError(
                f"LBRL needs observations in a Box, not {self.env.observation_space}: for discrete "
                "ones take PSRL or OPSRL"
            )

    def _plan_to_explore(self, transitions: Transitions) -> None:
        models = [posterior.sample(self.rng) for posterior in self._posteriors(transitions)]
        states = self._states(transitions)
        shape = (self.actions, len(states), states.shape[1] + 2)
        noise = self.rng.standard_normal(shape)
        start = self.state.weights.reshape(self.actions, -1)
        found = self._solve(transitions, models, states, noise, start)
        self.state.weights[0] = found.ravel()

    def _best_plan(self, transitions: Transitions) -> Matrix:
        models = [posterior.average() for posterior in self._posteriors(transitions)]
        states = self._states(transitions)
        noise = np.zeros((self.actions, len(states), states.shape[1] + 2))
        return self._solve(transitions, models, states, noise)

    def _posteriors(self, transitions: Transitions) -> list[MatrixNormalInverseWishart]:
        """Line 2, by action."""
        raw = _raw_outputs(transitions)
        scale = Outputs.of(raw)
        x, y = self._inputs(transitions, _flat(transitions.observations)), raw - scale.mean
        penalty = (self.noise_std / self.prior_std) ** 2
        return [
            MatrixNormalInverseWishart.of(x[here], y[here] / scale.unit, penalty, self.noise_std**2)
            for here in (transitions.actions == a for a in range(self.actions))
        ]

    def _box(self, transitions: Transitions) -> Box:
        seen = [_flat(transitions.observations), _flat(transitions.next_observations)]
        return Box.of(self.env.observation_space, np.vstack(seen))

    def _inputs(self, transitions: Transitions, states: Matrix) -> Matrix:
        """(1, s, phi(s)), with s scaled to the box."""
        ones = np.ones((len(states), 1))
        return np.hstack([ones, self._box(transitions).scaled(states), self.features(states)])

    def _states(self, transitions: Transitions) -> Matrix:
        """Where planning starts from."""
        places = np.linspace(0, transitions.size - 1, min(STATES, transitions.size)).astype(int)
        remembered = _flat(transitions.observations)[places]
        return np.vstack([remembered, self._box(transitions).lattice(STATES)])

    def _simulate(
        self,
        transitions: Transitions,
        models: Sequence[LinearModel],
        states: Matrix,
        noise: Array,
    ) -> Rows:
        """Line 4: one transition from every state by every action."""
        scale, box = Outputs.of(_raw_outputs(transitions)), self._box(transitions)
        x = self._inputs(transitions, states)
        after, rewards, going = [], [], []
        for model, draw in zip(models, noise, strict=True):
            outputs = scale.mean + scale.unit * model.outputs(x, draw)
            after.append((states + outputs[:, :-2]).clip(*box))
            rewards.append(outputs[:, -2].clip(scale.lowest, scale.highest))
            going.append(1.0 - outputs[:, -1].clip(0.0, 1.0))
        features = thin(self.features(states))
        count = len(states)
        return Rows(
            [features] * self.actions,
            [np.arange(a * count, (a + 1) * count) for a in range(self.actions)],
            np.concatenate(rewards),
            thin(self.features(np.vstack(after))),
            np.concatenate(going),
        )

    def _solve(
        self,
        transitions: Transitions,
        models: Sequence[LinearModel],
        states: Matrix,
        noise: Array,
        start: Matrix | None = None,
    ) -> Matrix:
        """The value function of models and of draws of noise."""
        if transitions.next_allowed is not None:
            raise ValueError(
                "the environment has action masks, and LBRL plans with next states that it "
                "imagines, of which nobody knows what is allowed there: take RLSVI or RBLSPI"
            )
        scale = self._scale(transitions)
        centre = scale.constant(self.features, self.actions)
        rows = self._simulate(transitions, models, states, noise)
        return value_iteration(
            Regression.of(rows, PENALTY, centre),
            self.discount,
            (scale.centre - LIMIT * scale.spread, scale.centre + LIMIT * scale.spread),
            PRECISION * scale.spread,
            start,
        )


def _flat(observations: Array) -> Matrix:
    return observations.reshape(len(observations), -1)


def _raw_outputs(transitions: Transitions) -> Matrix:
    """S' - s, reward and termination, shape (rows, d + 2)."""
    change = _flat(transitions.next_observations) - _flat(transitions.observations)
    return np.column_stack([change, transitions.rewards, transitions.terminated])
