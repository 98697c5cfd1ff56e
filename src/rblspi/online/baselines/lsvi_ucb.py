"""Least-squares value iteration with an upper confidence bound: optimism instead of samples.

Beside Algorithm 1 of Jin, Yang, Wang and Jordan, for a stationary value function with a discount,
instead of one value function per step:

    1   for every episode:                                              `PlanningAgent`
    2       repeat, from the values of the last plan:                   `value_iteration`
    3           Lambda_a = sum x x' + lambda I, over action a           `Regression.of`
    4           w_a = Lambda_a^-1 sum x (r + gamma max_a' Q(s', a'))    `Regression.solve`
    5           Q(s, a) = min(phi(s)'w_a + beta (phi(s)'Lambda_a^-1 phi(s))^1/2, V_max)
    6       for every step of the episode: a = argmax_a Q(s, a)         `act`
    7       remember s, a, r, s'                                        the loop

The features of a state and an action are the features of the state in the block of the action, so
Lambda is block-diagonal. In the paper, Q of step h is regressed on targets of step h + 1, from the
last step to the first. This is the algorithm above with the step as a part of the state, and a
discount of 1.

Line 6 compares values before the minimum of line 5. If several actions have the value V_max, the
paper leaves the choice open; this code takes the action of the highest bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from rblspi.core import check
from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit_inlined
from rblspi.core.kernels import dot
from rblspi.core.settings import Setting
from rblspi.core.types import Allowed, Array, Integers, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.model.posterior import Posterior
from rblspi.online import planning_agent
from rblspi.online.planning_agent import PlanningAgent, observe
from rblspi.online.value_iteration import (
    PRECISION,
    REACH,
    Regression,
    Rows,
    ValueScale,
    value_iteration,
)
from rblspi.policies.choice import Pessimistic
from rblspi.policies.given import BatchPolicy
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.loop import AgentFunctions

#: default of beta, in units of the spread of values
BONUS = 0.1


class State(NamedTuple):
    """The state of the algorithm, beside its memory."""

    weights: Matrix  # w                                           (1, k)
    factors: Array  # R_a / beta, where R_a'R_a = Lambda_a         (actions, n, n)
    beta: Vector  #                                                (1,)
    counters: Integers  # see `planning_agent`                     (4,)
    workspace: Vector  #                                           (n,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that compiled code can use as indices, by field."""
        return planning_agent.State(self.weights, self.counters).integer_ranges(actions)


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """The allowed action of the highest bound; ties go to the first."""
    n, best, highest = len(x), -1, -np.inf
    for a in range(len(agent.factors)):
        if not allowed[a]:
            continue
        whitened = agent.workspace
        la.copy_vector(x, whitened)
        la.whiten_columns(agent.factors[a], whitened.reshape(n, 1))
        mean = dot(agent.weights[0, a * n : (a + 1) * n], x)
        bound = mean + math.sqrt(dot(whitened, whitened))  # line 5
        if best < 0 or bound > highest:
            best, highest = a, bound
    return max(best, 0)  # line 6


class LSVIUCB(PlanningAgent):
    """Explores by acting as if every value were as high as the data allow.

    Parameters
    ----------
    bonus : float, optional
        beta, about the bonus of a state-action pair that was visited once. By default a tenth of
        the spread of values that the rewards so far allow, see `ValueScale`.
    penalty : float
        lambda, in visits. An unvisited pair has the bonus beta lambda^-1/2; by default, this is
        three times the spread of values, which raises its value to V_max.
    env, basis, discount, seed
        As for `RBLSPI`. A discount of 1 is possible where every episode terminates.

    Notes
    -----
    If the basis has a constant, the weights are shrunk towards a constant function: the
    value of continuing as before. V_max is that value and three times the spread. The paper's beta,
    c d H (log(2 d T / p))^1/2 for rewards up to 1, serves its proof and is far larger.

    References
    ----------
    Jin, Yang, Wang and Jordan, Provably efficient reinforcement learning with linear function
    approximation, Conference on Learning Theory, 2020.
    """

    functions = AgentFunctions(act, observe)
    state: State

    bonus = Setting[float | None](None, check.positive)
    penalty = Setting((BONUS / REACH) ** 2, check.positive)

    def _initial_state(self) -> State:
        n = self.features.size
        return State(
            weights=self.rng.standard_normal((1, self.actions * n)),
            factors=np.tile(math.sqrt(self.penalty) * np.eye(n), (self.actions, 1, 1)),
            beta=np.ones(1),
            counters=np.zeros(4, np.int64),
            workspace=np.zeros(n),
        )

    def _value_function(self, log: Transitions, explore: bool) -> Matrix:
        """The weights w; with a bonus of 0 they are the best estimate."""
        scale, rows = ValueScale.of(log, self.discount), Rows.of(log, self.features, self.actions)
        centre = scale.constant(self.features, self.actions)
        regression, bonus = Regression.of(rows, self.penalty, centre), np.zeros(1)
        if explore:
            beta = BONUS * scale.spread if self.bonus is None else self.bonus
            bonus = beta * regression.deviations(rows.y)
            self.state.beta[0] = beta
            for own, factor in zip(self.state.factors, regression.factors, strict=True):
                own[...] = (np.diag(factor) if factor.ndim == 1 else factor) / beta
        return value_iteration(
            regression,
            self.discount,
            scale.limits(),
            PRECISION * scale.spread,
            self._last_plan if explore else None,
            bonus=bonus,
        )

    def _bound(self) -> Posterior:
        """A Gaussian of which the bound is the mean and one standard deviation."""
        weights, beta = self.state.weights[0].copy(), float(self.state.beta[0])
        factor = beta * block_diag(*self.state.factors)
        return Posterior(
            mean=weights,
            factor=factor,
            residual=0.0,
            gram_factor=beta * self.state.factors,
            prior_precision=self.penalty / beta**2,
            noise_precision=beta**-2.0,
            actions=self.actions,
        )

    def _choice(self, explore: bool) -> BatchPolicy:
        return Pessimistic(self._bound(), -1.0) if explore else super()._choice(explore)

    def policy(self, explore: bool = False) -> LinearPolicy:
        """The policy found so far; with ``explore``, one with the bonus as a posterior's deviation.

        Its bound is the mean and one standard deviation: a pessimism of -1.
        """
        with self._lock:
            policy = super().policy(explore)
            return replace(policy, posterior=self._bound(), pessimism=-1.0) if explore else policy
