"""Parquet files and folders, read one row group at a time, so that they may exceed the memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rblspi.data.arrow_values import TableChunk, is_list, is_number
from rblspi.data.columns import Columns, DataError
from rblspi.data.decoding import BadRows
from rblspi.data.tables import ROWS, TabularData
from rblspi.data.transitions import Transitions

PathOrPaths = str | PathLike[str] | Sequence[str | PathLike[str]]

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
        As for `TableData`.
    """

    def __init__(
        self,
        path: PathOrPaths,
        columns: Columns | None = None,
        actions: int | None = None,
        skip_bad: bool = False,
    ) -> None:
        self.row_groups: list[RowGroup] = []
        schemas: dict[Path, Any] = {}
        for file in _files(path):
            opened = open_parquet(file)
            self.row_groups += _row_groups(file, opened.metadata)
            if opened.metadata.num_rows:
                schemas[file] = opened.schema_arrow
        if not schemas:
            raise DataError(f"there are no rows in {path}")
        chosen = columns or Columns()
        shared, schema = _shared_columns(chosen, schemas), next(iter(schemas.values()))
        super().__init__(shared, actions, skip_bad, chosen.discount_per, schema)

    @property
    def size(self) -> int:
        """The number of rows, including bad ones."""
        return sum(row_group.rows for row_group in self.row_groups)

    @property
    def metadata(self) -> dict[str, Any]:
        """How the first file was collected, if it was written by ``rblspi collect``."""
        stored = (open_parquet(self.row_groups[0].path).schema_arrow.metadata or {}).get(
            METADATA, b"{}"
        )
        try:
            found = json.loads(stored)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def partitions(self) -> list[ParquetData]:
        """One partition for every row group; it holds the name of the file, not the rows."""
        if self._dimensions is None:
            next(iter(self), None)  # finds the length of states that are lists
        partitions = [copy(self) for _ in self.row_groups]
        for partition, row_group in zip(partitions, self.row_groups, strict=True):
            partition.row_groups, partition.bad = [row_group], BadRows()
        return partitions

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterator[Result]:
        """Apply a function to every partition; yields the results in order."""
        partitions = self.partitions()
        self.bad = BadRows()
        for partition in partitions:
            yield work(partition)
            self.bad.add(partition.bad)

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        for path, row_groups in groupby(self.row_groups, key=lambda row_group: row_group.path):
            file = open_parquet(path)
            for _, number, first_row, _ in row_groups:
                for rows in read_row_group(file, path, number, wanted):
                    yield TableChunk(rows, str(path), first_row)
                    first_row += rows.num_rows


def _files(path: PathOrPaths) -> list[Path]:
    files = files_below(path, lambda file: file.match("*.parquet"))
    if not files:
        raise DataError(f"there is no .parquet file in {', '.join(map(str, listed(path)))}")
    return files


def listed(path: PathOrPaths) -> list[str | PathLike[str]]:
    """One path, or several, as a list."""
    return [path] if isinstance(path, str | PathLike) else list(path)


def files_below(path: PathOrPaths, wanted: Callable[[Path], bool]) -> list[Path]:
    """The files that are named, and those in folders that are wanted, sorted by name."""
    files: list[Path] = []
    for each in map(Path, listed(path)):
        if each.is_dir():
            below = sorted(file for file in each.rglob("*") if wanted(file))
            dangling = [str(file) for file in below if not file.exists()]
            if dangling:
                raise DataError(f"links lead nowhere: {', '.join(dangling)}; repair or remove them")
            files += [file for file in below if file.is_file()]
        elif each.is_file():
            files.append(each)
        else:
            raise DataError(f"there is no file or folder {each}")
    return files


def _shared_columns(columns: Columns, schemas: dict[Path, Any]) -> dict[str, tuple[str, ...]]:
    """Find the columns of transitions, which all files must have with the same kinds of values.

    Only the column of truncated episodes is left out if some of the files lack it.
    """
    found = {path: columns.found_in(schema.names, str(path)) for path, schema in schemas.items()}
    first = next(iter(schemas))
    in_all = set.intersection(*(set(fields) for fields in found.values()))
    shared = {field: names for field, names in found[first].items() if field in in_all}
    for path, schema in schemas.items():
        for field, names in shared.items():
            for name in names:
                if name not in schema.names:
                    raise DataError(f"{path} has no column {name!r}, which other files have")
                here, there = schema.field(name).type, schemas[first].field(name).type
                if _kind(here) != _kind(there):
                    raise DataError(f"{path}, column {name}: {here}, but in {first} it is {there}")
            if len(found[path][field]) > len(names):
                extra = next(name for name in found[path][field] if name not in names)
                raise DataError(f"{path} has a column {extra!r}, which {first} does not have")
    return shared


def _kind(kind: Any) -> str:
    """Whether values of an Arrow type are lists, numbers (flags may be), or anything else."""
    if is_list(kind):
        return "lists"
    return "numbers" if is_number(kind) or str(kind) == "bool" else str(kind)


def _row_groups(path: Path, metadata: Any) -> Iterator[RowGroup]:
    first_row = 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        yield RowGroup(path, number, first_row, rows)
        first_row += rows


def open_parquet(path: Path) -> Any:
    """A Parquet file whose pages are checked as they are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error


def read_row_group(
    file: Any, path: Path, row_group: int, wanted: list[str] | None
) -> Iterator[Any]:
    """The rows of a row group, reduced to some of its columns."""
    import pyarrow as pa

    try:
        yield from file.iter_batches(ROWS, row_groups=[row_group], columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged: {error}") from error
