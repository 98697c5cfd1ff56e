"""Logs as people have them: any file or table, rows of episodes or of transitions.

A log is read twice. The first time shows what its columns hold, so that words, dates and missing
values are understood by all rows and not by the first ones (`survey`). The second time makes
transitions of its rows, which are kept in memory or, if they would take too much of it, in
temporary files. Parquet files whose rows are transitions in numbers need neither: they are read
anew in every pass, one row group at a time, and may be read by the workers of a cluster.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import numpy as np
import polars as pl

from rblspi.data.columns import Columns, DataError, Roles
from rblspi.data.dataset import BadRows, Dataset, Facts
from rblspi.data.decoding import Clock, Decoder
from rblspi.data.encoding import Encoding, Input, Naming
from rblspi.data.episodes import Joiner, sorted_on_disk, sorted_rows
from rblspi.data.periods import TimeKind
from rblspi.data.sources import (
    ROWS,
    Chunk,
    Source,
    Table,
    TellRows,
    metadata_of,
    row_groups,
)
from rblspi.data.survey import Survey
from rblspi.data.transitions import Transitions, cut_between, rechunked
from rblspi.data.values import is_list

Result = TypeVar("Result")

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
) -> Log:
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
        Bytes of transitions that may be kept in memory. More than these go to temporary files.
    names : tuple, optional
        The encoding of states and the names of actions of another log, which this one has to have.
    tell : callable, optional
        Called with the number of rows that have been read so far, in each of two readings.
    """
    with Source.opened(source) as opened:
        columns = columns or Columns()
        if opened.heading is not None:  # the names of the policy that made the decisions
            actions = actions or len(opened.heading.actions)
            names = names or opened.heading.naming
            columns = _elapsed_of_decisions(opened, columns)
        roles = opened.roles(columns)
        _require_known_ends(roles, opened.name)
        if _are_transitions(opened, roles):
            return _read_anew(opened, roles, actions, skip_bad)
        return _converted(opened, roles, actions, skip_bad, memory, names, tell)


class Log(Dataset):
    """The transitions of a log, in parts; they can be iterated over again and again.

    `read_log` makes it.

    Attributes
    ----------
    roles : Roles
        Which columns hold what.
    facts : Facts
        The encoding of states, the names of actions, and what else is known.
    bad : BadRows
        The rows that were left out because something is wrong with them.
    """

    def __init__(
        self,
        facts: Facts,
        roles: Roles,
        parts: Sequence[Part],
        about: str,
        bad: BadRows,
        decoder: Decoder | None = None,
    ) -> None:
        super().__init__(facts)
        self.roles, self._parts, self._about = roles, list(parts), about
        self.bad = self._bad = bad  # those that were found when the log was opened
        self._decoder = decoder  # of rows that are read in every pass

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions, in chunks."""
        for part in self._counted():
            yield from part

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterator[Result]:
        """Apply a function to every part; yields the results in order."""
        return map(work, self._counted())

    def partitions(self) -> Sequence[Part]:
        """Row groups of files, or transitions that were read already."""
        return self._parts

    def _counted(self) -> Iterator[Part]:
        """The parts, one after the other; the bad rows that they find are counted anew."""
        self.bad = deepcopy(self._bad)
        for part in self._parts:
            try:
                yield part
            finally:
                self.bad.add(part.bad)

    def limit_actions(self, actions: int) -> None:
        """Set the number of actions. Rows of files that are read from now on must not have more."""
        super().limit_actions(actions)
        if self._decoder is not None:
            self._decoder.actions = actions

    def with_decisions(self, decisions: str | PathLike[str] | Sequence[Any]) -> Log:
        """These transitions, and after them those of decisions, with the names of this log.

        Parameters
        ----------
        decisions : path, or sequence of paths
            What `rblspi.serving.Decisions` or ``rblspi serve`` wrote.
        """
        facts = self.facts
        names = None if facts.encoding is None else (facts.encoding, facts.action_names)
        more = read_log(decisions, Columns(discount_per=facts.discount_per), names=names)
        first, own = (next(iter(part)).observations[0] for part in (self, more))
        if own.size != first.size:
            raise DataError(
                f"{decisions}: a state has {own.size} numbers, but {first.size} in the "
                "log: name the log that the policy was learnt from"
            )
        known = None if facts.actions is None else max(facts.actions, more.actions or 0)
        both = replace(
            facts,
            name=f"{facts.name} and {decisions}",
            size=facts.size + more.size,
            actions=known,
            left_out=facts.left_out + more.facts.left_out,
        )
        parts = [replace(part, shape=first.shape) for part in more.partitions()]
        about = f"{self}\ndecisions  {more.size:,} with their outcomes"
        bad = deepcopy(self._bad)
        bad.add(more.bad)
        return Log(both, self.roles, [*self._parts, *parts], about, bad, self._decoder)

    def __str__(self) -> str:
        """The roles of the columns as a table, and what was left out."""
        return "\n".join(filter(None, (self._about, *_sentences(self._bad, self.facts.left_out))))


def _sentences(bad: BadRows, left_out: int) -> Iterator[str]:
    if bad.count:
        yield str(bad)
    if left_out:
        yield (
            f"{left_out:,} last rows of episodes that did not terminate left out: their next state "
            "is not known"
        )


@dataclass
class Part:
    """A partition of a log, which a worker of a cluster can read."""

    chunks: Iterable[Transitions]
    size: int
    bad: BadRows = field(default_factory=BadRows)  # that the latest pass found
    shape: tuple[int, ...] | None = None  # of an observation, if it has to be another one

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the chunks."""
        for chunk in self.chunks:
            yield chunk if self.shape is None else chunk.reshaped(self.shape)


# Rows that are transitions -------------------------------------------------------------------


def _are_transitions(source: Source, roles: Roles) -> bool:
    """Whether Parquet files have rows of transitions in numbers."""
    if any(table.path.suffix != ".parquet" for table in source.tables):
        return False
    if roles.of_episodes or roles.name("terminated") is None:
        return False
    if roles.categorical or roles.choices.missing != "error":
        return False
    if not all(
        types[name].is_integer()
        for types in source.schemas.values()
        for name in roles.names("action")
    ):
        return False  # a first pass tells whether they are whole, and between which bounds
    fields = ("state", "next_state", "action", "reward", "elapsed")
    return source.is_numbers([name for field in fields for name in roles.names(field)])


def _read_anew(source: Source, roles: Roles, actions: int | None, skip_bad: bool) -> Log:
    """A log that is read in every pass, row group by row group."""
    types = next(iter(source.schemas.values()))
    states, encoding = roles.names("state"), None
    if not is_list(types[states[0]]):
        whole = len(states) == 1 and all(t[states[0]].is_integer() for t in source.schemas.values())
        encoding = Encoding(tuple(Input(name, whole=whole) for name in states))
    clock = _clock(source, roles)
    decoder = Decoder(roles, encoding, actions=actions, skip_bad=skip_bad, clock=clock)
    if encoding is None:  # finds the length of the lists
        sample = replace(decoder, skip_bad=True, bad=BadRows())
        sample.rows(next(source.chunks(roles.used)))
        decoder.dimensions = sample.dimensions
    parts = []
    for group, rows in chain.from_iterable(map(row_groups, source.tables)):
        bad = BadRows()
        parts.append(Part(_RowGroup(group, decoder, bad), rows, bad))
    facts = Facts(
        source.name,
        size=sum(part.size for part in parts),
        actions=actions,
        discount_per=roles.choices.discount_per,
        metadata=metadata_of(source.tables[0]),
    )
    about = roles.table(lambda role, name: str(types.get(name, "")))
    return Log(facts, roles, parts, about, BadRows(), decoder)


@dataclass
class _RowGroup:
    """Transitions in a row group of a file."""

    table: Table
    decoder: Decoder
    bad: BadRows  # those of the latest pass

    def __iter__(self) -> Iterator[Transitions]:
        self.bad.clear()
        decoder = replace(self.decoder, bad=self.bad, tables=[])
        for chunk in self.table.chunks(decoder.roles.used):
            found = _transitions_in(chunk, decoder)
            if found is not None:
                yield found


def _transitions_in(chunk: Chunk, decoder: Decoder) -> Transitions | None:
    """Rows that are transitions already; None if all of them are bad."""
    roles, col = decoder.roles, pl.col
    rows = decoder.rows(chunk)
    good = rows.filter("good")
    if not good.height:
        return None
    if roles.name("terminated") is None:
        cut = roles.name("truncated") is None and roles.choices.ends == "truncated"
        ends = pl.lit(False) if cut else col("done") & ~col("truncated")
        good = good.with_columns(terminated=ends)
    good = good.with_columns(truncated=col("truncated") | (col("done") & ~col("terminated")))
    found = decoder.transitions(good)
    # A row that is left out may have been the last one of its episode.
    inferred = not _tells_cuts(roles) or good.height < rows.height
    return found.with_inferred_truncation() if inferred else found


def _tells_cuts(roles: Roles) -> bool:
    return bool(roles.name("truncated") or roles.name("done"))


# Rows that are converted once ------------------------------------------------------------------


def _converted(
    source: Source,
    roles: Roles,
    actions: int | None,
    skip_bad: bool,
    memory: int,
    names: Naming | None,
    tell: TellRows | None,
) -> Log:
    """A log whose transitions are made once and kept, in memory or in temporary files."""
    survey = Survey.of(source, roles, tell)
    encoding, action_names = names or (survey.encoding, survey.action_names)
    given = len(action_names) or actions
    clock = _clock(source, roles, survey)
    decoder = Decoder(
        roles, encoding, action_names, given, skip_bad, clock, known_episodes=survey.episodes
    )
    width = 8 if encoding is None else len(encoding.names)
    needed = survey.rows * 8 * (2 * width + 10)  # bytes
    fits = needed <= memory
    times = roles.name("time")
    joiner = Joiner(decoder, times is not None and survey.profiles[times].kind == "date")
    chunks = source.chunks(roles.used, tell)
    found: Iterator[Transitions]
    if roles.of_episodes:
        rows: Iterator[pl.DataFrame] = map(decoder.rows, chunks)
        if not survey.in_order:
            parts = 1 + 4 * needed // memory
            rows = sorted_rows(rows) if fits else sorted_on_disk(rows, len(survey.episodes), parts)
        found = (decoder.transitions(joined) for joined in joiner.joined(rows) if joined.height)
    else:
        named = ((chunk.table, _transitions_in(chunk, decoder)) for chunk in chunks)
        good = ((name, chunk) for name, chunk in named if chunk is not None)
        found = cut_between(good, inferred=not _tells_cuts(roles))
    folder, kept, seen = None if fits else _Folder(), [], 0
    for chunk in rechunked(found, ROWS):
        seen = max(seen, 1 + int(chunk.actions.max()))
        kept.append(Part([chunk] if folder is None else folder.store(chunk), chunk.size))
    if not kept:
        why = "\n".join(_sentences(decoder.bad, joiner.left_out)) or "no rows"
        raise DataError(f"{source.name} has no transitions: {why}")
    facts = Facts(
        source.name,
        sum(part.size for part in kept),
        given or seen,
        encoding,
        action_names,
        roles.choices.discount_per,
        in_order=survey.in_order,
        left_out=joiner.left_out,
    )
    return Log(facts, roles, kept, str(survey), decoder.bad)


class _Folder:
    """A temporary folder, which is removed when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="rblspi-"))
        self.files = 0
        weakref.finalize(self, shutil.rmtree, self.path, True)

    def store(self, chunk: Transitions) -> _Stored:
        """Write transitions to a file."""
        self.files += 1
        path = self.path / f"{self.files}.npz"
        np.savez(path, **chunk.columns())  # type: ignore[arg-type]
        return _Stored(path, self)


@dataclass(frozen=True)
class _Stored:
    """Transitions in a file of NumPy."""

    path: Path
    folder: _Folder

    def __iter__(self) -> Iterator[Transitions]:
        with np.load(self.path) as columns:
            yield Transitions(**columns)


# What has to be known -----------------------------------------------------------------------


def _require_known_ends(roles: Roles, name: str) -> None:
    """Raise an error if nothing tells whether episodes end in terminal states."""
    has = {field for field in ("terminated", "truncated", "done") if roles.name(field)}
    ends = roles.choices.ends
    how = (
        "say ends=terminated (a terminal state), ends=truncated (a cut), or ends=N if a time limit "
        "cuts episodes short after N rows"
    )
    if roles.of_episodes and roles.name("next_allowed"):
        raise DataError(
            f"{name}: which actions are allowed ({roles.name('next_allowed')}) is read from rows "
            "of transitions, which have columns of next states"
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
        roles.choices.find("terminated", [*roles.present], name, required=True)
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


def _clock(source: Source, roles: Roles, survey: Survey | None = None) -> Clock | None:
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
    if survey is not None and survey.profiles[name].kind == "date":
        kind = "dates"
    elif next(iter(source.schemas.values()))[name] == pl.Duration:
        kind = "durations"
    elif source.heading is not None and period.is_duration:
        kind = "durations"  # decisions are in seconds
    return Clock(roles.name("elapsed") is None, period.units(kind, name))


def _elapsed_of_decisions(opened: Source, columns: Columns) -> Columns:
    """The columns, with the one of the time to the next state if that matters."""
    if columns.discount_per is None:
        return columns
    if not all("elapsed" in schema for schema in opened.schemas.values()):
        raise DataError(
            f"discount_per={columns.discount_per}: the outcomes in {opened.name} do not say how "
            "long it took until the next state: record them with elapsed="
        )
    return replace(columns, elapsed="elapsed")
