"""Rows of episodes in their order, and the transitions that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from rblspi.data.columns import DataError
from rblspi.data.decoding import Decoder

#: rows of which the fate depends on the rows that come next
_HELD_BACK = 2


def sorted_rows(chunks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """All rows at once, by episode and time; episodes in the order of their first rows."""
    yield pl.concat(chunks).sort("episode", "time", "place")


def sorted_on_disk(
    chunks: Iterable[pl.DataFrame], episodes: int, parts: int
) -> Iterator[pl.DataFrame]:
    """The same for logs that are larger than the memory: some episodes at a time.

    Rows are distributed over folders, each of which has all rows of some episodes.
    """
    part_of = pl.col("episode") * parts // max(episodes, 1)
    part: Any
    with TemporaryDirectory(prefix="rblspi-") as folder:
        for number, rows in enumerate(chunks):
            for (part,), some in rows.group_by(part_of, maintain_order=True):
                (Path(folder) / f"{part}").mkdir(exist_ok=True)
                some.write_ipc(Path(folder) / f"{part}" / f"{number:09}.arrow")
        for part in range(parts):
            if (Path(folder) / f"{part}").exists():
                files = sorted((Path(folder) / f"{part}").iterdir())
                yield from sorted_rows(pl.read_ipc(file) for file in files)


@dataclass
class Joiner:
    """Makes transitions of rows in order: the next state is the state in the next row.

    The last row of an episode that did not terminate has no next state. It is left out and
    counted, and the transition before it is cut short there. So is the one before a bad row.
    """

    decoder: Decoder
    dated: bool = False  # whether times are dates
    left_out: int = field(default=0, init=False)

    def joined(self, chunks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The transitions in the rows, which are in order, with the columns of `Decoder`."""
        held: pl.DataFrame | None = None
        for rows in self._positioned(self._with_episodes(chunks)):
            block = rows if held is None else pl.concat([held, rows])
            keep = max(block.height - _HELD_BACK, 0)
            yield self._linked(block, keep)
            held = block.slice(keep)
        if held is not None:
            yield self._linked(held, held.height)

    def _with_episodes(self, chunks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The rows; without a column of episodes, a new one begins after every end of one."""
        roles, where = self.decoder.roles, self.decoder
        if roles.by_file or roles.name("episode") is not None:
            yield from chunks
            return
        number: Any = 0
        last: int | None = None  # the place of the last row, if it does not end an episode
        ends = pl.any_horizontal("terminated", "truncated", "done", "closing")
        for rows in chunks:
            first = rows["place"][0]
            if last is not None and where.table(last) != where.table(first):
                raise DataError(
                    f"{where.where(last)}: the file ends in the middle of an episode, and nothing "
                    f"tells whether {where.table(first)} goes on with it: name the column of the "
                    "episodes with episode=, or say episode=file if every file is an episode"
                )
            ended = rows.select(ends).to_series()
            numbers = number + ended.cum_sum()
            last = None if ended[-1] else rows["place"][-1]
            number = numbers[-1]
            yield rows.with_columns(episode=(numbers - ended).cast(pl.Int64))

    def _positioned(self, chunks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The rows, with the position of each in its episode, and that of each in the chunk."""
        episode: Any = -1
        count: Any = 0  # the last episode so far, and the number of its rows
        for rows in chunks:
            before = pl.when(pl.col("episode") == episode).then(count).otherwise(0)
            rows = rows.with_columns(position=pl.int_range(pl.len()).over("episode") + before)
            episode, count = rows["episode"][-1], rows["position"][-1] + 1
            yield rows

    def _linked(self, rows: pl.DataFrame, count: int) -> pl.DataFrame:
        """The transitions of the first ``count`` rows."""
        col = pl.col
        rows = rows.with_columns(same=(col("episode").shift(-1) == col("episode")).fill_null(False))
        rows = rows.with_columns(linked=col("same") & following("good"))
        rows = rows.with_columns(
            terminated=self._terminated(), closed=col("linked") & following("closing")
        )
        rows = rows.with_columns(
            terminated=col("terminated") | (col("closed") & following("terminated"))
        )
        self._require_order(rows)
        self._require_end(rows)
        acts = col("good") & ~col("closing")
        rows = rows.with_columns(acts=acts, valid=acts & (col("terminated") | col("linked")))
        cut = ~col("terminated") & (col("truncated") | ~(col("same") & following("valid")))
        states = [name for name in rows.columns if name[0] == "x"]
        rows = rows.with_columns(
            pl.when("linked").then(col(x).shift(-1)).otherwise(x).alias(f"y{x[1:]}") for x in states
        ).with_columns(truncated=cut, elapsed=self._elapsed())
        rows = rows.slice(0, count)
        self.left_out += int((rows["acts"] & ~rows["valid"]).sum())
        return rows.filter("valid")

    def _elapsed(self) -> pl.Expr:
        """The time until the next row, if that is what tells; else it stays as it is."""
        clock, time = self.decoder.clock, pl.col("time")
        if clock is None or not clock.by_rows:
            return pl.col("elapsed")
        return pl.when("linked").then(time.shift(-1) - time).otherwise(clock.period)

    def _terminated(self) -> pl.Expr:
        """Which rows end in a terminal state, by the flags and by what the user says of them."""
        col, has, ends = pl.col, self._flags, self.decoder.roles.choices.ends
        if "terminated" in has:
            return col("terminated")
        ended = (col("done") if "done" in has else ~col("same")) & ~col("truncated")
        if {"done", "truncated"} <= {*has} or ends == "terminated":
            return ended
        limit = 0 if ends == "truncated" else int(ends or 0)
        return ended & (col("position") + 1 < limit)

    @cached_property
    def _flags(self) -> dict[str, str]:
        """The columns of the flags that the log has."""
        fields = ("terminated", "truncated", "done")
        found = {field: self.decoder.roles.name(field) for field in fields}
        return {field: name for field, name in found.items() if name is not None}

    def _require_order(self, rows: pl.DataFrame) -> None:
        time, name = pl.col("time"), self.decoder.roles.name("time")
        if name is None:
            return
        pairs = rows.with_columns(after=time.shift(-1), other=pl.col("place").shift(-1))
        wrong = pairs.filter(pl.col("linked") & pl.col("good") & (pl.col("after") <= time))
        if wrong.height:
            row, where = wrong.row(0, named=True), self.decoder.where
            after = row["after"]
            shown = f"{np.datetime64(int(after), 'us')}" if self.dated else f"{after:g}"
            what = "is there twice" if row["time"] == after else "runs backwards"
            raise DataError(
                f"{where(row['other'])}, column {name}: the time {shown} {what} in an episode, "
                f"after {where(row['place'])}: remove one of the rows, or name the column of the "
                "episodes with episode="
            )

    def _require_end(self, rows: pl.DataFrame) -> None:
        """Raise an error if an episode goes on after its end."""
        goes_on = pl.col("linked") & pl.col("good") & ~pl.col("closed")
        ended = pl.any_horizontal("terminated", "truncated", "done", "closing")
        wrong = rows.with_columns(other=pl.col("place").shift(-1)).filter(goes_on & ended)
        if wrong.height:
            row, where = wrong.row(0, named=True), self.decoder.where
            raise DataError(
                f"{where(row['place'])}, column {next(iter(self._flags.values()), 'action')}: the "
                f"episode ends here, but goes on in {where(row['other'])}: correct the flag, the "
                "episode or the time of one of these rows"
            )


def following(name: str) -> pl.Expr:
    """Whether something holds in the next row."""
    return pl.col(name).shift(-1, fill_value=False)
