"""Lines 3 to 5 of Fitted R-max by loops over vertices, actions and transitions."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

RIDGE = 0.01


class Axis(NamedTuple):
    """A dimension of the grid, on a line or around a circle."""

    low: float
    high: float
    vertices: int
    circle: bool = False

    def places(self):
        return np.linspace(self.low, self.high, self.vertices, endpoint=not self.circle)

    def hat(self, place, vertex):
        """The share of a vertex in a place."""
        cells = self.vertices if self.circle else self.vertices - 1
        if not self.circle:
            place = min(max(place, self.low), self.high)
        away = abs(self.difference(place, vertex))
        return max(0.0, 1.0 - away * cells / (self.high - self.low))

    def difference(self, one, other):
        """One less the other, the shorter way around a circle."""
        turn = self.high - self.low
        found = one - other
        while self.circle and found > turn / 2:
            found -= turn
        while self.circle and found < -turn / 2:
            found += turn
        return found

    def regressors(self, place):
        """What the linear part of motion depends on."""
        turns = place / (self.high - self.low)
        ring = [math.cos(math.tau * turns) / math.tau, math.sin(math.tau * turns) / math.tau]
        return ring if self.circle else [turns]


def vertices_of(grid):
    """All vertices of a grid, the last dimension varying fastest."""
    return np.array(list(product(*(axis.places() for axis in grid))))


def interpolated(values, grid, point):
    """The value at a point: a product of hat functions around every vertex."""
    total = 0.0
    for value, vertex in zip(values, vertices_of(grid), strict=True):
        total += value * math.prod(
            axis.hat(*both) for axis, *both in zip(grid, point, vertex, strict=True)
        )
    return float(total)


def differences(grid, one, other):
    """One point less another, in units of the ranges."""
    return np.array(
        [
            axis.difference(*both) / (axis.high - axis.low)
            for axis, *both in zip(grid, one, other, strict=True)
        ]
    )


def regressors(grid, point):
    """What the linear part of motion depends on, in all dimensions."""
    parts = (axis.regressors(place) for axis, place in zip(grid, point, strict=True))
    return np.array([number for part in parts for number in part])


def backup(log, grid, values, hope, discount, neighbours, actions):
    """Q at all vertices, shape (actions, n), from values at all vertices."""
    scale = np.array([axis.high - axis.low for axis in grid])
    q = np.full((actions, len(values)), hope)
    for a in range(actions):
        rows = [i for i in range(log.size) if log.actions[i] == a]
        if not rows:
            continue
        states = [log.observations[i] for i in rows]
        moves = [differences(grid, log.next_observations[i], log.observations[i]) for i in rows]
        inputs = [regressors(grid, s) for s in states]
        middle, mean = np.mean(inputs, axis=0), np.mean(moves, axis=0)
        gram, right = RIDGE * np.eye(len(middle)), np.zeros((len(middle), len(mean)))
        for x, move in zip(inputs, moves, strict=True):
            gram += np.outer(x - middle, x - middle)
            right += np.outer(x - middle, move - mean)
        slope = np.linalg.inv(gram) @ right
        for place, g in enumerate(vertices_of(grid)):
            distances = [float(np.linalg.norm(differences(grid, s, g))) for s in states]
            near = np.argsort(distances, kind="stable")[:neighbours]
            b = max(distances[near[-1]] / 2, 1e-9)
            weight = b ** len(grid)
            total, mass = weight * hope, weight
            for j in near:
                weight = np.exp(-(distances[j] ** 2) / (2 * b**2))
                ahead = 0.0
                if not log.terminated[rows[j]]:
                    rest = moves[j] - mean - (inputs[j] - middle) @ slope
                    move = mean + (regressors(grid, g) - middle) @ slope + rest
                    ahead = interpolated(values, grid, g + move * scale)
                total += weight * (log.rewards[rows[j]] + discount * ahead)
                mass += weight
            q[a, place] = total / mass
    return q
