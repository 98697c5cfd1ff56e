"""The model of `fitted_rmax` at the vertices of a grid: what the nearest transitions did.

Where actions are numbers, what was learnt of the torque 0.9 says something of 1.0. The numbers of
an action are further dimensions beside those of the state. Before neighbours are averaged, they are
moved to the vertex and its action: states by the least squares of line 3, in which actions are
regressors too, and rewards by a quadratic function of the action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.actions import ActionSet, GridActions
from rblspi.features.multilinear import Grid
from rblspi.offline.kernel_model import (
    RIDGE,
    GridModel,
    Neighbours,
    displacements,
    make_rows,
    tree_of,
)

#: how far apart two actions are that differ by their whole range, in units of the range of states.
#: Most transitions near a vertex are of other actions while there are few, and of its own action
#: when there are many
APART = 0.3

#: Line 4, from where transitions start, places, and the dimensions that go around a circle.
Near: TypeAlias = Callable[[Matrix, Matrix, Mask], Neighbours]


class Seen(NamedTuple):
    """Transitions in units of the range."""

    states: Matrix  #                                   (rows, d)
    after: Matrix  #                                    (rows, d)
    actions: Integers  #                                (rows,)
    rewards: Vector  #                                  (rows,)
    discounts: Vector  # 0 where the episode ended      (rows,)

    @classmethod
    def of(cls, log: Transitions, grid: Grid, discount: float) -> Self:
        """The transitions of a log, in units of the range of a grid."""
        states, after = grid.places(log.observations), grid.places(log.next_observations)
        discounts = np.where(log.terminated, 0.0, log.discounts(discount))
        return cls(states, after, log.actions, log.rewards, discounts)

    def of_action(self, action: int) -> Seen:
        """The transitions of one action."""
        return Seen(*(column[self.actions == action] for column in self))


def grid_model(seen: Seen, grid: Grid, actions: ActionSet, near: Near, hope: float) -> GridModel:
    """Lines 3 to 5 of `fitted_rmax`, in which the unknown is worth a hope."""
    vertices, turning = grid.scaled(grid.points()), grid.turning
    unit_grid = grid._replace(low=np.zeros_like(grid.low), slope=grid.cells).parameters
    if isinstance(actions, GridActions):
        return _joint_model(seen, actions.scaled, vertices, turning, near, hope, unit_grid)
    models = []
    for a in range(actions.count):
        of_a = seen.of_action(a)
        if not len(of_a.actions):
            models.append(GridModel.untried(len(vertices), hope))
            continue
        motion = displacements(of_a.states, of_a.after, vertices, turning)  # line 3
        found = near(of_a.states, vertices, turning)
        models.append(make_rows(found, motion, of_a.rewards, of_a.discounts, hope, unit_grid))
    return GridModel.joined(models)


def allowed_at(log: Transitions, grid: Grid, actions: int) -> Mask:
    """Which actions are allowed at the vertices: those in the nearest state seen, (n, actions)."""
    points, going = grid.points(), ~log.terminated
    if log.next_allowed is None or not going.any():
        return np.ones((len(points), actions), np.bool_)
    tree = tree_of(grid.places(log.next_observations[going]), grid.turning)
    _, rows = tree.query(grid.scaled(points))
    return np.ascontiguousarray(log.next_allowed[going][rows], np.bool_)


def _joint_model(
    seen: Seen,
    numbers: Matrix,
    vertices: Matrix,
    turning: Mask,
    near: Near,
    hope: float,
    grid: Vector,
) -> GridModel:
    """Lines 3 to 5 of `fitted_rmax` for all actions.

    Parameters
    ----------
    seen : Seen
    numbers : ndarray, shape (actions, m)
        Of every action, from 0 to 1.
    vertices : ndarray, shape (n, d)
    turning : ndarray of bool, shape (d,)
        Which dimensions of the states go around a circle.
    near : callable
        Line 4, from transitions, places, and the dimensions that go around a circle.
    hope : float
    grid : ndarray
        It interpolates in units of the range.
    """
    costs = _costs(seen, numbers)
    states = np.column_stack([seen.states, APART * numbers[seen.actions]])
    actions = np.repeat(np.arange(len(numbers)), len(vertices))
    everywhere = np.column_stack([np.tile(vertices, (len(numbers), 1)), APART * numbers[actions]])
    turning = np.append(turning, np.zeros(numbers.shape[1], np.bool_))
    motion = displacements(states, seen.after, everywhere, turning)
    found = near(states, everywhere, turning)
    found = found._replace(unknown=found.unknown * _covered(found.width, numbers[actions], numbers))
    rest = seen.rewards - costs[seen.actions]
    model = make_rows(found, motion, rest, seen.discounts, hope, grid)
    known = found.weights.sum(axis=1)
    return model._replace(rewards=model.rewards + costs[actions] * known / (known + found.unknown))


def _covered(width: Vector, here: Matrix, numbers: Matrix) -> Vector:
    """How many actions a kernel sees: every action was hoped for M times, see `fitted_rmax`.

    With sum_a exp(-d_a^2 / (2 b^2)), d_a the distance to the action a, a hope weighs as much
    against transitions of several actions as against those of one.
    """
    squares = np.square(APART * (here[:, None] - numbers)).sum(axis=2)
    covered: Vector = np.exp(-0.5 * squares / np.square(width)[:, None]).sum(axis=1)
    return covered


def _costs(seen: Seen, numbers: Matrix) -> Vector:
    """What every action adds to rewards: a quadratic function of its numbers, by least squares.

    Beside it there is a linear function of the state.
    """
    quadratic = np.column_stack([numbers, numbers**2])
    x = np.column_stack([seen.states, quadratic[seen.actions]])
    x = x - x.mean(axis=0)
    gram = x.T @ x + RIDGE * np.eye(x.shape[1])
    slopes = np.linalg.solve(gram, x.T @ (seen.rewards - seen.rewards.mean()))
    added: Vector = quadratic @ slopes[-quadratic.shape[1] :]
    return added
