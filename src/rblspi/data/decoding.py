"""From the rows of a log to numbers: every value is checked, and a bad one is named.

A row is bad if a value is missing, a number is not finite, the action does not exist or the state
has the wrong length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.types import Array, Integers, Mask
from rblspi.data.columns import DataError, Roles
from rblspi.data.dataset import BadRows
from rblspi.data.encoding import ActionNames, Encoding, listed, points_of
from rblspi.data.sources import Chunk
from rblspi.data.transitions import Transitions
from rblspi.data.values import (
    flags_of,
    is_list,
    lists_of,
    numbers_of,
    places_of,
    plain,
    times_of,
    words_of,
)

#: places of rows: the number of the table, times this, plus the row in it
_TABLE = 2**40


class Clock(NamedTuple):
    """How long rows take."""

    by_rows: bool  # whether the time of the next row tells, and not a column of its own
    period: float  # over which the discount applies once, in the units of the column


class Checked:
    """A chunk of a log, and which of its rows are good so far.

    Bad rows are recorded in ``bad``; where it is None, the first bad row raises an error.
    """

    def __init__(self, chunk: Chunk, bad: BadRows | None) -> None:
        self.chunk, self.bad = chunk, bad
        self.good: Mask = np.ones(chunk.rows.height, np.bool_)

    def column(self, name: str) -> pl.Series:
        """A column of a plain type."""
        return plain(self.chunk.rows[name])

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
        rows, table, first_row = self.chunk
        row = int(bad.argmax())
        value = rows[name][row]
        value = value.to_list() if hasattr(value, "to_list") else value
        sentence = f"{table}, row {first_row + row}, column {name}: {value!r} {what}"
        if always:
            raise DataError(sentence)
        if self.bad is None:
            way_out = "--skip-bad (skip_bad=True) leaves such rows out"
            also = f", and {if_missing}" if if_missing and value is None else ""
            raise DataError(f"{sentence}; {way_out}{also}")
        count = int(bad.sum())
        self.bad.first = self.bad.first or sentence
        self.bad.by_column[name] += count
        self.bad.count += count
        self.good[bad] = False


@dataclass
class Decoder:
    """Converts chunks of a log to rows of numbers.

    These are frames with the columns ``x0``, ``x1``, ... of the state; ``y0``, ``y1``, ... of the
    next state, if it is in the same row; and the names below. ``place`` tells where a row is,
    ``closing`` whether it has neither action nor reward, but only the last state of an episode.
    """

    roles: Roles
    encoding: Encoding | None = None  # None: states are lists
    action_names: ActionNames = ()  # (): actions count from 0
    actions: int | None = None  # their number; None: every whole number from 0 on is an action
    skip_bad: bool = False  # whether to skip and count bad rows instead of raising an error
    clock: Clock | None = None
    known_episodes: dict[Any, int] = field(default_factory=dict)
    dimensions: int | None = None  # of states that are lists; None: the most common in a chunk
    bad: BadRows = field(default_factory=BadRows)

    tables: list[str] = field(default_factory=list)  # that rows came from so far

    def rows(self, chunk: Chunk) -> pl.DataFrame:
        """The rows of a chunk, also those that are bad."""
        rows = Checked(chunk, self.bad if self.skip_bad else None)
        closing = self._closing(rows)
        flags = {n: self._flags(rows, n, closing) for n in ("terminated", "truncated", "done")}
        last = flags["terminated"] | flags["done"]
        states, _ = self._states(rows, "state", np.zeros_like(last))
        columns = _numbered("x", states)
        if not self.roles.of_episodes:
            after, absent = self._states(rows, "next_state", last)
            after[absent] = states[absent]
            columns |= _numbered("y", after) | self._allowed(rows, flags["terminated"])
        return pl.DataFrame(
            {
                **columns,
                "action": self._actions(rows, closing),
                "reward": self._rewards(rows, closing),
                **flags,
                "episode": self.episodes(chunk),
                "time": self.times(chunk),
                "elapsed": self._elapsed(rows, last | closing),
                "place": self._places(chunk),
                "good": rows.good,
                "closing": closing,
            }
        )

    def transitions(self, rows: pl.DataFrame) -> Transitions:
        """Rows in which everything is known as transitions."""

        def table(letter: str) -> NDArray[Any]:
            names = [name for name in rows.columns if name.rstrip("0123456789") == letter]
            if letter in ("x", "y") and self.encoding is not None and self.encoding.alone:
                return rows[names[0]].to_numpy(writable=True)
            return rows.select(names).to_numpy(order="c", writable=True)

        names = ("action", "reward", "terminated", "truncated", "elapsed")
        actions, rewards, terminated, truncated, elapsed = (
            rows[name].to_numpy(writable=True) for name in names
        )
        return Transitions(
            *(table("x"), actions, rewards, table("y"), terminated, truncated),
            next_allowed=table("allowed") if "allowed0" in rows.columns else None,
            elapsed=None if self.clock is None else elapsed / self.clock.period,
        )

    def where(self, place: int) -> str:
        """The table and the row in it, in words."""
        return f"{self.table(place)}, row {place % _TABLE}"

    def table(self, place: int) -> str:
        """The name of the table of a row."""
        return self.tables[place // _TABLE]

    def _places(self, chunk: Chunk) -> Integers:
        if self.tables[-1:] != [chunk.table]:
            self.tables.append(chunk.table)
        start = (len(self.tables) - 1) * _TABLE + chunk.first_row
        return np.arange(start, start + chunk.rows.height)

    def _closing(self, rows: Checked) -> Mask:
        absent = np.full(len(rows.good), self.roles.of_episodes)
        for name in (*self.roles.names("action"), *self.roles.names("reward")):
            absent &= rows.column(name).is_null().to_numpy()
        return absent

    def _states(self, rows: Checked, role: str, last: Mask) -> tuple[NDArray[Any], Mask]:
        """The states, or the next states, and where these are missing in the last rows."""
        names = self.roles.names(role)
        missing = np.zeros(len(last), np.bool_)
        if self.encoding is None:
            return self._lists(rows, names[0]), missing
        columns = []
        for each, name in zip(self.encoding.inputs, names, strict=True):
            column, words = rows.column(name), each.words
            values = places_of(words_of(column), words) if words else numbers_of(column)
            absent = np.isnan(values)
            missing |= absent & last
            good = np.isfinite(values) | (absent & (last | (each.fill is not None)))
            what = f"is none of {listed([*words])}" if words else "must be a finite number"
            rows.require(name, good, what, "missing=indicator keeps those without a value")
            columns.append(values if each.fill is not None else np.nan_to_num(values))
        return self.encoding.encoded(columns), missing

    def _lists(self, rows: Checked, name: str) -> Array:
        """States in one column of lists, which must all have the same length."""
        lists = lists_of(rows.column(name))
        if lists is None:
            kind = rows.chunk.rows[name].dtype
            raise DataError(f"{rows.chunk.table}, column {name}: {kind} are no lists of numbers")
        lengths = lists.list.len().fill_null(-1).cast(pl.Int64).to_numpy()
        if self.dimensions is None:
            self.dimensions = int(np.bincount(lengths + 1).argmax() - 1)  # the most common
        size = max(self.dimensions, 0)
        fits: Mask = lengths == size
        rows.require(name, fits, f"has another length than {size}")
        values = np.full((len(lengths), size), np.nan)
        values[fits] = lists.filter(fits).explode().fill_null(np.nan).to_numpy().reshape(-1, size)
        rows.require(name, ~fits | np.isfinite(values).all(axis=1), "must be finite numbers")
        return values

    def _allowed(self, rows: Checked, terminated: Mask) -> dict[str, Mask]:
        """Which actions are allowed next; of a terminal state it does not matter."""
        names = self.roles.names("next_allowed")
        if not names:
            return {}
        if is_list(rows.column(names[0]).dtype):
            lists = rows.column(names[0]).to_list()
            size = max((len(row) for row in lists if row is not None), default=0)
            fits = np.array([row is not None and len(row) == size for row in lists])
            rows.require(names[0], fits, f"has another length than {size}")
            allowed = np.array([row if len(row or ()) == size else [1] * size for row in lists])
        else:
            flags = {name: flags_of(rows.column(name)) for name in names}
            for name, values in flags.items():
                rows.require(name, ~np.isnan(values), "must be true or false")
            allowed = np.column_stack(list(flags.values()))
        masks = allowed.astype(np.bool_)
        rows.require(names[0], masks.any(axis=1) | terminated, "allows no action")
        return _numbered("allowed", masks)

    def _actions(self, rows: Checked, closing: Mask) -> Integers:
        name = self.roles.names("action")[0]
        column = rows.column(name)
        points = points_of(self.action_names)
        if points:
            values = np.where(closing, points[0], numbers_of(column))
            inside = (values >= points[0]) & (values <= points[-1])
            bounds = f"is out of bounds: actions go from {points[0]:g} to {points[-1]:g}"
            rows.require(name, inside, bounds)
            nearest: Integers = np.abs(np.nan_to_num(values)[:, None] - points).argmin(axis=1)
            return nearest
        if self.action_names:
            values = places_of(words_of(column), [str(each) for each in self.action_names])
            rows.require(name, closing | np.isfinite(values), "is not an action")
            return np.nan_to_num(values).astype(np.int64)
        values = np.where(closing, 0.0, numbers_of(column))
        known = (values >= 0) & (values < (self.actions or LARGEST_COUNT))
        known &= values == np.floor(values)
        last = self.actions and self.actions - 1
        which = ", which count from 0" if last is None else f": they go from 0 to {last}"
        rows.require(name, known, f"is not an action{which}")
        return np.where(known, values, 0.0).astype(np.int64)

    def _rewards(self, rows: Checked, closing: Mask) -> Array:
        name = self.roles.names("reward")[0]
        values = np.where(closing, 0.0, numbers_of(rows.column(name)))
        rows.require(name, np.isfinite(values), "must be a finite number")
        return values

    def _flags(self, rows: Checked, role: str, closing: Mask) -> Mask:
        name = self.roles.name(role)
        if name is None:
            return np.zeros(len(rows.good), np.bool_)
        values = flags_of(rows.column(name))
        rows.require(name, ~np.isnan(values) | closing, "must be true or false")
        flags: Mask = values == 1.0
        return flags

    def _elapsed(self, rows: Checked, last: Mask) -> Array:
        """The time until the next state; it may be missing where that does not matter."""
        if self.clock is None or self.clock.by_rows:
            return np.zeros(len(rows.good))
        name = self.roles.names("elapsed")[0]
        values = numbers_of(rows.column(name))
        values = np.where(np.isnan(values) & last, self.clock.period, values)
        good = np.isfinite(values) & (values > 0.0)
        rows.require(name, good, "must be a time above 0, that until the next state")
        return np.where(good, values, self.clock.period)

    def episodes(self, chunk: Chunk) -> Integers:
        """The number of the episode of every row, in the order of their first rows."""
        name, size, known = self.roles.name("episode"), chunk.rows.height, self.known_episodes
        if self.roles.by_file:
            return np.full(size, known.setdefault(chunk.table, len(known)))
        if name is None or not self.roles.of_episodes:
            return np.zeros(size, np.int64)
        rows = Checked(chunk, None)
        # whole numbers in text may be written with a point in one file and without in another
        names = words_of(rows.column(name)).str.replace(r"^(-?\d+)\.0*$", "${1}")
        rows.require(name, names.is_not_null().to_numpy(), "must name an episode", always=True)
        here = names.unique(maintain_order=True).to_list()
        codes = [known.setdefault(key, len(known)) for key in here]
        return names.replace_strict(here, codes, return_dtype=pl.Int64).to_numpy()

    def times(self, chunk: Chunk) -> Array:
        """The time of every row; 0 if there is no such column, or it is not needed."""
        name = self.roles.name("time")
        if name is None or not self.roles.of_episodes:
            return np.zeros(chunk.rows.height)
        rows = Checked(chunk, None)
        values = times_of(rows.column(name))
        what = (
            "must be a number or a date like 2026-01-31 10:00:00, with a time zone in all rows or "
            "in none"
        )
        rows.require(name, np.isfinite(values), what, always=True)
        return values


def _numbered(name: str, numbers: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The numbers of states, or of actions, as columns."""
    table = numbers.reshape(len(numbers), -1)
    return {f"{name}{i}": np.ascontiguousarray(table[:, i]) for i in range(table.shape[1])}
