"""From a batch of a table to transitions, every value checked.

Arrow's arrays become NumPy's without copying where that is possible. A row is bad if it has no
value, a number that is not finite, an action that does not exist or a state of another length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.datasets.columns import DataError
from rblspi.transitions import Transitions

Mask = NDArray[np.bool_]


@dataclass
class BadRows:
    """Bad rows that were left out during the latest pass.

    Attributes
    ----------
    count : int
    by_column : Counter
        Every bad row counts for the first column in which it is bad.
    first : str
        Where the first one is, and what is wrong with it.
    """

    count: int = 0
    by_column: Counter[str] = field(default_factory=Counter)
    first: str = ""

    def add(self, others: BadRows) -> None:
        """Count those of another part of the data as well."""
        self.count += others.count
        self.by_column.update(others.by_column)
        self.first = self.first or others.first

    def __str__(self) -> str:
        """One sentence about all of them."""
        if not self.count:
            return "no bad rows"
        columns = ", ".join(f"{name} {n:,}" for name, n in self.by_column.most_common())
        return f"{self.count:,} bad rows left out ({columns}); the first: {self.first}"


class Decoder:
    """Makes transitions of batches.

    Parameters
    ----------
    columns : dict
        From the parts of a transition to names of columns.
    actions : int, optional
        How many there are; unless given, every whole number from 0 on is one.
    dimensions : int, optional
        Numbers in a state, where states are lists; the most common of the first batch unless
        given.
    skip_bad : bool
        Leave bad rows out, and count them, rather than raise an error.
    """

    def __init__(
        self,
        columns: dict[str, tuple[str, ...]],
        actions: int | None,
        dimensions: int | None = None,
        skip_bad: bool = False,
    ) -> None:
        self.columns = columns
        self.actions = actions
        self.dimensions = dimensions
        self.skip_bad = skip_bad
        self.bad = BadRows()

    def decode(self, batch: Any, source: str, first_row: int) -> Transitions | None:
        """The transitions in an Arrow batch; None if none is left.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        source : str
            What error messages call the table.
        first_row : int
            Number of the batch's first row in it.
        """
        good = np.ones(batch.num_rows, np.bool_)

        def judge(name: str, holds: Mask, what: str) -> None:
            """Take note of the rows in which something does not hold."""
            fresh = good & ~holds
            if not fresh.any():
                return
            row = int(fresh.argmax())
            found = batch.column(name)[row].as_py()
            sentence = f"{source}, row {first_row + row}, column {name}: {found!r} {what}"
            if not self.skip_bad:
                raise DataError(f"{sentence}; --skip-bad (skip_bad=True) leaves such rows out")
            self.bad.first = self.bad.first or sentence
            self.bad.by_column[name] += int(fresh.sum())
            good[fresh] = False

        parts = Transitions(
            self._states(batch, "state", source, judge),
            self._actions(batch, source, judge),
            self._numbers(batch, self.columns["reward"][0], source, judge),
            self._states(batch, "next_state", source, judge),
            self._flags(batch, source, judge),
        )
        dropped = batch.num_rows - int(good.sum())
        if dropped:
            self.bad.count += dropped
            parts = Transitions._make(column[good] for column in parts)
        return parts if parts.size else None

    def _states(
        self, batch: Any, part: str, source: str, judge: Callable[[str, Mask, str], None]
    ) -> NDArray[Any]:
        names = self.columns[part]
        if len(names) > 1:
            columns = [self._numbers(batch, name, source, judge) for name in names]
            return np.stack(columns, axis=1)
        column = batch.column(names[0])
        if _is_list(column.type):
            return self._lists(column, names[0], source, judge)
        if _is_integer(column.type) and not column.null_count:
            return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
        return self._numbers(batch, names[0], source, judge)

    def _lists(
        self, column: Any, name: str, source: str, judge: Callable[[str, Mask, str], None]
    ) -> NDArray[np.float64]:
        """States in one column of lists, all of the same length."""
        import pyarrow.compute as pc

        kind = column.type.value_type
        if not _is_number(kind):
            raise DataError(f"{source}, column {name}: lists of {kind} are not lists of numbers")
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1))
        if self.dimensions is None:
            self.dimensions = int(np.bincount(lengths + 1).argmax() - 1)  # the most common
        size = max(self.dimensions, 0)
        fits: Mask = lengths == size
        judge(name, fits, f"has another length than {size}")
        values = np.full((len(lengths), size), np.nan)
        flat = pc.list_flatten(column.filter(_arrow(fits)))
        values[fits] = np.asarray(pc.cast(flat, "float64", safe=False)).reshape(-1, size)
        judge(name, ~fits | np.isfinite(values).all(axis=1), "must be finite numbers")
        return values

    def _numbers(
        self, batch: Any, name: str, source: str, judge: Callable[[str, Mask, str], None]
    ) -> NDArray[np.float64]:
        column = batch.column(name)
        if not _is_number(column.type):
            raise DataError(f"{source}, column {name}: {column.type} is not a type of numbers")
        values = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
        judge(name, np.isfinite(values), "must be a finite number")
        return values

    def _actions(
        self, batch: Any, source: str, judge: Callable[[str, Mask, str], None]
    ) -> NDArray[np.int64]:
        name = self.columns["action"][0]
        column = batch.column(name)
        whole = _is_integer(column.type) and not column.null_count
        raw = column.to_numpy(zero_copy_only=False) if whole else None
        values = self._numbers(batch, name, source, judge) if raw is None else raw
        if self.actions is None:
            known, what = values >= 0, "is not an action, which count from 0"
        else:
            known = (values >= 0) & (values < self.actions)
            what = f"is not an action: they go from 0 to {self.actions - 1}"
        if raw is None:
            known &= values == np.floor(values)
        judge(name, known, what)
        return np.where(known, values, 0).astype(np.int64)

    def _flags(
        self, batch: Any, source: str, judge: Callable[[str, Mask, str], None]
    ) -> NDArray[np.bool_]:
        import pyarrow as pa

        name = self.columns["terminated"][0]
        column = batch.column(name)
        if pa.types.is_boolean(column.type):
            judge(name, ~np.asarray(column.is_null()), "must be true or false")
            return np.asarray(column.fill_null(False), np.bool_)
        values = self._numbers(batch, name, source, judge)
        judge(name, (values == 0) | (values == 1), "must be true or false")
        flags: Mask = values == 1
        return flags


def _arrow(mask: Mask) -> Any:
    import pyarrow as pa

    return pa.array(mask)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_integer(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))
