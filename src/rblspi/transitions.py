"""Logged data: one description of transitions, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Transitions(NamedTuple):
    """Transitions (s, a, r, s') in rows, with whether s' ended the episode for good.

    The constructor takes columns as they are; `from_arrays` checks them.

    Attributes
    ----------
    observations : ndarray, shape (N, ...)
        s: numbers, or vectors, or arrays of any shape.
    actions : ndarray of int64, shape (N,)
        a, counted from 0.
    rewards : ndarray, shape (N,)
    next_observations : ndarray, shape (N, ...)
        s', also where an episode was cut short by a limit of time: there it goes on.
    terminated : ndarray of bool, shape (N,)
        Whether s' is terminal. Its features are then 0, whatever the next observation says.
    """

    observations: NDArray[Any]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    next_observations: NDArray[Any]
    terminated: NDArray[np.bool_]

    @classmethod
    def from_arrays(
        cls,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_observations: ArrayLike,
        terminated: ArrayLike,
    ) -> Self:
        """Make transitions of columns, and check them.

        Raises
        ------
        ValueError, TypeError
            Naming the column, the row and the value.
        """
        checked = cls(
            _numbers("observations", observations),
            _actions("actions", actions),
            _numbers("rewards", rewards).astype(np.float64, copy=False),
            _numbers("next_observations", next_observations),
            _flags("terminated", terminated),
        )
        if checked.size == 0:
            raise ValueError("observations has no rows: at least one transition is needed")
        for name, column in zip(cls._fields, checked, strict=True):
            expected = checked.observations.shape
            if "observations" not in name:
                expected = expected[:1]
            if column.shape != expected:
                raise ValueError(
                    f"{name} has shape {column.shape}, but observations of shape "
                    f"{checked.observations.shape} go with a shape of {expected}"
                )
        return checked

    @property
    def size(self) -> int:
        """N, the number of transitions; ``len`` counts the columns."""
        return len(self.observations)

    def rows(self, start: int, stop: int) -> Transitions:
        """The transitions in rows start to stop, without copying."""
        return Transitions._make(column[start:stop] for column in self)

    def pieces(self, rows: int) -> Iterator[Transitions]:
        """So many rows at a time, without copying."""
        for start in range(0, self.size, rows):
            yield self.rows(start, start + rows)


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} has rows of different shapes") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} of type {array.dtype} must be numbers")
    if array.ndim == 0:
        raise ValueError(f"{name}={array[()]} must have a row for every transition")
    return array


def _numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Finite numbers of any type."""
    array = _column(name, values)
    if array.dtype.kind == "f":
        _require(np.isfinite(array), name, array, "must be finite")
    return array


def _actions(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = _numbers(name, values)
    _require(array >= 0, name, array, "must be 0 or more")
    if array.dtype.kind == "f":  # tables often hold whole numbers as floats
        _require(array == np.floor(array), name, array, "must be a whole number")
    return array.astype(np.int64, copy=False)


def _flags(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    array = _column(name, values)
    if array.dtype.kind != "b":
        _require((array == 0) | (array == 1), name, array, "must be true or false")
    return array.astype(np.bool_, copy=False)


def _require(holds: NDArray[np.bool_], name: str, array: NDArray[Any], what: str) -> None:
    if not holds.all():
        row = int(np.flatnonzero(~holds.reshape(len(holds), -1).all(axis=1))[0])
        raise ValueError(f"{name} in row {row} is {array[row].tolist()}: it {what}")
