"""Lines 3 to 5 of Fitted R-max by loops over vertices, actions and transitions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

RIDGE = 0.01


def vertices_of(low: Any, high: Any, counts: Any) -> Any:
    """All vertices of a grid, the last dimension varying fastest."""
    lines = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts, strict=True)]
    return np.array(list(product(*lines)))


def interpolated(values: Any, low: Any, high: Any, counts: Any, point: Any) -> float:
    """The value at a point: a product of hat functions around every vertex."""
    clipped = np.clip(point, low, high)
    total = 0.0
    for value, vertex in zip(values, vertices_of(low, high, counts), strict=True):
        spacing = (np.array(high) - low) / (np.array(counts) - 1)
        total += value * np.prod(np.maximum(0.0, 1.0 - np.abs(clipped - vertex) / spacing))
    return float(total)


def backup(
    log: Any,
    grid: tuple[Any, Any, Any],
    values: Any,
    hope: float,
    discount: float,
    neighbours: int,
    actions: int,
) -> Any:
    """Q at all vertices, shape (actions, n), from values at all vertices."""
    low, high, counts = (np.array(numbers) for numbers in grid)
    scale = high - low
    q = np.full((actions, len(values)), hope)
    for a in range(actions):
        rows = [i for i in range(log.size) if log.actions[i] == a]
        if not rows:
            continue
        states = [log.observations[i] / scale for i in rows]
        moves = [(log.next_observations[i] - log.observations[i]) / scale for i in rows]
        middle, mean = np.mean(states, axis=0), np.mean(moves, axis=0)
        gram, right = RIDGE * np.eye(len(low)), np.zeros((len(low), len(low)))
        for s, move in zip(states, moves, strict=True):
            gram += np.outer(s - middle, s - middle)
            right += np.outer(s - middle, move - mean)
        slope = np.linalg.inv(gram) @ right
        for place, vertex in enumerate(vertices_of(low, high, counts)):
            g = vertex / scale
            distances = [float(np.linalg.norm(s - g)) for s in states]
            near = np.argsort(distances, kind="stable")[:neighbours]
            b = max(distances[near[-1]] / 2, 1e-9)
            weight = b ** len(low)
            total, mass = weight * hope, weight
            for j in near:
                weight = np.exp(-(distances[j] ** 2) / (2 * b**2))
                ahead = 0.0
                if not log.terminated[rows[j]]:
                    rest = moves[j] - mean - (states[j] - middle) @ slope
                    moved = g + mean + (g - middle) @ slope + rest
                    ahead = interpolated(values, low, high, counts, moved * scale)
                total += weight * (log.rewards[rows[j]] + discount * ahead)
                mass += weight
            q[a, place] = total / mass
    return q
