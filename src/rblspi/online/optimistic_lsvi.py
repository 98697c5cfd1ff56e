"""Optimistic least-squares value iteration: what is unknown may be as good as anything.

This is `OPSRL` with features in place of a table. Beside its pseudocode:

    1   every action starts with pseudo-observations of weight c, one along every feature,
        that values are u(s, a) there
    2   for every episode, or every few while there are few new transitions:   `PlanningAgent`
    3       w_i ~ Exp(1) for every transition; u ~ v + 3 S + S phi(s)'z, z ~ N(0, I)
    4       theta_a = argmin sum_i w_i (t_i - x_i'theta_a)^2 + c |theta_a - theta_0,a|^2,
            t = r + gamma max_a' phi(s')'theta_a'                              `value_iteration`
    5       for every step of the episode: a = argmax_a phi(s)'theta_a         `act`

Line 3 is the Bayesian bootstrap: over a table, the normalised weights of the outcomes of a state
and action are Dirichlet distributed. Line 4 draws what the transitions do not determine towards the
weights theta_0 of u. Because the targets contain the values themselves, the hope of something good
travels back to where the agent stands.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.core.types import Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.lookup import EnvironmentLike
from rblspi.features import BasisLike
from rblspi.offline.fitted_q import attainable
from rblspi.online.planning_agent import WORTH_A_PLAN, PlanningAgent
from rblspi.online.value_iteration import Regression, Rows, ValueScale, value_iteration

#: the weight of a pseudo-observation, in transitions: a few visits tell nearly all
PRIOR_WEIGHT = 0.01
#: how far above the centre the unknown is, in units of the spread of values, as for `OPSRL`
OPTIMISM = 3.0
#: error of planned values, in units of their spread
PRECISION = 0.01


class OptimisticLSVI(PlanningAgent):
    """Explores by bootstrapped value functions in which the unknown is worth trying.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, a vector of them, or the id of one.
    basis : Basis, callable or fitted transformer, optional
        State features, as for `RBLSPI`. They should have a constant.
    prior_weight : float
        c, the weight of what is assumed before anything is seen, in transitions.
    discount : float
        gamma.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

    Notes
    -----
    The centre v is the value of going on as until now, and S how far values may be from it, see
    `ValueScale`. Other units of the rewards change units alone. Values ahead are clipped to what
    the rewards allow, or to what is hoped for. By the best estimate, by which `policy` acts, all
    transitions weigh the same, and the unknown is worth v.

    It learns from fewer steps than `RBLSPI` where values are smooth, as on the cart pole, and takes
    a few milliseconds a step. Where few transitions out of many have extreme rewards, as in the
    puddle world, S is large, exploration lasts long, and `RBLSPI` is better.
    """

    least_growth = WORTH_A_PLAN

    def __init__(
        self,
        env: EnvironmentLike,
        basis: BasisLike | None = None,
        *,
        prior_weight: float = PRIOR_WEIGHT,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        self.prior_weight = check.positive("prior_weight", prior_weight)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _plan_to_explore(self, transitions: Transitions) -> None:
        weights = self.state.weights.reshape(self.actions, -1)
        bootstrap = self.rng.standard_exponential(transitions.size)  # line 3
        draw = self.rng.standard_normal(weights.shape)
        weights[...] = self._solve(transitions, OPTIMISM, draw, bootstrap, weights)

    def _best_plan(self, transitions: Transitions) -> Matrix:
        return self._solve(transitions, 0.0, np.zeros((self.actions, self.features.size)))

    def _solve(
        self,
        transitions: Transitions,
        optimism: float,
        draw: Matrix,
        bootstrap: Vector | None = None,
        start: Matrix | None = None,
    ) -> Matrix:
        """Line 4, where the unknown is worth v + S (optimism + phi(s)'draw)."""
        scale = ValueScale.of(transitions.rewards, transitions.terminated, self.discount)
        hope = scale.centre + optimism * scale.spread
        prior = scale._replace(centre=hope).constant(self.features, self.actions)
        prior += scale.spread * draw
        low, high = attainable([transitions], self.discount)
        rows = Rows.of(transitions, self.features, self.actions)
        return value_iteration(
            Regression.of(rows, self.prior_weight, prior, bootstrap),
            self.discount,
            (low, max(high, hope)),
            prior if start is None else start,
            np.zeros_like(prior),
            PRECISION * scale.spread,
        )
