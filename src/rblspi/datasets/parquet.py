"""Parquet files and folders of them, larger than memory: read row group by row group."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rblspi.datasets.columns import Columns, DataError
from rblspi.datasets.decoding import BadRows
from rblspi.datasets.tables import ROWS, Batch, TabularData
from rblspi.transitions import Transitions

Result = TypeVar("Result")

#: under which the description of how data were collected is stored in a file
METADATA = b"rblspi"


class Piece(NamedTuple):
    """A row group of a file."""

    path: Path
    group: int
    first_row: int
    rows: int


class ParquetData(TabularData):
    """Transitions in Parquet files, gone through in chunks; memory does not grow with them.

    Parameters
    ----------
    path : path or sequence of paths
        A file, a folder (all files in it that end in .parquet, in the order of their names), or
        several of them.
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
        self.pieces = [piece for file in _files(path) for piece in _row_groups(file)]
        if not self.size:
            raise DataError(f"there are no rows in {path}")
        self._columns = list(_open(self.pieces[0].path).schema_arrow.names)

    @property
    def size(self) -> int:
        """Rows, bad ones included."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def metadata(self) -> dict[str, Any]:
        """How the first file was collected, if `rblspi collect` did it."""
        stored = (_open(self.pieces[0].path).schema_arrow.metadata or {}).get(METADATA, b"{}")
        try:
            found = json.loads(stored)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def parts(self) -> list[ParquetData]:
        """The same data in parts, one for every row group; a part is little more than a name."""
        if self._dimensions is None:
            next(iter(self), None)  # finds out, if states are lists
        return [self._part(piece) for piece in self.pieces]

    def map_parts(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterator[Result]:
        """What the work makes of every part, in order."""
        parts = self.parts()
        self.bad = BadRows()
        for part in parts:
            yield work(part)
            self.bad.add(part.bad)

    def _part(self, piece: Piece) -> ParquetData:
        part = object.__new__(ParquetData)
        TabularData.__init__(part, self.columns, self.actions, self.skip_bad)
        part.pieces = [piece]
        part._columns = self._columns
        part._dimensions = self._dimensions
        return part

    def _names(self) -> tuple[list[str], str]:
        return self._columns, str(self.pieces[0].path)

    def _batches(self, wanted: list[str]) -> Iterator[Batch]:
        for path, pieces in _by_file(self.pieces):
            file = _open(path)
            absent = [name for name in wanted if name not in file.schema_arrow.names]
            if absent:
                raise DataError(f"{path} has no column {absent[0]!r}, which other files have")
            for _, group, first_row, _ in pieces:
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=wanted):
                    yield Batch(batch, str(path), first_row)
                    first_row += batch.num_rows


def _by_file(pieces: list[Piece]) -> Iterator[tuple[Path, list[Piece]]]:
    for path, group in groupby(pieces, key=lambda piece: piece.path):
        yield path, list(group)


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


def _row_groups(path: Path) -> Iterator[Piece]:
    metadata = _open(path).metadata
    first_row = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        yield Piece(path, group, first_row, rows)
        first_row += rows


def _open(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error
