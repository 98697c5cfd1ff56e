"""From the rows of a table to transitions, with every value checked.

Arrow arrays become NumPy arrays, without copying where possible. A row is bad if a value is
missing, a number is not finite, the action does not exist or the state has the wrong length.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.types import Array, Integers, Mask
from rblspi.data.arrow_values import TableChunk, flags_of, is_list, is_number, numbers_of, plain
from rblspi.data.columns import DataError
from rblspi.data.transitions import Transitions


@dataclass
class BadRows:
    """Bad rows that were skipped during the latest pass."""

    count: int = 0
    by_column: Counter[str] = field(default_factory=Counter)  # by the first column that is bad
    first: str = ""  # where the first bad row is, and what is wrong with it

    def add(self, others: BadRows) -> None:
        """Add the bad rows of the next partition."""
        self.count += others.count
        self.by_column.update(others.by_column)
        self.first = self.first or others.first

    def __str__(self) -> str:
        """All of them in one sentence."""
        if not self.count:
            return "no bad rows"
        columns = ", ".join(f"{name} {n:,}" for name, n in self.by_column.most_common())
        return f"{self.count:,} bad rows left out ({columns}); the first: {self.first}"


@dataclass
class Decoder:
    """Converts chunks of a table to transitions."""

    columns: dict[str, tuple[str, ...]]  # the names of the columns of every field
    actions: int | None  # their number; None: every whole number from 0 on is an action
    dimensions: int | None  # of states that are lists; None: the most common in the first chunk
    skip_bad: bool  # whether to skip and count bad rows instead of raising an error
    period: float = 1.0  # over which the discount applies once, in units of the elapsed time
    bad: BadRows = field(default_factory=BadRows)

    def decode(self, chunk: TableChunk) -> Transitions | None:
        """The transitions in a chunk; None if all of its rows are bad."""
        rows = Rows(chunk, self.bad if self.skip_bad else None)
        columns: list[NDArray[Any]] = [
            self._states(rows, "state"),
            self._actions(rows),
            rows.numbers(self.columns["reward"][0]),
            self._states(rows, "next_state"),
            rows.flags(self.columns["terminated"][0]),
        ]
        inferred = "truncated" not in self.columns
        no_flags = np.zeros(len(rows.good), np.bool_)
        columns.append(no_flags if inferred else rows.flags(self.columns["truncated"][0]))
        more: dict[str, NDArray[Any]] = {}
        if "next_allowed" in self.columns:
            more["next_allowed"] = self._masks(rows, columns[4])
        if "elapsed" in self.columns:
            durations = rows.durations(self.columns["elapsed"][0], columns[4], self.period)
            more["elapsed"] = durations / self.period
        skipped = len(rows.good) - int(rows.good.sum())
        if skipped:
            self.bad.count += skipped
            columns = [column[rows.good] for column in columns]
            more = {name: column[rows.good] for name, column in more.items()}
        if not len(columns[0]):
            return None
        transitions = Transitions(*columns, **more)
        transitions.require_shapes()
        # A skipped row may have been the last one of its episode.
        return transitions.with_inferred_truncation() if inferred or skipped else transitions

    def _states(self, rows: Rows, field: str) -> NDArray[Any]:
        names = self.columns[field]
        if len(names) > 1:
            return np.stack([rows.numbers(name) for name in names], axis=1)
        column = rows.column(names[0])
        if is_list(column.type):
            return self._lists(rows, names[0])
        if _is_whole(column):
            return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
        return rows.numbers(names[0])

    def _masks(self, rows: Rows, terminated: Mask) -> Mask:
        """Which actions are allowed next; of a terminal state it does not matter."""
        names = self.columns["next_allowed"]
        if len(names) == 1 and is_list(rows.column(names[0]).type):
            lists = rows.column(names[0]).to_pylist()
            size = max((len(row) for row in lists if row is not None), default=0)
            fits = np.array([row is not None and len(row) == size for row in lists])
            rows.require(names[0], fits, f"has another length than {size}")
            masks = np.array([row if len(row or ()) == size else [1] * size for row in lists])
        else:
            masks = np.stack([rows.flags(name) for name in names], axis=1)
        allowed: Mask = masks.astype(np.bool_)
        rows.require(names[0], allowed.any(axis=1) | terminated, "allows no action")
        return allowed

    def _lists(self, rows: Rows, name: str) -> Array:
        """States in one column of lists, which must all have the same length."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = rows.column(name)
        kind = column.type.value_type
        if not is_number(kind):
            raise DataError(
                f"{rows.source}, column {name}: lists of {kind} are not lists of numbers"
            )
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1))
        if self.dimensions is None:
            self.dimensions = int(np.bincount(lengths + 1).argmax() - 1)  # the most common
        size = max(self.dimensions, 0)
        fits: Mask = lengths == size
        rows.require(name, fits, f"has another length than {size}")
        values = np.full((len(lengths), size), np.nan)
        flat = pc.list_flatten(column.filter(pa.array(fits)))
        values[fits] = np.asarray(pc.cast(flat, "float64", safe=False)).reshape(-1, size)
        rows.require(name, ~fits | np.isfinite(values).all(axis=1), "must be finite numbers")
        return values

    def _actions(self, rows: Rows) -> Integers:
        name = self.columns["action"][0]
        column = rows.column(name)
        whole = _is_whole(column)
        values = column.to_numpy(zero_copy_only=False) if whole else rows.numbers(name)
        return self._numbered_actions(rows, name, values)

    def _numbered_actions(self, rows: Rows, name: str, values: NDArray[Any]) -> Integers:
        """Actions that are numbers, checked."""
        known = (values >= 0) & (values < (self.actions or LARGEST_COUNT))
        if values.dtype.kind == "f":
            known &= values == np.floor(values)
        last = self.actions and self.actions - 1
        which = ", which count from 0" if last is None else f": they go from 0 to {last}"
        rows.require(name, known, f"is not an action{which}")
        return np.where(known, values, 0).astype(np.int64)


class Rows:
    """The columns of a chunk, and which of its rows are good so far.

    Bad rows are recorded in ``bad``; where it is None, the first bad row raises an error.
    """

    def __init__(self, chunk: TableChunk, bad: BadRows | None) -> None:
        self.table, self.source, self.first_row = chunk
        self.bad = bad
        self.good: Mask = np.ones(self.table.num_rows, np.bool_)

    def column(self, name: str) -> Any:
        """A column as an Arrow array."""
        return self.table.column(name)

    def numbers(self, name: str) -> Array:
        """A column of finite numbers."""
        column = self.column(name)
        values = numbers_of(plain(column))
        if not is_number(column.type) and len(values) and np.isnan(values).all():
            raise DataError(
                f"{self.source}, column {name}: its values are {column.type}, not numbers: "
                "rblspi.data.read_log reads words, too"
            )
        self.require(name, np.isfinite(values), "must be a finite number")
        return values

    def durations(self, name: str, last: Mask, default: float) -> Array:
        """A column of times above 0; in the last row of an episode they may be missing."""
        values = numbers_of(plain(self.column(name)))
        values = np.where(np.isnan(values) & last, default, values)
        good = np.isfinite(values) & (values > 0.0)
        self.require(name, good, "must be a time above 0, that until the next state")
        return np.where(good, values, default)

    def flags(self, name: str) -> Mask:
        """A column of booleans, of the numbers 0 and 1, or of words like these."""
        values = flags_of(plain(self.column(name)))
        self.require(name, ~np.isnan(values), "must be true or false")
        flags: Mask = values == 1
        return flags

    def require(
        self, name: str, holds: Mask, what: str, if_missing: str = "", always: bool = False
    ) -> None:
        """Raise an error for the first row in which this does not hold, or record all of them.

        ``if_missing`` says what else can be done about a value that is missing, ``always`` that
        such rows cannot be left out.
        """
        bad = self.good & ~holds
        if not bad.any():
            return
        row = int(bad.argmax())
        value = self.column(name)[row].as_py()
        sentence = f"{self.source}, row {self.first_row + row}, column {name}: {value!r} {what}"
        if always:
            raise DataError(sentence)
        if self.bad is None:
            way_out = "--skip-bad (skip_bad=True) leaves such rows out"
            also = f", and {if_missing}" if if_missing and value is None else ""
            raise DataError(f"{sentence}; {way_out}{also}")
        self.bad.first = self.bad.first or sentence
        self.bad.by_column[name] += int(bad.sum())
        self.good[bad] = False


def _is_whole(column: Any) -> bool:
    """Whether an Arrow array holds whole numbers without gaps."""
    from pyarrow import types

    return bool(types.is_integer(column.type) and not column.null_count)
