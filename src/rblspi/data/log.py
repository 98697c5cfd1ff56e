"""Logs as people have them: any file or table, rows of episodes or of transitions.

A log is read twice. The first time shows what its columns hold, so that words, dates and missing
values are understood by all rows and not by the first ones (`survey`). The second time makes
transitions of its rows, which are kept in memory or, if they would take too much of it, in a
temporary Parquet file (`kept`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from rblspi.core.types import Mask
from rblspi.data.arrow_values import is_duration, is_list, is_number
from rblspi.data.columns import Columns, DataError, Roles
from rblspi.data.decoding import BadRows
from rblspi.data.encoding import Naming
from rblspi.data.kept import Kept, Part
from rblspi.data.log_order import Joiner, sorted_on_disk, sorted_rows
from rblspi.data.log_rows import Clock, LogDecoder, LogRows
from rblspi.data.log_source import LogSource, Places, TellRows
from rblspi.data.parquet import ParquetData
from rblspi.data.periods import TimeKind
from rblspi.data.survey import Survey, survey
from rblspi.data.tables import ROWS
from rblspi.data.transitions import Transitions, cut_between, rechunked

#: bytes of transitions that are kept in memory
MEMORY = 2**30


def read_log(
    source: Any,
    columns: Columns | None = None,
    *,
    actions: int | None = None,
    skip_bad: bool = False,
    memory: int = MEMORY,
    names: Naming | None = None,
    tell: TellRows | None = None,
) -> LogData | ParquetData:
    """Open a log of any form.

    Parameters
    ----------
    source : path, sequence of paths, or table
        Files, or folders with files: CSV, also compressed (.csv.gz), JSON Lines (.jsonl), Parquet
        or Arrow; or what `rblspi.serving.Decisions` wrote. Or a table in memory: a frame of pandas
        or Polars, a query of DuckDB, a table of Arrow, or anything else with
        ``__arrow_c_stream__``.
    columns : Columns, optional
        Which columns hold what; by default this is guessed from their names.
    actions : int, optional
        The number of actions; if it is given, a larger action is an error.
    skip_bad : bool
        Whether to leave bad rows out and count them. By default a bad row is an error.
    memory : int
        Bytes of transitions that may be kept in memory. More than these go to a temporary file.
    names : tuple, optional
        The encoding of states and the names of actions of another log, which this one has to have.
    tell : callable, optional
        Called with the number of rows that have been read so far, in each of two readings.

    Returns
    -------
    LogData or ParquetData
        The latter if the log is in Parquet files whose rows are transitions in numbers: nothing
        has to be converted then, and they are read anew in every pass.
    """
    opened = LogSource.of(source)
    if opened.heading is not None:  # the names of the policy that made the decisions
        actions = actions or len(opened.heading.actions)
        names = names or opened.heading.naming
    columns = columns or Columns()
    if opened.heading is not None and columns.discount_per is not None:
        columns = _elapsed_of_decisions(opened, columns)
    roles = opened.roles(columns)
    if opened.files and _are_transitions(opened, roles):
        states, after = roles.names("state"), roles.names("next_state")
        columns = replace(columns, state=states, next_state=after)
        return ParquetData(list(opened.files), columns, actions, skip_bad)
    return LogData(
        opened, roles, actions=actions, skip_bad=skip_bad, memory=memory, names=names, tell=tell
    )


def _elapsed_of_decisions(opened: LogSource, columns: Columns) -> Columns:
    """The columns with that in which decisions have the time to the next state, if any has."""
    if not all("elapsed" in schema.names for schema in opened.schemas.values()):
        raise DataError(
            f"discount_per={columns.discount_per}: the outcomes in {opened.name} do not say how "
            "long it took until the next state: record them with elapsed="
        )
    return replace(columns, elapsed="elapsed")


def is_log(data: Any) -> bool:
    """Whether this is a file or a table that `read_log` reads, and not a set of transitions."""
    if isinstance(data, str | PathLike) or hasattr(data, "__arrow_c_stream__"):
        return True
    return hasattr(data, "columns") and hasattr(data, "items") and not isinstance(data, LogData)


def _are_transitions(source: LogSource, roles: Roles) -> bool:
    """Whether Parquet files have rows of transitions in numbers."""
    if any(file.suffix != ".parquet" for file in source.files):
        return False
    if roles.of_episodes or roles.name("terminated") is None:
        return False
    if roles.categorical or roles.choices.missing != "error":
        return False
    fields = ("state", "next_state", "action", "reward", "elapsed")
    used = [name for field in fields for name in roles.names(field)]
    kinds = [schema.field(name).type for schema in source.schemas.values() for name in used]
    return all(is_number(kind) or is_list(kind) for kind in kinds)


class LogData:
    """The transitions of a log, made once; they can be iterated over again and again.

    `read_log` makes it.

    Attributes
    ----------
    roles : Roles
        Which columns hold what.
    survey : Survey
        What they hold.
    encoding : Encoding or None
        How a state becomes an observation; None if states are lists.
    action_names : tuple of str
        The names of the actions 0, 1, ...; () if they are numbers in the log.
    actions : int
        The number of actions.
    size : int
        The number of transitions.
    bad : BadRows
        The rows that were left out because something is wrong with them.
    left_out : int
        The last rows of episodes that did not terminate, whose next state is not known.
    """

    def __init__(
        self,
        source: LogSource,
        roles: Roles,
        *,
        actions: int | None = None,
        skip_bad: bool = False,
        memory: int = MEMORY,
        names: Naming | None = None,
        tell: TellRows | None = None,
    ) -> None:
        _require_known_ends(roles, source.name)
        if roles.names("next_allowed"):
            raise DataError(
                f"{source.name}: which actions are allowed ({roles.name('next_allowed')}) is read "
                "from Parquet files whose rows are transitions in numbers, as rblspi collect "
                "writes them, and not from this log"
            )
        self.name, self.roles = source.name, roles
        self.survey: Survey = survey(source, roles, tell)
        self.encoding, self.action_names = names or (
            self.survey.encoding,
            self.survey.action_names,
        )
        given = len(self.action_names) or actions
        self.discount_per = roles.choices.discount_per
        clock = _clock(source, roles, self.survey)
        decoder = LogDecoder(
            *(roles.columns, given, None, skip_bad),
            roles=roles,
            encoding=self.encoding,
            action_names=self.action_names,
            known_episodes=self.survey.episodes,
            clock=clock,
        )
        reading = _Reading(source, roles, decoder, _has_dates(self.survey, roles.name("time")))
        in_memory = self.survey.rows * reading.row_bytes <= memory
        transitions = reading.transitions(self.survey, memory, tell)
        self._kept = Kept(rechunked(transitions, ROWS), in_memory)
        self.size, self.actions = self._kept.size, given or self._kept.actions
        self.bad: BadRows = decoder.bad
        self.left_out: int = reading.joiner.left_out
        self.metadata: dict[str, Any] = {}
        if not self.size:
            raise DataError(f"{self.name} has no transitions: {self._left_out() or 'no rows'}")

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions, in chunks."""
        return iter(self._kept.chunks)

    def partitions(self) -> list[Part]:
        """One partition for every chunk."""
        return self._kept.partitions()

    def __str__(self) -> str:
        """The roles of the columns as a table, and what was left out."""
        return "\n".join(filter(None, (str(self.survey), self._left_out())))

    def _left_out(self) -> str:
        sentences = [str(self.bad)] if self.bad.count else []
        if self.left_out:
            sentences.append(
                f"{self.left_out:,} last rows of episodes that did not terminate left out: their "
                "next state is not known"
            )
        return "\n".join(sentences)


def _require_known_ends(roles: Roles, name: str) -> None:
    """Raise an error if nothing tells whether episodes end in terminal states."""
    has = {field for field in ("terminated", "truncated", "done") if roles.name(field)}
    ends = roles.choices.ends
    how = (
        "say ends=terminated (a terminal state), ends=truncated (a cut), or ends=N if a time limit "
        "cuts episodes short after N rows"
    )
    if "terminated" in has or {"done", "truncated"} <= has:
        return
    if isinstance(ends, int) and not roles.of_episodes:
        raise DataError(
            f"ends={ends} is for rows of episodes, but {name} has columns of next states: "
            "say ends=terminated or ends=truncated, or name the column of terminal states with "
            "terminated="
        )
    if "done" not in has and not roles.of_episodes:
        roles.choices.found_in(roles.present, name)  # says that no column tells
    if not has and roles.name("episode") is None and not roles.by_file:
        raise DataError(
            f"{name} has neither columns of next states nor a column of episodes, only "
            f"{', '.join(roles.present)}: say which ones they are, next_state=NAMES or "
            "episode=NAME in --columns or Columns"
        )
    if ends is None and "done" in has:
        raise DataError(
            f"{name}, column {roles.name('done')}: it may mark terminal states or the cuts of a "
            f"time limit, which lead to different values: {how}"
        )
    if ends is None:
        raise DataError(
            f"nothing in {name} tells whether its episodes end in a terminal state or were cut "
            f"short: name the column of terminal states with terminated=, or {how}"
        )


def _clock(source: LogSource, roles: Roles, found: Survey) -> Clock | None:
    """How long rows take, by a column of that or by the time of the next row."""
    period = roles.choices.period
    if period is None:
        return None
    name = roles.name("elapsed") or (roles.name("time") if roles.of_episodes else None)
    if name is None:
        advice = "the time with time=, or " * roles.of_episodes
        raise DataError(
            f"discount_per={period.text}: nothing in {source.name} tells how long its rows take: "
            f"name the column of {advice}the time until the next state with elapsed="
        )
    kind: TimeKind = "numbers"
    if _has_dates(found, name):
        kind = "dates"
    elif is_duration(next(iter(source.schemas.values())).field(name).type):
        kind = "durations"
    elif source.heading is not None and period.is_duration:
        kind = "durations"  # decisions are in seconds
    return Clock(roles.name("elapsed") is None, period.units(kind, name))


def _has_dates(found: Survey, name: str | None) -> bool:
    return name is not None and found.profiles[name].kind == "date"


class _Reading:
    """The second reading of a log, which makes transitions of its rows."""

    def __init__(self, source: LogSource, roles: Roles, decoder: LogDecoder, dated: bool) -> None:
        self.source, self.roles, self.decoder = source, roles, decoder
        self.places = Places()
        self.joiner = Joiner(roles, self.places, decoder.clock, dated)

    @property
    def row_bytes(self) -> int:
        """The memory of a row, about."""
        encoding = self.decoder.encoding
        width = 8 if encoding is None else len(encoding.names)
        return 8 * (2 * width + 10)

    def transitions(
        self, found: Survey, memory: int, tell: TellRows | None
    ) -> Iterator[Transitions]:
        """The transitions in order, in chunks of any size."""
        rows = self._rows(tell)
        if not self.roles.of_episodes:
            knows_cuts = self.roles.name("truncated") or self.roles.name("done")
            yield from cut_between(self._as_they_are(rows, not knows_cuts), not knows_cuts)
            return
        needed = found.rows * self.row_bytes
        if not found.in_order and needed <= memory:
            rows = sorted_rows(rows)
        elif not found.in_order:
            rows = sorted_on_disk(rows, len(found.episodes), 1 + 4 * needed // memory)
        yield from self.joiner.transitions(rows)

    def _rows(self, tell: TellRows | None) -> Iterator[LogRows]:
        for chunk in self.source.chunks(self.roles.used, tell):
            self.places.add(chunk, self.decoder.read)
            yield self.decoder.rows(chunk)

    def _as_they_are(
        self, chunks: Iterable[LogRows], inferred: bool
    ) -> Iterator[tuple[str, Transitions]]:
        """Rows that are transitions already, each chunk with the name of its table."""
        for rows in chunks:
            good = rows.good
            if not good.any():
                continue
            terminated = self._terminated(rows)
            cut = (rows.truncated | rows.done) & ~terminated
            clock = self.decoder.clock
            found = Transitions(
                *(rows.states, rows.actions, rows.rewards, rows.next_states),
                terminated=terminated,
                truncated=cut,
                elapsed=None if clock is None else rows.elapsed / clock.period,
            ).select(good)
            found.require_shapes()
            # A row that is left out may have been the last one of its episode.
            found = found.with_inferred_truncation() if inferred or not good.all() else found
            yield self.places.source(int(rows.places[0])), found

    def _terminated(self, rows: LogRows) -> Mask:
        if self.roles.name("terminated") is not None:
            return rows.terminated
        cut = self.roles.name("truncated") is None and self.roles.choices.ends == "truncated"
        return np.zeros_like(rows.done) if cut else rows.done & ~rows.truncated
