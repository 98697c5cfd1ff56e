"""The action set of a problem: what agents count from 0, and what an environment takes.

Inside, agents and estimators work with indices 0, 1, ..., count - 1. This is the one place that
translates them. In a `Discrete` space an index is the action itself, counted from ``start``. In a
`Box` of one to three numbers, indices are the points of a grid between its bounds, and the best
action may lie between them: where the action values are known at the points of the grid, a
parabola through the best point and its neighbours along every number has its maximum there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.environments.spaces import is_unbounded

#: points along every number of an action, by how many numbers it has
POINTS = {1: 5, 2: 3, 3: 3}
#: share of the range by which an action may be out of bounds, as rounding to float32 does
_ROUNDING = 1e-6


class ActionSet(ABC):
    """The actions of a problem, by index and as the environment takes them."""

    #: the number of indices
    count: int
    #: whether there are actions between those with an index
    has_between: ClassVar[bool] = False

    @abstractmethod
    def action(self, index: int) -> Any:
        """The action of an index, as the environment takes it."""

    @abstractmethod
    def actions(self, indices: Integers) -> NDArray[Any]:
        """Actions as a vector environment takes them, a row for every index."""

    @abstractmethod
    def index(self, action: Any) -> int:
        """The index of an action, or of the nearest one.

        Raises
        ------
        ValueError
            If the action is out of bounds; the message has its value.
        """

    @abstractmethod
    def sample(self, allowed: NDArray[np.int8] | None = None) -> Any:
        """An allowed action that has an index, by the random numbers of the space."""

    def single(self, actions: NDArray[Any]) -> Any:
        """The only one of an array of actions, as the environment takes it."""
        return actions[0]

    @property
    def listed(self) -> list[Any]:
        """All actions that have an index, as plain data: a number each, or a tuple of numbers."""
        rows = self.actions(np.arange(self.count)).reshape(self.count, -1).tolist()
        return [row[0] if len(row) == 1 else tuple(row) for row in rows]

    def best(self, chosen: Integers, values: Matrix, allowed: Any = None) -> NDArray[Any]:
        """The best actions, near the best of those that have an index.

        Parameters
        ----------
        chosen : ndarray of int, shape (N,)
            The best index in every state.
        values : ndarray, shape (N, count)
            What every action is worth.
        allowed : array_like of bool, shape (N, count), optional
        """
        return self.actions(chosen)


class DiscreteActions(ActionSet):
    """The whole numbers of a Discrete space."""

    def __init__(self, space: Discrete) -> None:
        self.space = space
        self.start = int(space.start)
        self.count = int(space.n)

    def action(self, index: int) -> int:
        """The whole number."""
        return int(index) + self.start

    def actions(self, indices: Integers) -> Integers:
        """Whole numbers."""
        return np.asarray(indices) + self.start

    def sample(self, allowed: NDArray[np.int8] | None = None) -> int:
        """As the space draws it."""
        return self.space.sample(allowed)  # type: ignore[return-value]

    def single(self, actions: NDArray[Any]) -> int:
        """The only one, as a number of Python's."""
        return int(actions[0])

    def index(self, action: Any) -> int:
        """How far the whole number is from the first one."""
        return int(action) - self.start


class Neighbours(NamedTuple):
    """The next points below and above along every number, each of shape (count, numbers)."""

    below: Integers  # the index of the next point, at a bound of the point itself
    above: Integers
    h1: Matrix  # the distance to the point below, 1 where there is none
    h2: Matrix
    inner: Mask  # whether there are both


class GridActions(ActionSet):
    """The points of a grid in a Box of one to three numbers.

    Parameters
    ----------
    space : gymnasium.spaces.Box
        Its numbers have bounds.
    axes : sequence of sequences of float, optional
        Increasing points along each number. By default `POINTS` of them, evenly spaced.
    """

    has_between = True

    def __init__(self, space: Box, axes: Sequence[Sequence[float]] = ()) -> None:
        _require_few_bounded_numbers(space)
        low, high = _bounds(space)
        evenly = [np.linspace(*both, POINTS[len(low)]) for both in zip(low, high, strict=True)]
        self.axes = [np.asarray(axis, np.float64) for axis in axes] or evenly
        if len(self.axes) != len(low) or not all(len(a) and _increases(a) for a in self.axes):
            raise ValueError(
                f"axes={axes!r} must have increasing points along each of the {len(low)} numbers"
            )
        self.space, self.low, self.high = space, low, high
        self.sizes = tuple(map(len, self.axes))
        self.count = math.prod(self.sizes)

    @cached_property
    def points(self) -> Matrix:
        """The action of every index, shape (count, numbers)."""
        return np.stack([a.ravel() for a in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @property
    def scaled(self) -> Matrix:
        """The points in units of the range, shape (count, numbers)."""
        scaled: Matrix = (self.points - self.low) / (self.high - self.low)
        return scaled

    def action(self, index: int) -> NDArray[Any]:
        """The point, in the shape of the space."""
        return self._shaped(self.points[index], ())

    def actions(self, indices: Integers) -> NDArray[Any]:
        """The points, in the shape of the space."""
        return self._shaped(self.points[indices], np.shape(indices))

    def index(self, action: Any) -> int:
        """The index of the nearest point."""
        numbers = np.asarray(action, np.float64).ravel()
        reach = _ROUNDING * (self.high - self.low)
        inside = (self.low - reach <= numbers) & (numbers <= self.high + reach)
        if numbers.shape != self.low.shape or not inside.all():
            raise ValueError(
                f"action {np.asarray(action).tolist()} is out of bounds: it is not in {self.space}"
            )
        places = [int(np.abs(a - x).argmin()) for a, x in zip(self.axes, numbers, strict=True)]
        return int(np.ravel_multi_index(places, self.sizes))

    def sample(self, allowed: NDArray[np.int8] | None = None) -> NDArray[Any]:
        """One of the points."""
        indices = np.arange(self.count) if allowed is None else np.flatnonzero(allowed)
        return self.action(self.space.np_random.choice(indices))

    @cached_property
    def neighbours(self) -> Neighbours:
        """Of every point."""
        places = np.stack(np.unravel_index(np.arange(self.count), self.sizes), axis=1)
        moved = np.stack([places - 1, np.minimum(places + 1, np.array(self.sizes) - 1)])
        rows = np.broadcast_to(places[:, None], (self.count, len(self.sizes), len(self.sizes)))
        below, above = (self._moved(rows.copy(), step) for step in moved.clip(0))
        numbers = np.arange(len(self.sizes))
        h1 = self.points - self.points[below, numbers]
        h2 = self.points[above, numbers] - self.points
        inner = (h1 > 0.0) & (h2 > 0.0)
        return Neighbours(below, above, np.where(inner, h1, 1.0), np.where(inner, h2, 1.0), inner)

    def _moved(self, places: Integers, to: Integers) -> Integers:
        """Indices of the points whose place along each number, in turn, is another one."""
        numbers = np.arange(len(self.sizes))
        places[:, numbers, numbers] = to
        indices: Integers = np.ravel_multi_index(tuple(np.moveaxis(places, 2, 0)), self.sizes)
        return indices

    def best(self, chosen: Integers, values: Matrix, allowed: Any = None) -> NDArray[Any]:
        """The maximum of parabolas through the best point and its neighbours.

        With the slopes s1 and s2 of the values towards the neighbours at the distances h1 and h2,
        it is (h2 s1 + h1 s2) / (s1 - s2) / 2 beside the point. At a bound, and beside an action
        that is not allowed, it is the point.
        """
        chosen, rows = np.asarray(chosen), np.arange(len(chosen))[:, None]
        below, above, h1, h2, inner = (table[chosen] for table in self.neighbours)
        if allowed is not None:
            inner &= (allowed[rows, below] > 0) & (allowed[rows, above] > 0)
        middle = values[rows, chosen[:, None]]
        s1 = (middle - values[rows, below]) / h1
        s2 = (values[rows, above] - middle) / h2
        inner &= s1 > s2
        beside = 0.5 * (h2 * s1 + h1 * s2) / np.where(inner, s1 - s2, 1.0)
        return self._shaped(self.points[chosen] + np.where(inner, beside, 0.0), (len(chosen),))

    def _shaped(self, numbers: Array, rows: tuple[int, ...]) -> NDArray[Any]:
        shape = (*rows, *self.space.shape)
        inside = np.clip(numbers, self.low, self.high)  # rounding may lead out
        return inside.reshape(shape).astype(self.space.dtype)


def action_set(space: gym.Space[Any], axes: Sequence[Sequence[float]] = ()) -> ActionSet:
    """The action set of an action space.

    Raises
    ------
    TypeError
        If the space is neither Discrete nor a Box of a few bounded numbers. The message says how
        to make it one.
    """
    if isinstance(space, Discrete):
        return DiscreteActions(space)
    if isinstance(space, Box):
        return GridActions(space, axes)
    raise TypeError(
        f"action space {space} is neither Discrete nor a Box of one to three numbers: wrap the "
        "environment so that it offers one of these, such as a Discrete space of all combinations"
    )


def _require_few_bounded_numbers(space: Box) -> None:
    numbers = math.prod(space.shape)
    low, high = _bounds(space)
    if not np.issubdtype(space.dtype, np.floating):
        raise TypeError(
            f"action space {space} has whole numbers: offer them as a Discrete space, by a "
            "gymnasium.ActionWrapper that makes an action of an index"
        )
    if numbers not in POINTS:
        raise TypeError(
            f"action space {space} has {numbers} numbers, and three points along each are "
            f"{3**numbers:,} actions to compare in every state: up to three numbers will do. "
            "Offer a few good combinations instead, by a gymnasium.ActionWrapper with a Discrete "
            "space"
        )
    if is_unbounded(low, high).any():
        raise TypeError(
            f"action space {space} has no bounds: give it some, with "
            f"gymnasium.wrappers.TransformAction(env, lambda a: a, Box(-1, 1, {space.shape}))"
        )
    if not (low < high).all():
        raise TypeError(f"action space {space} has a number with nothing to choose: leave it out")


def _bounds(space: Box) -> tuple[Vector, Vector]:
    return space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()


def _increases(axis: Vector) -> bool:
    return bool(np.isfinite(axis).all() and (np.diff(axis) > 0.0).all())
