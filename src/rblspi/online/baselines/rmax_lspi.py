"""Rmax-LSPI: policy iteration in which every unknown pair has the highest possible value.

After Li, Littman and Mansley. A state-action pair is known once it was visited m times. With
features, least squares defines an effective number of visits, 1 / (phi(s)'C_a^-1 phi(s)). In a
table this is the number of visits of (s, a); for other features it is the number of visits that
would tell as much about the value.

    1   for every episode:                                                  `PlanningAgent`
    2       K = {(s, a): 1 / (phi(s)'(C_a + lambda I)^-1 phi(s)) >= m}      `_unknown`
    3       repeat until the policy pi stays, or for 20 times:              `_value_function`
    4           A = lambda I, b = 0                                         `evaluate`
    5           for all (s, a, r, s') in the memory:
    6               for all actions a', if (s, a') is not in K:
    7                   A += phi(s, a') phi(s, a')'
    8                   b += phi(s, a') V_max
    9               if (s, a) is in K, but some (s', a') is not:
    10                  A += phi(s, a) phi(s, a)'
    11                  b += phi(s, a) (r + gamma V_max)
    12              else if (s, a) is in K:
    13                  A += phi(s, a) (phi(s, a) - gamma phi(s', pi(s')))'
    14                  b += phi(s, a) r
    15          theta = A^-1 b
    16          pi(s) = argmax_a phi(s, a)'theta
    17      for every step of the episode: a = pi(s)                        `act`
    18      remember s, a, r, s'                                            the loop

Lines 6 to 8 give an action that was not tried in a visited state the highest possible value.
Without unknown pairs this is LSPI.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import block_array, issparse
from scipy.sparse.linalg import spsolve

from rblspi.core import check
from rblspi.core.settings import Setting
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.model.buffer import TERMINAL
from rblspi.online.planning_agent import PlanningAgent
from rblspi.online.value_iteration import Regression, Rows, ValueScale
from rblspi.policies.choice import best_actions

#: lambda, in visits: it makes A invertible
PENALTY = 0.01
#: most policies to evaluate; a few are usually enough, and some iterations cycle
MOST_POLICIES = 20


class RmaxLSPI(PlanningAgent):
    """Explores by acting as if every unknown pair had the highest possible value.

    Parameters
    ----------
    visits : float
        m, the visits that make a state-action pair known. 1 is enough in a deterministic
        environment.
    best_value : float, optional
        V_max. By default the value of continuing as before, plus three times the spread of values
        that the rewards so far allow, see `ValueScale`.
    env, basis, discount, seed
        As for `RBLSPI`. A discount of 1 is possible where every episode terminates.

    References
    ----------
    Li, Littman and Mansley, Online exploration in least-squares policy iteration, International
    Conference on Autonomous Agents and Multiagent Systems, 2009.
    """

    visits = Setting(5.0, check.positive)
    best_value = Setting[float | None](None, check.finite)

    def _value_function(self, log: Transitions, explore: bool) -> Matrix:
        """Lines 2 to 16; where everything counts as known, this is LSPI.

        Values are relative to the centre, so that lambda shrinks them towards it.
        """
        scale = ValueScale.of(log, self.discount)
        centre = scale.constant(self.features, self.actions)
        level = scale.centre if self.features.constant is not None else 0.0
        best = scale.limits()[1] if self.best_value is None else self.best_value
        rows = Rows.of(log, self.features, self.actions)
        rows = rows._replace(rewards=rows.rewards - level * (1.0 - self.discount * rows.going))
        unknown, ahead = self._unknown(rows, self.visits if explore else 0.0)
        problem = _Problem.of(rows, unknown, ahead, best - level, self.discount)
        weights, chosen = (self._last_plan if explore else centre) - centre, None
        for _ in range(MOST_POLICIES):
            before, chosen = chosen, best_actions(rows.y @ weights.T, rows.allowed)
            chosen[problem.cut] = TERMINAL
            if before is not None and (chosen == before).all():
                break
            weights = problem.evaluate(chosen)
        return weights + centre

    def _unknown(self, rows: Rows, visits: float) -> tuple[Mask, Mask]:
        """Unknown actions in the states of the rows and in their next states; (rows, actions)."""
        regression = Regression.of(rows, PENALTY, np.zeros((self.actions, self.features.size)))
        here = np.empty((len(rows.rewards), self.actions))
        for x, places in zip(rows.x, rows.places, strict=True):
            here[places] = regression.deviations(x)
        ahead = regression.deviations(rows.y)
        hopeful = (ahead**2 * visits > 1.0) & (rows.going > 0.0)[:, None]
        if rows.allowed is not None:
            hopeful &= rows.allowed
        return here**2 * visits > 1.0, hopeful


class _Problem(NamedTuple):
    """The parts of the sums A and b that are the same for all policies."""

    x: Any  # phi(s)                                                    (rows, n)
    y: Any  # phi(s')                                                   (rows, n)
    unknown: Mask  # actions that are worth V_max in the state of a row (rows, actions)
    known: list[Integers]  # rows of an action that is known, by action
    targets: Vector  # r + gamma V_max or r                             (rows,)
    cut: Mask  # rows whose target contains no unknown weights         (rows,)
    best: float  # V_max
    discount: float

    @classmethod
    def of(cls, rows: Rows, unknown: Mask, ahead: Mask, best: float, discount: float) -> Self:
        """The problem with these unknown actions in the states of rows and in their next states."""
        known = [places[~unknown[places, a]] for a, places in enumerate(rows.places)]
        hopeful = ahead.any(axis=1)
        targets = rows.rewards + np.where(hopeful, discount * best, 0.0)
        cut = hopeful | (rows.going == 0.0)
        return cls(rows.in_order(), rows.y, unknown, known, targets, cut, best, discount)

    def evaluate(self, chosen: Integers) -> Matrix:
        """Lines 4 to 15: theta by action, shape (actions, n), for the next actions of a policy."""
        x, blocks, sides = self.x, [], []
        for a, known in enumerate(self.known):
            unknown = x[self.unknown[:, a]]
            going_on = (known[chosen[known] == b] for b in range(len(self.known)))
            row = [-self.discount * (x[here].T @ self.y[here]) for here in going_on]
            row[a] = row[a] + x[known].T @ x[known] + unknown.T @ unknown
            blocks.append(row)
            worth = self.best * np.ones(unknown.shape[0])
            sides.append(x[known].T @ self.targets[known] + unknown.T @ worth)
        return _solve(blocks, np.concatenate(sides))


def _solve(blocks: list[list[Any]], right: Vector) -> Matrix:
    """(A + lambda I)^-1 b by action, for dense or sparse blocks of A."""
    k = len(right)
    if issparse(blocks[0][0]):
        matrix = block_array(blocks, format="csc")
        matrix.setdiag(matrix.diagonal() + PENALTY)
        solution = spsolve(matrix, right)
    else:
        solution = np.linalg.solve(np.block(blocks) + PENALTY * np.eye(k), right)
    return np.asarray(solution).reshape(len(blocks), -1)
