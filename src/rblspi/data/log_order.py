"""Rows of episodes in their order, and the transitions that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rblspi.core.types import Array, Integers, Mask, Matrix
from rblspi.data.columns import DataError, Roles
from rblspi.data.log_rows import Clock, LogRows
from rblspi.data.log_source import Places
from rblspi.data.transitions import Transitions

#: rows of which the fate depends on what comes next
_HELD_BACK = 2


def sorted_rows(chunks: Iterable[LogRows]) -> Iterator[LogRows]:
    """All rows at once, by episode and time; episodes in the order of their first rows."""
    whole = _concatenated(list(chunks))
    if whole is not None:
        yield whole.taken(np.lexsort((whole.places, whole.times, whole.episodes)))


def sorted_on_disk(chunks: Iterable[LogRows], episodes: int, parts: int) -> Iterator[LogRows]:
    """The same for logs that are larger than the memory: some episodes at a time.

    Rows are distributed over temporary files, each of which holds all rows of some episodes.
    """
    with TemporaryDirectory(prefix="rblspi-") as folder:
        files = [Path(folder) / f"{part}" for part in range(parts)]
        layout: LogRows | None = None
        for rows in chunks:
            layout = rows.taken(slice(0, 0)) if layout is None else layout
            part_of = rows.episodes * parts // max(episodes, 1)
            for part in np.unique(part_of):
                with files[part].open("ab") as file:
                    file.write(_packed(rows.taken(part_of == part)).tobytes())
        for file in files:
            if layout is not None and file.exists():
                yield from sorted_rows([_unpacked(np.fromfile(file), layout)])


def _packed(rows: LogRows) -> Matrix:
    columns = [np.reshape(column, (rows.size, -1)).astype(np.float64) for column in rows]
    return np.ascontiguousarray(np.concatenate(columns, axis=1))


def _unpacked(numbers: Matrix, layout: LogRows) -> LogRows:
    widths = [int(np.prod(column.shape[1:])) for column in layout]
    table = numbers.reshape(-1, sum(widths))
    parts = np.split(table, np.cumsum(widths)[:-1], axis=1)
    return LogRows._make(
        part.reshape(len(table), *column.shape[1:]).astype(column.dtype)
        for part, column in zip(parts, layout, strict=True)
    )


def _concatenated(chunks: list[LogRows]) -> LogRows | None:
    if not chunks:
        return None
    return LogRows._make(np.concatenate(columns) for columns in zip(*chunks, strict=True))


@dataclass
class Joiner:
    """Makes transitions of rows in order: the next state is the state in the next row.

    The last row of an episode that did not terminate has no next state. It is left out and
    counted, and the transition before it is cut short there. So is the one before a bad row.
    """

    roles: Roles
    where: Places
    clock: Clock | None = None
    dated: bool = False  # whether times are dates
    left_out: int = 0

    def transitions(self, chunks: Iterable[LogRows]) -> Iterator[Transitions]:
        """The transitions in the rows, which are in order."""
        held: LogRows | None = None
        position = 0  # of the first row that is held back, in its episode
        for rows in self._with_episodes(chunks):
            block = rows if held is None else held.followed_by(rows)
            keep = max(block.size - _HELD_BACK, 0)
            positions = _positions(block, position)
            yield from self._linked(block, positions, keep)
            held, position = block.taken(slice(keep, None)), int(positions[keep])
        if held is not None:
            yield from self._linked(held, _positions(held, position), held.size)

    def _with_episodes(self, chunks: Iterable[LogRows]) -> Iterator[LogRows]:
        """The rows; without a column of episodes, a new one begins after every end of one."""
        if self.roles.by_file or self.roles.name("episode") is not None:
            yield from chunks
            return
        number, source, open_at = 0, "", -1
        for rows in chunks:
            ends = rows.terminated | rows.truncated | rows.done | rows.closing
            here = self.where.source(int(rows.places[0]))
            if open_at >= 0 and source != here:
                raise DataError(
                    f"{self.where(open_at)}: the file ends in the middle of an episode, and "
                    f"nothing tells whether {here} goes on with it: name the column of the "
                    "episodes with episode=, or say episode=file if every file is an episode"
                )
            numbers = number + np.concatenate([[0], np.cumsum(ends)])
            number, source = int(numbers[-1]), here
            open_at = -1 if ends[-1] else int(rows.places[-1])
            yield rows._replace(episodes=numbers[:-1])

    def _linked(self, rows: LogRows, positions: Integers, count: int) -> Iterator[Transitions]:
        """The transitions of the first ``count`` rows."""
        same = np.zeros(rows.size, np.bool_)
        same[:-1] = rows.episodes[1:] == rows.episodes[:-1]
        linked = same & np.append(rows.good[1:], False)
        self._require_order(rows, linked & rows.good)
        following = np.minimum(np.arange(rows.size) + 1, rows.size - 1)
        terminated = self._terminated(rows, same, positions)
        closed = linked & rows.closing[following]
        terminated |= closed & terminated[following]
        self._require_end(rows, linked & rows.good & ~closed, terminated)
        acts = rows.good & ~rows.closing
        valid = acts & (terminated | linked)
        self.left_out += int((acts & ~valid)[:count].sum())
        cut = ~terminated & (rows.truncated | ~(same & valid[following]))
        after = np.where(_like(linked, rows.states), rows.states[following], rows.states)
        chosen = valid & (np.arange(rows.size) < count)
        if chosen.any():
            elapsed = self._elapsed(rows, following, linked)
            every = Transitions(
                rows.states, rows.actions, rows.rewards, after, terminated, cut, elapsed=elapsed
            )
            yield every.select(chosen)

    def _elapsed(self, rows: LogRows, following: Integers, linked: Mask) -> Array | None:
        """How long the rows take, in units of the period; 1 where the next state is not logged."""
        if self.clock is None:
            return None
        by_rows, period = self.clock
        if not by_rows:
            return rows.elapsed / period
        return np.where(linked, rows.times[following] - rows.times, period) / period

    def _terminated(self, rows: LogRows, same: Mask, positions: Integers) -> Mask:
        """Which rows end in a terminal state, by the flags and by what the user says of them."""
        has = {field for field in ("terminated", "truncated", "done") if self.roles.name(field)}
        if "terminated" in has:
            return rows.terminated.copy()
        ended = (rows.done if "done" in has else ~same) & ~rows.truncated
        ends = self.roles.choices.ends
        if {"done", "truncated"} <= has or ends == "terminated":
            return ended
        limit = 0 if ends == "truncated" else int(ends or 0)
        return ended & (positions + 1 < limit)

    def _require_order(self, rows: LogRows, linked: Mask) -> None:
        if self.roles.name("time") is None:
            return
        backwards = linked.copy()
        backwards[:-1] &= rows.times[1:] <= rows.times[:-1]
        if backwards.any():
            row = int(backwards.argmax())
            one, other = (self.where(int(rows.places[i])) for i in (row, row + 1))
            what = "is there twice" if rows.times[row] == rows.times[row + 1] else "runs backwards"
            raise DataError(
                f"{other}, column {self.roles.name('time')}: the time "
                f"{self._shown(rows.times[row + 1])} "
                f"{what} in an episode, after {one}: remove one of the rows, or name the column of "
                "the episodes with episode="
            )

    def _shown(self, time: float) -> str:
        return f"{np.datetime64(int(time), 'us')}" if self.dated else f"{time:g}"

    def _require_end(self, rows: LogRows, goes_on: Mask, terminated: Mask) -> None:
        """Raise an error if an episode goes on after its end."""
        ended = terminated | rows.truncated | rows.done | rows.closing
        wrong = goes_on & ended
        if wrong.any():
            row = int(wrong.argmax())
            column = next(
                (n for n in map(self.roles.name, ("terminated", "truncated", "done")) if n),
                "action",
            )
            raise DataError(
                f"{self.where(int(rows.places[row]))}, column {column}: the episode ends here, but "
                f"goes on in {self.where(int(rows.places[row + 1]))}: correct the flag, the "
                "episode or the time of one of these rows"
            )


def _positions(rows: LogRows, first: int) -> Integers:
    """The position of every row in its episode, given that of the first."""
    starts = np.ones(rows.size, np.bool_)
    starts[1:] = rows.episodes[1:] != rows.episodes[:-1]
    places = np.arange(rows.size)
    begun = np.maximum.accumulate(np.where(starts, places, 0))
    return places - begun + np.where(begun == 0, first, 0)


def _like(mask: Mask, array: Any) -> Mask:
    """A mask of rows, for an array of any number of axes."""
    return mask.reshape(-1, *[1] * (array.ndim - 1))
