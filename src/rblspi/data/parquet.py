"""Parquet files and folders, read one row group at a time, so that they may exceed the memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rblspi.data.columns import OPTIONAL, Columns, DataError
from rblspi.data.decoding import BadRows, TableChunk
from rblspi.data.tables import ROWS, TabularData
from rblspi.data.transitions import Transitions

Result = TypeVar("Result")

#: the key in a file's metadata for how the transitions were collected
METADATA = b"rblspi"


class RowGroup(NamedTuple):
    """A row group of a file."""

    path: Path
    number: int
    first_row: int
    rows: int


class ParquetData(TabularData):
    """Transitions in Parquet files, read in chunks. Each row group is a partition.

    Parameters
    ----------
    path : path or sequence of paths
        A file, a folder (all files below it that end in .parquet, sorted by name), or several of
        them.
    columns, actions, skip_bad
        As for `TabularData`.
    """

    def __init__(
        self,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        columns: Columns | None = None,
        actions: int | None = None,
        skip_bad: bool = False,
    ) -> None:
        super().__init__(columns, actions, skip_bad)
        self.row_groups: list[RowGroup] = []
        names: list[list[str]] = []  # the columns of every file
        for file in _files(path):
            opened = _open(file)
            self.row_groups += _row_groups(file, opened.metadata)
            names += [opened.schema_arrow.names] * (opened.metadata.num_rows > 0)
        if not self.size:
            raise DataError(f"there are no rows in {path}")
        not_needed = [name for name in OPTIONAL if getattr(self.columns, name) is None]
        self._columns = [
            name
            for name in names[0]
            if name not in not_needed or all(name in others for others in names)
        ]

    @property
    def size(self) -> int:
        """The number of rows, including bad ones."""
        return sum(row_group.rows for row_group in self.row_groups)

    @property
    def metadata(self) -> dict[str, Any]:
        """How the first file was collected, if it was written by `rblspi collect`."""
        stored = (_open(self.row_groups[0].path).schema_arrow.metadata or {}).get(METADATA, b"{}")
        try:
            found = json.loads(stored)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def partitions(self) -> list[ParquetData]:
        """One partition for every row group; it holds the name of the file, not the rows."""
        if self._dimensions is None:
            next(iter(self), None)  # finds the length of states that are lists
        return [self._partition(row_group) for row_group in self.row_groups]

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterator[Result]:
        """Apply a function to every partition; yields the results in order."""
        partitions = self.partitions()
        self.bad = BadRows()
        for partition in partitions:
            yield work(partition)
            self.bad.add(partition.bad)

    def _partition(self, row_group: RowGroup) -> ParquetData:
        partition = copy(self)
        partition.bad = BadRows()
        partition.row_groups = [row_group]
        return partition

    def _names(self) -> tuple[list[str], str]:
        return self._columns, str(self.row_groups[0].path)

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        for path, row_groups in groupby(self.row_groups, key=lambda row_group: row_group.path):
            file = _open(path)
            absent = [name for name in wanted if name not in file.schema_arrow.names]
            if absent:
                raise DataError(f"{path} has no column {absent[0]!r}, which other files have")
            for _, number, first_row, _ in row_groups:
                for rows in file.iter_batches(ROWS, row_groups=[number], columns=wanted):
                    yield TableChunk(rows, str(path), first_row)
                    first_row += rows.num_rows


def _files(path: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    given = [path] if isinstance(path, str | PathLike) else list(path)
    files: list[Path] = []
    for each in map(Path, given):
        if each.is_dir():
            files += sorted(file for file in each.rglob("*.parquet") if file.is_file())
        elif each.is_file():
            files.append(each)
        else:
            raise DataError(f"there is no file or folder {each}")
    if not files:
        raise DataError(f"there is no .parquet file in {', '.join(map(str, given))}")
    return files


def _row_groups(path: Path, metadata: Any) -> Iterator[RowGroup]:
    first_row = 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        yield RowGroup(path, number, first_row, rows)
        first_row += rows


def _open(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error
