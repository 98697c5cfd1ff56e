"""Where the rows of a log are: in files, or in a table in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.data.arrow_values import TableChunk
from rblspi.data.columns import OF_INDEX, Columns, DataError, Roles
from rblspi.data.decision_log import Heading, heading_of
from rblspi.data.formats import array_of, chunks_of_file, files_in
from rblspi.data.tables import ROWS

#: tell(rows): how many rows have been read so far
TellRows = Callable[[int], object]


@dataclass(frozen=True)
class LogSource:
    """Tables with the same columns, one after the other."""

    name: str  # in messages
    schemas: dict[str, Any]  # of every table that has rows, by its name
    files: tuple[Path, ...] = ()
    table: Any = None  # of Arrow, if there are no files
    heading: Heading | None = None  # of files of decisions

    @classmethod
    def of(cls, source: Any) -> LogSource:
        """The tables of files, of folders, or of a frame in memory."""
        paths = isinstance(source, str | PathLike) or (
            isinstance(source, Sequence) and all(isinstance(s, str | PathLike) for s in source)
        )
        if not paths:
            table = _as_table(source)
            return cls("table", {"table": table.schema} if table.num_rows else {}, table=table)
        files = tuple(files_in(source))
        firsts = {file: next(chunks_of_file(file), None) for file in files}
        schemas = {str(f): first.rows.schema for f, first in firsts.items() if first is not None}
        name = str(source) if isinstance(source, str | PathLike) else f"{files[0]} and others"
        return cls(name, schemas, files, heading=heading_of(files[0]))

    def roles(self, columns: Columns) -> Roles:
        """The roles of the columns, which must be the same in all tables."""
        if not self.schemas:
            raise DataError(f"there are no rows in {self.name}")
        found = {name: columns.roles_in(s.names, name) for name, s in self.schemas.items()}
        first, roles = next(iter(found.items()))
        for name, others in found.items():
            for field_ in {**roles.columns, **others.columns}:
                here, there = others.names(field_), roles.names(field_)
                if here != there:
                    odd = sorted({*here} ^ {*there}) or [here[0]]
                    has = "a" if odd[0] in here else "no"
                    raise DataError(
                        f"{name} has {has} column {odd[0]!r} for the {field_}, unlike {first}: "
                        "give all files the same columns, or name those that matter"
                    )
        return roles

    def chunks(self, wanted: list[str], tell: TellRows | None = None) -> Iterator[TableChunk]:
        """All rows, reduced to these columns."""
        read = 0
        chunks = self._of_table(wanted)
        if self.files:
            with_rows = (file for file in self.files if str(file) in self.schemas)
            chunks = chain.from_iterable(chunks_of_file(file, wanted) for file in with_rows)
        for chunk in chunks:
            yield chunk
            read += chunk.rows.num_rows
            if tell is not None:
                tell(read)

    def _of_table(self, wanted: list[str]) -> Iterator[TableChunk]:
        first_row = 0
        if self.table is not None:
            for rows in self.table.select(wanted).to_batches(max_chunksize=ROWS):
                yield TableChunk(rows, self.name, first_row)
                first_row += rows.num_rows


@dataclass
class Places:
    """Which row of which table is where in the whole log."""

    starts: list[int] = field(default_factory=list)
    chunks: list[tuple[str, int]] = field(default_factory=list)

    def add(self, chunk: TableChunk, start: int) -> None:
        """Remember where a chunk starts."""
        if not self.chunks or chunk.first_row == 0:
            self.starts.append(start)
            self.chunks.append((chunk.source, chunk.first_row))

    def source(self, place: int) -> str:
        """The table of a place."""
        return self.chunks[bisect_right(self.starts, place) - 1][0]

    def __call__(self, place: int) -> str:
        """The table and the row in it, in words."""
        i = bisect_right(self.starts, place) - 1
        source, first_row = self.chunks[i]
        return f"{source}, row {first_row + place - self.starts[i]}"


def _as_table(table: Any) -> Any:
    """A table of any package in Arrow; values of several types in one column become text."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return _flat(table)
    if isinstance(table, pa.RecordBatch):
        return _flat(pa.Table.from_batches([table]))
    if isinstance(table, dict):
        columns = {str(name): array_of(list(values)) for name, values in table.items()}
        return _flat(pa.table(columns))
    if not hasattr(table, "items") and hasattr(table, "__arrow_c_stream__"):
        return _flat(pa.table(table))
    if not (hasattr(table, "columns") and hasattr(table, "items")):
        raise TypeError(
            f"a log of type {type(table).__name__} is neither a file nor a table: give the name of "
            "a file, or a table of pandas, Polars, DuckDB or Arrow"
        )
    table = _with_index(table)
    arrays = [_of_pandas(series) for _, series in table.items()]
    return _flat(pa.table(arrays, names=[str(label) for label in table.columns]))


def _with_index(frame: Any) -> Any:
    """A frame of pandas, in which times and episodes of the index are columns."""
    names = getattr(getattr(frame, "index", None), "names", ())
    levels = [n for n in names if str(n).lower() in OF_INDEX and n not in frame.columns]
    return frame.reset_index(levels) if levels else frame


def _flat(table: Any) -> Any:
    """A table with one column for each part of an object: state.stock, next_state.stock."""
    from pyarrow import types

    nested = any(types.is_struct(kind) for kind in table.schema.types)
    return table.flatten() if nested else table


def _of_pandas(series: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        missing = series.isna()
        return array_of([None if none else v for v, none in zip(series, missing, strict=True)])
