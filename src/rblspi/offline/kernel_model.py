"""A model of the dynamics by averages over the nearest transitions, at the vertices of a grid.

Lines 3 to 5 of `rblspi.online.fitted_rmax`, whose pseudocode these functions refer to: how a state
moves, which transitions tell about it, and value iteration. States are in units of the range of
what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from rblspi.core.compiled import jit
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.features.primitives import interpolate

#: penalty of the slopes of displacements: a few transitions close together tell of none
RIDGE = 0.01
#: b, in units of the distance of the k-th neighbour
WIDTH = 0.5
#: the largest number of sweeps; with a discount of 0.99, a thousand are precise to 4e-5
MOST_SWEEPS = 1000


class Motion(NamedTuple):
    """How the transitions of one action move a state, in units of the range."""

    base: Matrix  # g + B g of every vertex    (n, d)
    rest: Matrix  # e of every transition      (rows, d)


class Neighbours(NamedTuple):
    """Line 4 for one action: the transitions near every vertex."""

    places: Integers  # of the transitions     (n, k)
    weights: Matrix  # w_i                     (n, k)
    unknown: Vector  # w_0                     (n,)
    width: Vector  # b                         (n,)


class GridModel(NamedTuple):
    """Line 5 without V: sparse rows, one for every vertex and action."""

    starts: Integers  # of the rows in what follows  (actions n + 1,)
    next: NDArray[np.int32]  # vertices              (entries,)
    shares: Vector  # gamma times their probability  (entries,)
    rewards: Vector  # mean of r and of the hope     (actions n,)

    @classmethod
    def untried(cls, vertices: int, hope: float) -> Self:
        """Of an action that was never tried."""
        starts, means = np.zeros(vertices + 1, np.int64), np.full(vertices, hope)
        return cls(starts, np.empty(0, np.int32), np.empty(0), means)

    @classmethod
    def joined(cls, models: Sequence[Self]) -> Self:
        """One of all actions from those of each."""
        firsts = np.cumsum([0, *(len(model.next) for model in models)])
        starts = [model.starts[:-1] + first for model, first in zip(models, firsts, strict=False)]
        others = (np.concatenate(parts) for parts in zip(*(m[1:] for m in models), strict=True))
        return cls(np.concatenate([*starts, firsts[-1:]]), *others)


def displacements(states: Matrix, after: Matrix, vertices: Matrix, turning: Mask) -> Motion:
    """Line 3, and where it takes the vertices; a small ridge for directions without data.

    Of an angle, s' - s is the shorter way around the circle, and s is its cosine and its sine.
    Where actions are numbers, they are further columns of the states and of the vertices.
    """
    size = after.shape[1]
    x, moves = _embedded(states, turning), after - states[:, :size]
    around = turning[:size]
    moves[:, around] -= np.round(moves[:, around])
    middle = x.mean(axis=0)
    centred = x - middle
    mean = moves.mean(axis=0)
    gram = centred.T @ centred + RIDGE * np.eye(len(middle))
    slope = np.linalg.solve(gram, centred.T @ (moves - mean))
    base = vertices[:, :size] + mean + (_embedded(vertices, turning) - middle) @ slope
    return Motion(base, moves - mean - centred @ slope)


def _embedded(points: Matrix, turning: Mask) -> Matrix:
    """The points, with two numbers for every angle: a circle whose circumference is 1."""
    if not turning.any():
        return points
    turn = 2.0 * np.pi
    waves = [wave(turn * points[:, turning]) / turn for wave in (np.cos, np.sin)]
    return np.concatenate([points[:, ~turning], *waves], axis=1)


def nearest(
    states: Matrix,
    vertices: Matrix,
    turning: Mask,
    neighbours: int,
    optimism: float = 1.0,
    size: int | None = None,
    width: float = WIDTH,
) -> Neighbours:
    """Line 4 for the transitions of one action; the states are the first so many columns.

    ``width`` is b in units of d_k.
    """
    count = min(neighbours, len(states))
    distances, places = tree_of(states, turning).query(vertices, k=np.arange(1, count + 1))
    reach = np.maximum(width * distances[:, -1], 1e-9)
    weights = np.exp(-0.5 * np.square(distances / reach[:, None]))
    unknown = optimism * reach ** (vertices.shape[1] if size is None else size)
    return Neighbours(places.astype(np.int64), weights, unknown, reach)


@jit
def make_rows(
    near: Neighbours,
    motion: Motion,
    rewards: Vector,
    discounts: Vector,
    hope: float,
    grid: Vector,
) -> GridModel:
    """Line 5 for one action, at every vertex; a row has every next vertex once at most."""
    n, dimensions = motion.base.shape
    corners = 2**dimensions
    most = near.places.shape[1] * corners
    starts, means = np.zeros(n + 1, np.int64), np.empty(n)
    next_vertices, shares = np.empty(n * most, np.int32), np.empty(n * most)
    entry_of = np.full(n, -1)  # of a next vertex in the present row
    places, parts, point = np.empty(corners, np.int64), np.empty(corners), np.empty(dimensions)
    for g in range(n):
        first = stop = starts[g]
        total = near.unknown[g] + near.weights[g].sum()
        reward = near.unknown[g] * hope
        for m in range(near.places.shape[1]):
            i, weight = near.places[g, m], near.weights[g, m]
            reward += weight * rewards[i]
            if discounts[i] == 0.0:
                continue
            for d in range(dimensions):
                point[d] = motion.base[g, d] + motion.rest[i, d]
            interpolate(grid, point, places, parts)
            for c in range(corners):
                vertex = places[c]
                if entry_of[vertex] < 0:
                    entry_of[vertex], shares[stop], next_vertices[stop] = stop, 0.0, vertex
                    stop += 1
                shares[entry_of[vertex]] += discounts[i] * weight * parts[c] / total
        for entry in range(first, stop):
            entry_of[next_vertices[entry]] = -1
        starts[g + 1], means[g] = stop, reward / total
    used = starts[n]
    return GridModel(starts, next_vertices[:used].copy(), shares[:used].copy(), means)


@jit
def values_at(points: Matrix, grid: Vector, weights: Matrix) -> Matrix:
    """Values by action at some points, from those at the vertices: shape (actions, points)."""
    corners, out = 2 ** points.shape[1], np.zeros((len(weights), len(points)))
    places, shares = np.empty(corners, np.int64), np.empty(corners)
    for i in range(len(points)):
        interpolate(grid, points[i], places, shares)
        for c in range(corners):
            for a in range(len(weights)):
                out[a, i] += shares[c] * weights[a, places[c]]
    return out


@jit
def sweep(model: GridModel, allowed: Mask, values: Vector, q: Matrix, precision: float) -> None:
    """Iterate line 5 in place, forth and back, until no value changes by more than a precision."""
    actions, n = q.shape
    for count in range(MOST_SWEEPS):
        change = 0.0
        for step in range(n):
            g = step if count % 2 == 0 else n - 1 - step
            best = -np.inf
            for a in range(actions):
                row = a * n + g
                value = model.rewards[row]
                for i in range(model.starts[row], model.starts[row + 1]):
                    value += model.shares[i] * values[model.next[i]]
                q[a, g] = value
                if allowed[g, a]:
                    best = max(best, value)
            change = max(change, abs(best - values[g]))
            values[g] = best
        if change <= precision:
            break


def tree_of(points: Matrix, turning: Mask) -> cKDTree:
    """The nearest of points in units of the range, the shorter way around circles."""
    return cKDTree(points, boxsize=turning.astype(np.float64) if turning.any() else None)
