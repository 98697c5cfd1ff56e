"""The model of `fitted_rmax` where actions are numbers: nearness over states and actions together.

What was learnt of the torque 0.9 says something of 1.0. The numbers of an action are further
dimensions beside those of the state. Before neighbours are averaged, they are moved to the vertex
and its action: states by the least squares of line 3, in which actions are regressors too, and
rewards by a quadratic function of the action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.online.kernel_model import RIDGE, GridModel, Neighbours, displacements, make_rows

#: how far apart two actions are that differ by their whole range, in units of the range of states.
#: Most transitions near a vertex are of other actions while there are few, and of its own action
#: when there are many
APART = 0.3


class Seen(NamedTuple):
    """Transitions in units of the range."""

    states: Matrix  #                                   (rows, d)
    after: Matrix  #                                    (rows, d)
    actions: Integers  #                                (rows,)
    rewards: Vector  #                                  (rows,)
    going: Vector  # 0 where the episode ended, else 1  (rows,)


def joint_model(
    seen: Seen,
    numbers: Matrix,
    vertices: Matrix,
    turning: Mask,
    near: Callable[[Matrix, Matrix, Mask], Neighbours],
    hope: float,
    discount: float,
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
    hope, discount : float
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
    model = make_rows(found, motion, rest, seen.going, hope, discount, grid)
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
