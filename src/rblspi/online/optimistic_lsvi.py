"""Optimistic least-squares value iteration: what is unknown may be as good as anything was so far.

Beside its pseudocode:

    1   every action starts with pseudo-observations of weight c, one along every feature,
        that values are u everywhere
    2   for every episode, or every few while there are few new transitions:   `PlanningAgent`
    3       w_i ~ Exp(1) for every transition; u = the best of the returns so far   `best_return`
    4       theta_a = argmin sum_i w_i (t_i - x_i'theta_a)^2 + c |theta_a - theta_0|^2,
            t = r + gamma max_a' phi(s')'theta_a'                              `value_iteration`
    5       for every step of the episode: a = argmax_a phi(s)'theta_a, or with
            probability 0.1 any                                                `act`

Line 3 is the Bayesian bootstrap: over a table, the normalised weights of the outcomes of a state
and action are Dirichlet distributed, as for `OPSRL`. Line 4 draws what the transitions do not
determine towards the weights theta_0 of u. Because the targets contain the values themselves, the
hope of something good travels back to where the agent stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit, jit_inlined
from rblspi.core.settings import Setting
from rblspi.core.types import Allowed, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import RandomFourier
from rblspi.features.default import rescaled
from rblspi.offline.fitted_q import attainable
from rblspi.online.planning_agent import GROWTH, PLANNED_AT, TRANSITIONS, PlanningAgent, State
from rblspi.online.value_iteration import Regression, Rows, ValueScale, value_iteration
from rblspi.policies.choice import epsilon_greedy

#: the probability of a random action: in all but one of ten steps it does what it planned
EPSILON = 0.1
#: earlier transitions cover only what random actions reach, as does the initial scaling of a basis
SCOUTED = 1000
#: error of planned values, in units of how much better than usual the best return was
PRECISION = 0.1


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Line 5."""
    return epsilon_greedy(agent.weights[0], x, EPSILON, allowed, rng)


class OptimisticLSVI(PlanningAgent):
    """Explores by bootstrapped value functions in which the unknown is worth trying.

    Parameters
    ----------
    prior_weight : float
        c, the weight of what is assumed before anything is seen, in transitions.
    rescale : bool
        Whether `RandomFourier` features are scaled again to the observations that are remembered,
        whenever these have doubled in number: an agent that has learnt is elsewhere.
    env, basis, discount, seed
        As for `RBLSPI`. The features should have a constant.

    Notes
    -----
    Other units of the rewards change units alone. Values ahead are clipped to what the rewards
    allow, or to what is hoped for. By the best estimate, by which `policy` acts, all transitions
    weigh the same, and the unknown is worth v, the value of going on as until now, see
    `ValueScale`.

    It hopes for no more than the best return so far, and does not look for what no return hinted
    at, as in the deep sea: `LSVIUCB` and `OPSRL` do. With a smaller c, values of what was seldom
    tried follow single transitions, and where the features are many the iteration may not settle:
    values grow until they are clipped.
    """

    functions = PlanningAgent.functions._replace(act=act)
    least_growth = GROWTH
    most_remembered = 100_000

    prior_weight = Setting(1.0, check.positive)
    rescale = Setting(True, check.boolean)

    def _exploring_epsilon(self) -> float:
        return EPSILON

    def _value_function(self, log: Transitions, explore: bool) -> Matrix:
        if not explore:
            return self._solve(log, optimistic=False)
        bootstrap = self.rng.standard_exponential(log.size)  # line 3
        start = None if self._rescale(log) else self._last_plan
        return self._solve(log, True, bootstrap, start)

    def _rescale(self, log: Transitions) -> bool:
        """Whenever the memory has doubled, scale random features to what is in it."""
        seen, planned = (int(self.state.counters[i]) for i in (TRANSITIONS, PLANNED_AT))
        doubled = seen.bit_length() > max(planned, SCOUTED).bit_length()
        if not (self.rescale and doubled and isinstance(self.basis, RandomFourier)):
            return False
        space = self.env.observation_space
        self.basis = rescaled(self.basis, space, log.observations.reshape(log.size, -1))
        self.features = self.basis.build(space)
        self.session.see_through(self.features)
        return True

    def _scale(self, log: Transitions) -> ValueScale:
        """The value of going on as until now, and how much better the best return was.

        While no return was better, unknown values may be better by the size of a reward.
        """
        usual = ValueScale.of(log, self.discount)
        spread = best_return(log, self.discount, usual.centre) - usual.centre
        if spread <= 1e-9 * abs(usual.centre):
            spread = abs(float(log.rewards.mean())) or 1.0
        return usual._replace(spread=spread)

    def _solve(
        self,
        log: Transitions,
        optimistic: bool,
        bootstrap: Vector | None = None,
        start: Matrix | None = None,
    ) -> Matrix:
        """Line 4, where the unknown is worth the best return, or else the usual one."""
        scale = self._scale(log)
        unknown = scale.centre + scale.spread if optimistic else scale.centre
        prior = scale._replace(centre=unknown).constant(self.features, self.actions)
        rows = Rows.of(log, self.features, self.actions)
        regression = Regression.of(rows, self.prior_weight, prior, bootstrap)
        low, high = attainable([log], self.discount)
        limits = low, max(high, unknown)
        return value_iteration(regression, self.discount, limits, PRECISION * scale.spread, start)


def best_return(log: Transitions, discount: float, beyond: float) -> float:
    """The largest of G = r + gamma G', where G' = ``beyond`` after what was cut short."""
    ahead = np.where(log.truncated, beyond, 0.0)
    return float(returns_of(log.rewards, log.truncated | log.terminated, ahead, discount).max())


@jit
def returns_of(rewards: Vector, ends: Mask, ahead: Vector, discount: float) -> Vector:
    """G_i of all rows, from the last to the first."""
    returns, following = np.empty(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        following = rewards[i] + discount * (ahead[i] if ends[i] else following)
        returns[i] = following
    return returns
