"""The rows of a log, decoded: numbers in place of words, and every value checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Array, Integers, Mask
from rblspi.data.arrow_values import (
    TableChunk,
    as_text,
    flags_of,
    numbers_of,
    plain,
    times_of,
)
from rblspi.data.columns import Roles
from rblspi.data.decoding import Decoder, Rows
from rblspi.data.encoding import Encoding, places_of
from rblspi.data.profiles import listed


class LogRows(NamedTuple):
    """Rows of a log in columns. A column that the log does not have is full of zeros."""

    states: NDArray[Any]
    actions: Integers
    rewards: Array
    next_states: NDArray[Any]  # those of the same rows, if the log has no such columns
    terminated: Mask
    truncated: Mask
    done: Mask
    episodes: Integers
    times: Array
    elapsed: Array  # the time until the next state, if a column tells
    places: Integers  # of the rows in the whole log
    good: Mask  # whether nothing is wrong with the row
    closing: Mask  # whether it has neither action nor reward, but only the last state of an episode

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.rewards)

    def taken(self, rows: Any) -> LogRows:
        """Some of the rows."""
        return LogRows._make(column[rows] for column in self)

    def followed_by(self, other: LogRows) -> LogRows:
        """These rows, and others after them."""
        return LogRows._make(np.concatenate(pair) for pair in zip(self, other, strict=True))


class Clock(NamedTuple):
    """How long rows take."""

    by_rows: bool  # whether the time of the next row tells, and not a column of its own
    period: float  # over which the discount applies once, in the units of the column


@dataclass
class LogDecoder(Decoder):
    """Converts chunks of a log to rows."""

    roles: Roles = field(kw_only=True)
    encoding: Encoding | None = field(kw_only=True)  # None: states are lists
    action_names: tuple[str, ...] = field(kw_only=True)  # (): actions are numbers
    known_episodes: dict[Any, int] = field(default_factory=dict)
    clock: Clock | None = None
    read: int = 0  # rows so far

    def rows(self, chunk: TableChunk) -> LogRows:
        """The rows of a chunk, also those that are bad."""
        rows = Rows(chunk, self.bad if self.skip_bad else None)
        size = len(rows.good)
        closing = self._closing(rows)
        terminated, truncated, done = (
            self._flags(rows, name, closing) for name in ("terminated", "truncated", "done")
        )
        nowhere = np.zeros(size, np.bool_)
        states = self._observations(rows, "state", nowhere)[0]
        after = states
        if not self.roles.of_episodes:
            after, absent = self._observations(rows, "next_state", terminated | done)
            after[absent] = states[absent]
        columns = LogRows(
            states,
            self._chosen(rows, closing),
            self._rewards(rows, closing),
            after,
            terminated,
            truncated,
            done,
            self.episodes(chunk, rows),
            self.times(chunk, rows),
            self._elapsed(rows, terminated | done | closing),
            self.read + np.arange(size),
            rows.good,
            closing,
        )
        self.read += size
        self.bad.count += size - int(rows.good.sum())
        return columns

    def _closing(self, rows: Rows) -> Mask:
        absent = np.ones(len(rows.good), np.bool_)
        if not self.roles.of_episodes:
            return ~absent
        for name in (*self.roles.names("action"), *self.roles.names("reward")):
            absent &= np.asarray(plain(rows.column(name)).is_null())
        return absent

    def _observations(self, rows: Rows, field: str, last: Mask) -> tuple[NDArray[Any], Mask]:
        """The states, or the next states, and where these are missing in the last rows."""
        names = self.roles.names(field)
        missing = np.zeros(len(last), np.bool_)
        if self.encoding is None:
            return self._lists(rows, names[0]), missing
        columns = []
        for each, name in zip(self.encoding.inputs, names, strict=True):
            column = plain(rows.column(name))
            words = each.words
            values = places_of(as_text(column), words) if words else numbers_of(column)
            absent = np.isnan(values)
            missing |= absent & last
            good = np.isfinite(values) | (absent & (last | (each.fill is not None)))
            what = f"is none of {listed([*words])}" if words else "must be a finite number"
            rows.require(name, good, what, "missing=indicator keeps those without a value")
            columns.append(values if each.fill is not None else np.nan_to_num(values))
        return self.encoding.encoded(columns), missing

    def _chosen(self, rows: Rows, closing: Mask) -> Integers:
        name = self.roles.names("action")[0]
        column = plain(rows.column(name))
        if self.action_names:
            values = places_of(as_text(column), self.action_names)
            rows.require(name, closing | np.isfinite(values), "is not an action")
            return np.where(np.isfinite(values), values, 0.0).astype(np.int64)
        return self._numbered_actions(rows, name, np.where(closing, 0.0, numbers_of(column)))

    def _rewards(self, rows: Rows, closing: Mask) -> Array:
        name = self.roles.names("reward")[0]
        values = np.where(closing, 0.0, numbers_of(plain(rows.column(name))))
        rows.require(name, np.isfinite(values), "must be a finite number")
        return values

    def _elapsed(self, rows: Rows, last: Mask) -> Array:
        """The time until the next state; it may be missing where that does not matter."""
        if self.clock is None or self.clock.by_rows:
            return np.zeros(len(rows.good))
        return rows.durations(self.roles.names("elapsed")[0], last, self.clock.period)

    def _flags(self, rows: Rows, field: str, closing: Mask) -> Mask:
        name = self.roles.name(field)
        if name is None:
            return np.zeros(len(rows.good), np.bool_)
        values = flags_of(plain(rows.column(name)))
        rows.require(name, ~np.isnan(values) | closing, "must be true or false")
        return np.asarray(values == 1.0)

    def episodes(self, chunk: TableChunk, rows: Rows) -> Integers:
        """The number of the episode of every row, in the order of their first rows."""
        import pyarrow.compute as pc

        name = self.roles.name("episode")
        if self.roles.by_file:
            number = self.known_episodes.setdefault(chunk.source, len(self.known_episodes))
            return np.full(len(rows.good), number)
        if name is None or not self.roles.of_episodes:
            return np.zeros(len(rows.good), np.int64)
        names = as_text(plain(rows.column(name)))
        # whole numbers in text may be written with a point in one file and without in another
        encoded = pc.replace_substring_regex(names, r"^(-?\d+)\.0*$", r"\1").dictionary_encode()
        known = self.known_episodes
        codes = [known.setdefault(key, len(known)) for key in encoded.dictionary.to_pylist()]
        indices = np.asarray(encoded.indices.fill_null(-1))
        rows.require(name, indices >= 0, "must name an episode", always=True)
        numbers: Integers = np.array([*codes, -1], np.int64)[indices]
        return numbers

    def times(self, chunk: TableChunk, rows: Rows) -> Array:
        """The time of every row; 0 if there is no such column, or it is not needed."""
        name = self.roles.name("time")
        if name is None or not self.roles.of_episodes:
            return np.zeros(len(rows.good))
        values = times_of(plain(rows.column(name)))
        what = (
            "must be a number or a date like 2026-01-31 10:00:00, with a time zone in all rows or "
            "in none"
        )
        rows.require(name, np.isfinite(values), what, always=True)
        return values
