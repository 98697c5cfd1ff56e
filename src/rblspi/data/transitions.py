"""Logged transitions in columns, the one form in which all data reach the estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Array, Integers, Mask, Vector

#: the kinds of numbers in a column, as letters of NumPy; other columns have any of "biuf"
_KINDS = {"actions": "iu", "terminated": "b", "truncated": "b", "next_allowed": "b"}

#: transitions in a segment of a long episode
SEGMENT = 100


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transitions (s, a, r, s') in rows, in the order in which they happened.

    The constructor takes the columns as they are; `from_arrays` converts and checks them. Where
    s' is terminal, its features are 0, whatever the next observation is.

    Two columns are optional. ``next_allowed`` says which actions are allowed in the next state;
    without it, all are. ``elapsed`` says that transitions take different times, as in a semi-Markov
    decision problem: the time tau > 0 from s to s', in units of the time over which the discount
    gamma applies once. What comes after a transition is discounted by gamma^tau, and its reward is
    not discounted: Q(s, a) = E[r + gamma^tau Q(s', a')]. Without it, every transition takes 1. For
    a terminal s', neither column matters.
    """

    observations: NDArray[Any]  # s: a number, a vector or an array in each row, (N, ...)
    actions: Integers  # a, counted from 0, (N,)
    rewards: Array  # (N,)
    next_observations: NDArray[Any]  # s', also where a time limit cut the episode short, (N, ...)
    terminated: Mask  # whether s' is terminal, (N,)
    truncated: Mask  # whether the episode was cut short after this, e.g. by a time limit, (N,)
    next_allowed: Mask | None = None  # which actions are allowed in s', (N, actions)
    elapsed: Vector | None = None  # tau, (N,)

    @classmethod
    def from_arrays(
        cls,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_observations: ArrayLike,
        terminated: ArrayLike,
        truncated: ArrayLike | None = None,
        next_allowed: ArrayLike | None = None,
        elapsed: ArrayLike | None = None,
    ) -> Self:
        """Convert columns to transitions and check every value.

        If ``truncated`` is not given, it is inferred: an episode was cut short wherever the next
        row does not continue it, that is, where its observation is not this row's next one. Errors
        name the column, the row and the value.
        """
        taken = _actions("actions", actions)
        checked = cls(
            _numbers("observations", observations),
            taken,
            _numbers("rewards", rewards).astype(np.float64, copy=False),
            _numbers("next_observations", next_observations),
            _flags("terminated", terminated),
            _flags("truncated", np.zeros(len(taken), np.bool_) if truncated is None else truncated),
            None if next_allowed is None else _flags("next_allowed", next_allowed),
            None if elapsed is None else _durations("elapsed", elapsed),
        )
        checked.require_shapes()
        return checked.with_inferred_truncation() if truncated is None else checked

    @property
    def size(self) -> int:
        """N, the number of transitions."""
        return len(self.observations)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, without those that are None."""
        every = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: column for name, column in every if column is not None}

    def select(self, rows: Any) -> Transitions:
        """The transitions of these rows: a slice, a mask, or their numbers."""
        return Transitions(**{name: column[rows] for name, column in self.columns().items()})

    def rows(self, start: int, stop: int) -> Transitions:
        """The transitions from row ``start`` to before row ``stop``, without copying."""
        return self.select(slice(start, stop))

    def batches(self, rows: int) -> Iterator[Transitions]:
        """Yield batches of this many rows, without copying."""
        for start in range(0, self.size, rows):
            yield self.rows(start, start + rows)

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """The same transitions, with observations of another shape."""
        observations, after = (
            column.reshape(-1, *shape) for column in (self.observations, self.next_observations)
        )
        return replace(self, observations=observations, next_observations=after)

    def with_inferred_truncation(self) -> Self:
        """The same transitions, also cut short where the next row does not continue the episode."""
        differ = self.next_observations[:-1] != self.observations[1:]
        truncated = self.truncated.copy()
        truncated[:-1] |= differ.any(axis=tuple(range(1, differ.ndim))) & ~self.terminated[:-1]
        return replace(self, truncated=truncated)

    def require_shapes(self) -> None:
        """Raise a ValueError if the shapes of the columns do not match."""
        if self.size == 0:
            raise ValueError("observations has no rows: at least one transition is needed")
        for name, column in self.columns().items():
            expected = self.observations.shape
            if name == "next_allowed":
                expected = (self.size, *column.shape[1:2])
            elif "observations" not in name:
                expected = expected[:1]
            if column.shape != expected:
                raise ValueError(
                    f"{name} has shape {column.shape}, but observations of shape "
                    f"{self.observations.shape} go with a shape of {expected}"
                )

    def conformed(self) -> Transitions:
        """These transitions, with columns of the right types and shapes.

        Values are checked only if columns have to be converted. This is for transitions that come
        straight from the constructor.
        """
        if all(
            isinstance(column, np.ndarray) and column.dtype.kind in _KINDS.get(name, "biuf")
            for name, column in self.columns().items()
        ):
            self.require_shapes()
            return self
        return self.checked()

    def checked(self) -> Transitions:
        """These transitions, with every value checked."""
        return Transitions.from_arrays(**self.columns())

    def starts(self, before: Transitions | None = None) -> Mask:
        """In which rows an episode starts.

        The last episode of the preceding chunk, ``before``, may continue in this one. Without it
        the first row counts as a start.
        """
        first = np.ones(self.size, np.bool_)
        first[1:] = (self.terminated | self.truncated)[:-1]
        if before is not None:
            ended = bool(before.terminated[-1] or before.truncated[-1])
            same = np.array_equal(before.next_observations[-1], self.observations[0])
            first[0] = ended or not same
        return first

    def segments(self) -> Integers:
        """The segment of every row, shape (N,): its episode, or a part of a long one.

        A segment starts with an episode, and after every `SEGMENT` transitions of it. Segments are
        what counts as independent.
        """
        rows = np.arange(self.size)
        place = rows - np.maximum.accumulate(np.where(self.starts(), rows, 0))  # in the episode
        return np.cumsum(place % SEGMENT == 0) - 1

    def discounts(self, discount: float) -> float | Vector:
        """The discount gamma^tau of every transition, (N,); just gamma if it is that of all.

        Nothing comes after a terminal state, so that its discount is 0.
        """
        elapsed = self.elapsed
        if elapsed is None or discount in (0.0, 1.0):
            return discount
        if bool(((elapsed == 1.0) | self.terminated).all()):
            return discount
        discounts: Vector = discount ** np.where(self.terminated, np.inf, elapsed)
        return discounts

    def reward_rates(self, discount: float) -> Vector:
        """For every reward the one that, received in every unit of time, is worth as much, (N,).

        A transition that is repeated forever is worth r / (1 - gamma^tau), and one to a terminal
        state is worth r; a reward in every unit of time is worth 1 / (1 - gamma) times itself.
        """
        if self.elapsed is None or np.ndim(self.discounts(discount)) == 0:
            return self.rewards
        lasting = np.where(self.terminated, np.inf, self.elapsed)
        rates: Vector = self.rewards * ((1.0 - discount) / -np.expm1(lasting * math.log(discount)))
        return rates


def joined(chunks: list[Transitions]) -> Transitions:
    """The chunks as one. An episode that a chunk does not go on with counts as cut short."""
    return concatenated(list(cut_between((("", chunk) for chunk in chunks), inferred=True)))


def concatenated(chunks: list[Transitions]) -> Transitions:
    """The chunks as one, as they are."""
    if len(chunks) == 1:
        return chunks[0]
    names = chunks[0].columns()
    return Transitions(**{n: np.concatenate([getattr(c, n) for c in chunks]) for n in names})


def _last_of_episode(before: Transitions, after: Transitions) -> Mask:
    """A mask of the last row, if the next chunk starts with another episode."""
    ended = np.zeros(before.size, np.bool_)
    ended[-1] = after.starts(before)[0] and not before.terminated[-1]
    return ended


def cut_between(chunks: Iterable[tuple[str, Transitions]], inferred: bool) -> Iterator[Transitions]:
    """Chunks, with episodes cut short where the next chunk does not continue them.

    Each chunk comes with the name of its source. Where the log itself says where episodes were cut
    short, and nothing has to be inferred, this is done from source to source only.
    """
    before: tuple[str, Transitions] | None = None
    for source, chunk in chunks:
        if before is not None:
            last = before[1]
            if inferred or source != before[0]:
                last = replace(last, truncated=last.truncated | _last_of_episode(last, chunk))
            yield last
        before = source, chunk
    if before is not None:
        yield before[1]


def rechunked(chunks: Iterable[Transitions], rows: int) -> Iterator[Transitions]:
    """The same transitions in chunks of this many rows, of which only the last may be smaller.

    Sums over them do not depend on how the rows are spread over files.
    """
    pending: list[Transitions] = []
    for chunk in chunks:
        pending.append(chunk)
        if sum(part.size for part in pending) >= rows:
            whole = concatenated(pending)
            full = whole.size - whole.size % rows
            yield from whole.rows(0, full).batches(rows)
            pending = [whole.rows(full, whole.size)] if full < whole.size else []
    if pending:
        yield concatenated(pending)


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


def _actions(name: str, values: ArrayLike) -> Integers:
    array = _numbers(name, values)
    _require(array >= 0, name, array, "must be 0 or more")
    if array.dtype.kind == "f":  # tables often hold whole numbers as floats
        _require(array == np.floor(array), name, array, "must be a whole number")
    return array.astype(np.int64, copy=False)


def _flags(name: str, values: ArrayLike) -> Mask:
    array = _column(name, values)
    if array.dtype.kind != "b":
        _require((array == 0) | (array == 1), name, array, "must be true or false")
    return array.astype(np.bool_, copy=False)


def _durations(name: str, values: ArrayLike) -> Vector:
    array = _numbers(name, values).astype(np.float64, copy=False)
    _require(array > 0.0, name, array, "must be above 0")
    return array


def _require(holds: Mask, name: str, array: NDArray[Any], what: str) -> None:
    if not holds.all():
        row = int(np.flatnonzero(~holds.reshape(len(holds), -1).all(axis=1))[0])
        raise ValueError(f"{name} in row {row} is {array[row].tolist()}: it {what}")
