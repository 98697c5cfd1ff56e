"""Fitted R-max: plan in what the nearest transitions did, and hope where there are none nearby.

The algorithm of Jong and Stone, here with weights that follow the density of the data, and without
the linear part of the motion in its averages. All distances are in units of the range of what was
seen; in line 3, an angle is its cosine and its sine. Beside its pseudocode:

    1   for every episode, or every few while there are few new transitions:   `PlanningAgent`
    2       the vertices g of a regular grid span all states seen              `_fit_grid`
    3       for every action a: s' - s = B_a s + e, by least squares           `displacements`
    4       for every g and a: the k nearest transitions i of a, at distances d_1 <= ... <= d_k,
            w_i = exp(-d_i^2 / (2 b^2)), b = d_k / 2, and w_0 = M b^dim       `nearest`
    5       Q(g, a) = (sum_i w_i (r_i + gamma V(g + B_a g + e_i)) + w_0 u) / (sum_i w_i + w_0),
            V interpolates max_a Q(g, a) between the vertices                   `make_rows`, `sweep`
    6       for every step: a = argmax_a Q(s, a), Q interpolated between the vertices          `act`

Line 5 moves the vertex as its neighbours moved, so that the averages are over displacements and
not over places. All weights are positive and sum to one: value iteration is a contraction, and can
neither diverge nor exceed what the rewards allow. u is the best value they allow: something good
that was observed M = 1 times, and somewhere; a kernel of the width b sees M b^dim of it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rblspi.core import check
from rblspi.core.progress import say
from rblspi.core.settings import Setting
from rblspi.core.types import Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.actions import GridActions
from rblspi.environments.spaces import input_size
from rblspi.features import BasisLike, Multilinear, as_basis
from rblspi.features.bounds import bounds, circles, components
from rblspi.features.multilinear import Grid
from rblspi.offline.fitted_q import attainable
from rblspi.offline.grid_model import Seen, allowed_at, grid_model
from rblspi.offline.grid_values import grid_values
from rblspi.offline.kernel_model import GridModel, nearest, sweep, values_at
from rblspi.online.agent import Cost
from rblspi.online.planning_agent import PlanningAgent
from rblspi.policies.choice import masked
from rblspi.policies.values import Draws
from rblspi.rollout.memory import NUMBERS, Memory

#: dimensions in which a grid of so many vertices is a grid: a cell has 2^8 corners
MOST_DIMENSIONS = 8
#: standard deviations that the grid spans on either side of the mean where there are angles: a
#: swinging joint may briefly move several times faster than it ever does again
SPAN = 3.0
#: error of planned values, in units of their range
PRECISION = 1e-3
#: a hope beyond all rewards, in units of the range of values: it pays for a way of 1 / (1 - gamma)
#: steps at the greatest cost, because gamma^n u = 1 - gamma^n has u = e - 1 there
FAR = math.e - 1.0


class FittedRmax(PlanningAgent):
    """Explores what it has no data near, and plans with the nearest data everywhere else.

    What an action does in a state is what it did in the nearest eight transitions, moved to that
    state. Where these are far away, their average contains the best value that rewards allow. It
    plans in this model, with values on a grid over what was seen, and acts greedily.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, or its id. Its observations have up to eight numbers, of which the cosine
        and the sine of an angle are one. Where actions are numbers, what is near is told over
        states and actions together, see `rblspi.offline.grid_model`.
    basis : Multilinear, optional
        The grid; its bounds follow what is seen. By default one of about 10,000 vertices, without
        numbers that never change or are linear functions of others in a thousand random steps.
    neighbours : int
        k, the number of transitions behind every estimate.
    best_reward : float, optional
        The most that a step can bring, where it is known before it is seen. The unknown is then
        worth as much as having it for ever.
    optimism : float
        M, how often something that good counts as observed: with more it explores for longer.
    discount, seed
        As for `RBLSPI`; the discount is below 1.

    Notes
    -----
    The hope u is the best value that the rewards seen so far allow, if episodes can end; as long as
    none has ended, it exceeds that by their range. Actions that are numbers often have a cost, and
    the hope then exceeds it by e - 1 times the range: enough to pay for 1 / (1 - gamma) steps. A
    constant added to all rewards of a problem without terminal states, or other units, change no
    action. The best estimate, by which `policy` acts, is the mean of ten models, see
    `rblspi.offline.grid_values`.

    Where all rewards that were seen are costs, and doing nothing is free, nothing seems to be
    better than that, and it no longer explores: give ``best_reward``.

    It suits observations of up to four numbers that move little in a step. In more dimensions the
    grid is coarse, and `OptimisticLSVI` with random features is better.

    Around the circle of an angle, the grid has no end: neighbours are near across it, and a motion
    takes the shorter way. Two neighbouring components that lie on the unit circle in a thousand
    random steps are the cosine and the sine of one angle, and one of the numbers. Where there are
    angles, the grid spans only three standard deviations of the other numbers.

    References
    ----------
    N. K. Jong and P. Stone (2007). Model-based function approximation in reinforcement learning.
    AAMAS.

    D. Ormoneit and S. Sen (2002). Kernel-based reinforcement learning. Machine Learning 49.
    """

    basis: Multilinear
    least_growth = 0.05  # a plan takes as long as thousands of steps
    most_remembered = NUMBERS  # all that there is room for

    neighbours = Setting(8, check.count)
    best_reward = Setting[float | None](None, check.finite)
    optimism = Setting(1.0, check.not_negative)
    discount = Setting(0.99, check.discount_of_plans)

    def _recipe(self, given: BasisLike | None) -> BasisLike:
        numbers = input_size(self.env.observation_space)
        self._require_few(numbers / 2, numbers)  # as if all were cosines and sines
        basis = Multilinear(None, left_out=None) if given is None else as_basis(given)
        if not isinstance(basis, Multilinear):
            raise TypeError(f"FittedRmax has values on a grid, Multilinear(10), not on {basis}")
        return basis

    def _require_few(self, least: float, numbers: int) -> None:
        if least > MOST_DIMENSIONS:
            raise ValueError(
                f"FittedRmax plans on a grid over at most {MOST_DIMENSIONS} numbers, and the "
                f"observations in {self.env.observation_space} have {numbers}: use OptimisticLSVI"
            )

    def _require_memory(self) -> None:
        """There is no posterior; `Multilinear` itself refuses too many vertices."""
        dimensions = len(self._grid.kinds)
        self._require_few(dimensions, dimensions)

    def _initial_state(self) -> Any:
        if self.basis.vertices is None:  # a file has the number itself
            self._say_what_is_left_out()
            self.basis = replace(self.basis, vertices=int(self._grid.vertices[0]))
        state = super()._initial_state()
        state.weights[...] = 0.0
        return state

    def _say_what_is_left_out(self) -> None:
        if self.basis.left_out:
            say(
                f"numbers {list(self.basis.left_out)} of the observation are left out: in a "
                "thousand random steps they did not change, or were linear functions of others. "
                "basis=Multilinear(None) keeps them"
            )

    def _steps_to_plan(self) -> int:
        return min(super()._steps_to_plan(), self.session.memory.room)

    def _plan(self) -> None:
        memory = self.session.memory
        if not memory.room:
            memory.retain(self._spread_out(memory.kept()))
        super()._plan()

    def _spread_out(self, memory: Memory) -> Mask:
        """Half of the transitions: of every cell of the grid and action, up to the same number.

        Which of them is random. A uniform sample would forget what was tried once, to try it again.
        """
        cells = np.floor(self._grid.places(memory.observations) * self._grid.cells)
        rows = np.column_stack([cells, memory.actions])
        _, places, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        shuffled = self.rng.permutation(memory.size)
        by_place = shuffled[np.argsort(places[shuffled], kind="stable")]
        number = np.empty(memory.size, np.int64)  # among those of the same place
        number[by_place] = np.arange(memory.size) - np.repeat(np.cumsum(counts) - counts, counts)
        kept = np.zeros(memory.size, np.bool_)
        half = (memory.size + 1) // 2
        kept[shuffled[np.argsort(number[shuffled], kind="stable")][:half]] = True
        return kept

    def _value_function(self, log: Transitions, explore: bool) -> Matrix:
        return self._solve(log, self._fit_grid(log, self._last_plan), self._hope(log))

    def _solve(self, log: Transitions, start: Matrix, hope: float) -> Matrix:
        """Lines 3 to 5: values by action at the vertices, where the unknown is worth a hope."""
        allowed = allowed_at(log, self._grid, self.actions)
        low, high = attainable([log], self.discount)
        precision = PRECISION * (1.0 - self.discount) * max(high - low, hope - low, high - hope)
        values, q = masked(start.T, allowed).max(axis=1), np.empty_like(start)
        sweep(self._model(log, hope), allowed, values, q, precision)
        return q

    def _model(self, log: Transitions, hope: float) -> GridModel:
        seen, size = Seen.of(log, self._grid, self.discount), len(self._grid.vertices)
        line_4 = partial(nearest, neighbours=self.neighbours, optimism=self.optimism, size=size)
        return grid_model(seen, self._grid, self.action_set, line_4, hope)

    def _estimate(self, log: Transitions) -> tuple[Matrix, Draws]:
        return grid_values(log, self._grid, self.action_set, self._last_plan, self.discount)

    def _fit_grid(self, log: Transitions, weights: Matrix) -> Matrix:
        """Line 2: span what is remembered; returns the weights of the same functions there."""
        seen = np.concatenate([log.observations, log.next_observations])
        low, high = _range(seen.reshape(len(seen), -1), tails=not self._grid.turning.any())
        angles, space = components(self.basis.angles), self.env.observation_space
        whole = bounds(space, self.basis.low, self.basis.high, angles)  # circles stay as they are
        turning = circles(*whole, angles)
        low, high = (np.where(turning, *both) for both in zip(whole, (low, high), strict=True))
        before = self.features
        self.basis = replace(self.basis, low=low.tolist(), high=high.tolist())
        self.features = self.basis.build(space)
        self.session.see_through(self.features)
        return values_at(self._grid.points(), Grid.of(before).parameters, weights)

    @property
    def _grid(self) -> Grid:
        return Grid.of(self.features)

    def _hope(self, log: Transitions) -> float:
        """u, the best that could be."""
        if self.best_reward is not None:
            return self.best_reward / (1.0 - self.discount)
        low, high = attainable([log], self.discount)
        if log.terminated.any():
            return high
        beyond = high - low
        if beyond <= 1e-9 * abs(high):  # all rewards are the same, but for rounding
            beyond = abs(float(log.rewards.mean())) or 1.0
        return high + (FAR if isinstance(self.action_set, GridActions) else 1.0) * beyond

    def cost(self) -> Cost:
        """About what learning takes, if there are a hundred plans in 50,000 steps."""
        entries = self.actions * self.features.size * 2 ** (len(self._grid.kinds) + 1)
        seconds = 100 * 1e-9 * entries * math.log(PRECISION) / math.log(self.discount or 0.01)
        usual = super().cost()
        memory = usual.megabytes + 12e-6 * self.neighbours * entries / 2
        coarser = max(int(self._grid.vertices[0]) // 2, 2)
        advice = f"a coarser grid makes it less (--algo fitted-rmax --basis multilinear:{coarser})"
        return usual._replace(megabytes=memory, seconds_a_step=seconds / 50_000, advice=advice)


def _range(seen: Matrix, tails: bool) -> tuple[Vector, Vector]:
    """Bounds of what was seen, or without its tails, of what is within `SPAN` of the mean."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    if not tails:
        middle, reach = seen.mean(axis=0), SPAN * seen.std(axis=0)
        low, high = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
    still = ~(low + 1e-9 * np.abs(low) < high)  # a dimension of zero width cannot be scaled
    return np.where(still, low - 0.5, low), np.where(still, high + 0.5, high)
