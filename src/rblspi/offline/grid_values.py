"""The values of a planner whose states are numbers: an ensemble of models on grids.

Everything that is arbitrary in `grid_model` differs from model to model, so that its effect is part
of the spread: the grid and where its cells begin, the metric, the number of neighbours, the width
of the kernel, and what the unknown is worth: what some logged transition brought. What smaller
cells would change is estimated from how the values depend on the size of the cells.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rblspi.core.types import Array, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.environments.actions import ActionSet
from rblspi.features.multilinear import Grid
from rblspi.offline import ensemble
from rblspi.offline.ensemble import Brought, Member, unmoved
from rblspi.offline.grid_model import Near, Seen, allowed_at, grid_model
from rblspi.offline.kernel_model import WIDTH, GridModel, Neighbours, nearest, values_at
from rblspi.policies.values import Draws

#: error of values, in units of the range that rewards allow
PRECISION = 1e-4
#: vertices along a dimension, relative to those of the grid that is given
VERTICES = (0.8, 1.2)
#: the least and the greatest number of neighbours, around the 8 of `FittedRmax`
NEIGHBOURS = (5, 12)
#: units of the dimensions and of the width of the kernel vary within a factor of e^0.35 = 1.4
JITTER = 0.35


def grid_values(
    log: Transitions, grid: Grid, actions: ActionSet, start: Matrix, discount: float
) -> tuple[Matrix, Draws]:
    """The best policy by an ensemble of models, as values at the vertices of a grid.

    Parameters
    ----------
    log : Transitions
    grid : Grid
    actions : ActionSet
    start : ndarray, shape (actions, n)
        Values at the vertices to start with.
    discount : float

    Returns
    -------
    weights, draws
        The mean, shape (actions, n), and the draws around it.
    """
    rng, precision = np.random.default_rng(0), ensemble.tolerance(log, discount, PRECISION)
    whole = partial(nearest, neighbours=8, size=len(grid.vertices))
    hope = ensemble.usual_value(log, discount)
    allowed = allowed_at(log, grid, actions.count)
    model = grid_model(Seen.of(log, grid, discount), grid, actions, whole, hope)
    start = Member(model, allowed, unmoved, unmoved).best(start, precision)
    after = values_at(grid.coordinates(log.next_observations), grid.parameters, start)
    brought = Brought.of(log, after, discount, rng)
    grids, members = [], []
    for rows in ensemble.halves(log, rng):
        own, near = jittered(grid, rng), _nearness(grid, rng)
        half = Seen.of(log.select(rows), own, discount)
        model = grid_model(half, own, actions, near, float(brought.draw(rng, 1)[0]))
        members.append(_member(model, allowed_at(log, own, actions.count), own, grid))
        grids.append(own)
    found = ensemble.evaluate(members, start, precision)
    common = np.hypot(found.common, _of_cells(found.draws, grids, grid))
    weights: Matrix = found.draws.mean(axis=0)
    return weights, Draws.around(found.draws, brought.std, common)


def jittered(grid: Grid, rng: np.random.Generator) -> Grid:
    """Other cells, that begin elsewhere: the range is up to half a cell longer on either side."""
    d, line = len(grid.vertices), ~grid.turning
    vertices = np.maximum(np.round(grid.vertices * rng.uniform(*VERTICES, d)), 2.0)
    width = grid.cells / grid.slope
    before, after = rng.uniform(0.0, 0.5, (2, d)) * line * width / np.maximum(vertices - 2.0, 1.0)
    made = grid._replace(vertices=vertices, low=grid.low - before)
    return made._replace(slope=made.cells / (width + before + after))


def _nearness(grid: Grid, rng: np.random.Generator) -> Near:
    """What is near in another metric, in which circles and numbers of actions keep their units."""
    size = len(grid.vertices)
    units = np.where(grid.turning, 1.0, np.exp(rng.uniform(-JITTER, JITTER, size)))
    neighbours = int(rng.integers(NEIGHBOURS[0], NEIGHBOURS[1] + 1))
    width = WIDTH * float(np.exp(rng.uniform(-JITTER, JITTER)))

    def near(states: Matrix, places: Matrix, turning: Mask) -> Neighbours:
        scale = np.append(units, np.ones(states.shape[1] - size))
        return nearest(states * scale, places * scale, turning, neighbours, size=size, width=width)

    return near


def _member(model: GridModel, allowed: Mask, own: Grid, grid: Grid) -> Member:
    points, own_points = grid.points(), own.points()

    def outwards(values: Matrix) -> Matrix:
        return values_at(points, own.parameters, values)

    def inwards(values: Matrix) -> Matrix:
        return values_at(own_points, grid.parameters, values)

    return Member(model, allowed, outwards, inwards)


def _of_cells(draws: Array, grids: list[Grid], grid: Grid) -> Vector:
    """What cells of no size would change, by regression on their size, shape (n,).

    The error of interpolation is proportional to the square of the size.
    """
    sizes = np.array([np.mean((one.slope / grid.slope) ** -2.0) for one in grids])
    apart = sizes - sizes.mean()
    slopes = np.einsum("b,ban->an", apart, draws) / (apart @ apart)
    change: Vector = np.abs(slopes * sizes.mean()).mean(axis=0)
    return change
