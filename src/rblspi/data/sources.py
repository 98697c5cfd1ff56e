"""The rows of a log as frames of Polars: from files of any format, or from a table in memory.

Every format is read in chunks, so that files may be larger than the memory. Text stays text: the
meaning of a column follows from all of its values (`rblspi.data.survey`). Everything that is wrong
with a file is a `DataError`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rblspi.data.columns import OF_INDEX, Columns, DataError, Roles, require_unique
from rblspi.data.decision_log import SUFFIX, Heading, heading_of, transitions_in
from rblspi.data.values import is_list, is_number

PathOrPaths = str | PathLike[str] | Sequence[str | PathLike[str]]
Frames = Iterator["pl.DataFrame"]
#: tell(rows): how many rows have been read so far
TellRows = Callable[[int], object]

#: rows of a chunk: enough to be fast, and few enough to take little memory
ROWS = 2**17
#: the key in the metadata of a Parquet file for how the transitions were collected
METADATA = b"rblspi"
#: how compressed files of text end, beside their own ending
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_DELIMITERS = ",;\t|"
NOT_UTF_8 = "the text is not UTF-8: save the file as UTF-8"


class Chunk(NamedTuple):
    """Consecutive rows of a table."""

    rows: pl.DataFrame
    table: str  # the name of the table in error messages
    first_row: int  # the number of the first row in the table


@dataclass(frozen=True, eq=False)
class Table:
    """A file, a row group of a file, or a frame in memory, which is read in chunks."""

    name: str
    path: Path = Path()  # of a file, or of its copy in plain text
    frame: pl.LazyFrame | None = None  # of a table in memory
    row_group: int | None = None  # if only one of a Parquet file is read
    first_row: int = 0

    def chunks(self, wanted: list[str] | None = None) -> Iterator[Chunk]:
        """The rows, reduced to some of the columns."""
        first_row = self.first_row
        try:
            for rows in self._frames(wanted):
                if rows.height:
                    yield Chunk(rows, self.name, first_row)
                    first_row += rows.height
        except OSError as error:
            raise DataError(
                f"{self.name}, after row {first_row}: it cannot be read: {error}"
            ) from error

    def _frames(self, wanted: list[str] | None) -> Frames:
        if self.frame is not None:
            return _batches(self.frame, wanted)
        if self.row_group is not None:
            return _parquet_frames(self, wanted)
        return (READERS.get(_ending(Path(self.name))) or _by_content(self))(self, wanted)


@dataclass(frozen=True)
class Source:
    """Tables with the same columns, one after the other."""

    name: str  # in messages
    tables: tuple[Table, ...]  # those that have rows
    schemas: dict[str, dict[str, pl.DataType]]  # the types of their columns, by name of the table
    heading: Heading | None = None  # of files of decisions

    @classmethod
    @contextmanager
    def opened(cls, source: Any) -> Iterator[Source]:
        """The tables of files, of folders, or of a frame in memory."""
        if not _are_paths(source):
            yield cls._of([Table("table", frame=_lazy(source))], "table")
            return
        files = files_in(source)
        name = str(source) if isinstance(source, str | PathLike) else f"{files[0]} and others"
        with TemporaryDirectory(prefix="rblspi-") as folder:
            tables = [Table(str(f), _plain(f, Path(folder) / str(i))) for i, f in enumerate(files)]
            yield cls._of(tables, name, heading_of(files[0]))

    @classmethod
    def _of(cls, tables: list[Table], name: str, heading: Heading | None = None) -> Source:
        schemas = {}
        for table in tables:
            first = next(table.chunks(), None)
            if first is not None:
                schemas[table.name] = dict(first.rows.schema)
        with_rows = tuple(table for table in tables if table.name in schemas)
        return cls(name, with_rows, schemas, heading)

    def roles(self, columns: Columns) -> Roles:
        """The roles of the columns, which must be the same in all tables."""
        if not self.schemas:
            raise DataError(f"there are no rows in {self.name}")
        found = {name: columns.roles_in(types, name) for name, types in self.schemas.items()}
        in_all = all(roles.name("truncated") for roles in found.values())
        if columns.truncated is None and not in_all:
            found = {name: roles.without("truncated") for name, roles in found.items()}
        first, roles = next(iter(found.items()))
        for name, others in found.items():
            for field in {**roles.columns, **others.columns}:
                here, there = others.names(field), roles.names(field)
                if here != there:
                    odd = sorted({*here} ^ {*there}) or [here[0]]
                    has = "a" if odd[0] in here else "no"
                    raise DataError(
                        f"{name} has {has} column {odd[0]!r} for the {field}, unlike {first}: "
                        "give all files the same columns, or name those that matter"
                    )
        roles.require_pairs(self.name)
        return roles

    def chunks(self, wanted: list[str], tell: TellRows | None = None) -> Iterator[Chunk]:
        """All rows, reduced to these columns."""
        read = 0
        for chunk in chain.from_iterable(table.chunks(wanted) for table in self.tables):
            yield chunk
            read += chunk.rows.height
            if tell is not None:
                tell(read)

    def is_numbers(self, names: Sequence[str]) -> bool:
        """Whether columns have numbers, or lists of numbers, in all tables."""
        kinds = [types[name] for types in self.schemas.values() for name in names]
        return all(is_number(kind) or is_list(kind) for kind in kinds)


def _are_paths(source: Any) -> bool:
    return isinstance(source, str | PathLike) or (
        isinstance(source, Sequence) and all(isinstance(s, str | PathLike) for s in source)
    )


# Files -----------------------------------------------------------------------------------------


def files_in(path: PathOrPaths) -> list[Path]:
    """The files of a log: those that are named, and all tables in folders, sorted by name."""
    given = [path] if isinstance(path, str | PathLike) else list(path)
    files = list(chain.from_iterable(map(_files_below, map(Path, given))))
    if not files:
        named = ", ".join(map(str, given))
        raise DataError(f"there is no {', '.join(READERS)} file in {named}: name the files")
    endings = sorted({_ending(file) for file in files})
    if len(endings) > 1:
        raise DataError(
            f"{path} has files of several kinds, {' and '.join(endings)}: name those of one kind"
        )
    return files


def _files_below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"there is no file or folder {path}")
    below = sorted(file for file in path.rglob("*") if _ending(file) in READERS)
    dangling = [str(file) for file in below if not file.exists()]
    if dangling:
        raise DataError(f"links lead nowhere: {', '.join(dangling)}; repair or remove them")
    return [file for file in below if file.is_file()]


def _ending(path: Path) -> str:
    """The end of the name, without that of a compressed file."""
    name = path.name.lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return Path(name).suffix


def _by_content(table: Table) -> Reader:
    with table.path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"PAR1"):
        return _parquet_frames
    if start == b"ARROW1":
        return _arrow_frames
    if start.startswith(b"PK"):
        raise DataError(
            f"{table.name} is a ZIP archive or a file of Excel: unpack it, or save the table as CSV"
        )
    return _json_frames if start.lstrip().startswith((b"{", b"[")) else _csv_frames


def _batches(frame: pl.LazyFrame, wanted: list[str] | None) -> Frames:
    """The rows of a lazy frame, which is computed in parts."""
    chosen = frame if wanted is None else frame.select(wanted)
    yield from chosen.collect_batches(chunk_size=ROWS, maintain_order=True)


def open_parquet(path: Path) -> Any:
    """A Parquet file whose pages are checked as they are read; Polars would not do that."""
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error


def row_groups(table: Table) -> Iterator[tuple[Table, int]]:
    """The row groups of a Parquet file, each with the number of its rows."""
    metadata, first_row = open_parquet(table.path).metadata, 0
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        yield replace(table, row_group=number, first_row=first_row), rows
        first_row += rows


def metadata_of(table: Table) -> dict[str, Any]:
    """How the transitions in a Parquet file were collected, if ``rblspi collect`` wrote it."""
    if _ending(table.path) != ".parquet":
        return {}
    stored = (open_parquet(table.path).schema_arrow.metadata or {}).get(METADATA, b"{}")
    try:
        found = json.loads(stored)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _parquet_frames(table: Table, wanted: list[str] | None) -> Frames:
    file, group = open_parquet(table.path), table.row_group
    numbers = range(file.metadata.num_row_groups) if group is None else [group]
    try:
        for number in numbers:
            for batch in file.iter_batches(ROWS, row_groups=[number], columns=wanted):
                yield _of_arrow(batch, table.name)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{table.name} is damaged: {error}") from error


def _arrow_frames(table: Table, wanted: list[str] | None) -> Frames:
    try:
        with pa.memory_map(str(table.path)) as file:
            start = file.read(6)
            file.seek(0)
            if start == b"ARROW1":
                reader = pa.ipc.open_file(file)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                batches = iter(pa.ipc.open_stream(file))
            for batch in batches:
                batch.validate(full=True)
                rows = _of_arrow(batch, table.name)
                yield rows if wanted is None else rows.select(wanted)
    except pa.ArrowException as error:
        raise DataError(f"{table.name} is not an Arrow file, or is damaged: {error}") from error


def _of_arrow(batch: Any, name: str) -> pl.DataFrame:
    require_unique(batch.schema.names, name)
    return _flat(pl.DataFrame(batch))


def _decision_frames(table: Table, wanted: list[str] | None) -> Frames:
    """The decisions of a policy at work that have an outcome."""
    rows = _flat(transitions_in(table.path))
    yield rows if wanted is None else rows.select(wanted)


# Text ------------------------------------------------------------------------------------------


def _csv_frames(table: Table, wanted: list[str] | None) -> Frames:
    """Rows of comma-separated values as text; the first line has the names."""
    names, delimiter = _header(table)
    if not names:
        return
    frame = pl.scan_csv(
        table.path, separator=delimiter, infer_schema=False, new_columns=names, glob=False
    )
    # a line may be empty, lack fields, or end with a carriage return, which Polars does not know
    returns = pl.all().str.contains("\r", literal=True)
    odd = pl.any_horizontal(pl.col(names[-1]).is_null(), returns).any()
    checked = False
    try:
        for rows in _batches(frame, None):
            if rows.select(odd).item():
                checked = checked or _require_whole_rows(table, names, delimiter)
                rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
            yield rows if wanted is None else rows.select(wanted)
    except pl.exceptions.PolarsError as error:
        _require_whole_rows(table, names, delimiter)
        raise DataError(f"{table.name}: {' '.join(str(error).split())[:300]}") from error


def _text(table: Table) -> io.TextIOWrapper:
    return table.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _header(table: Table) -> tuple[list[str], str]:
    """The names in the first line of a file of text, and what separates them."""
    with _text(table) as file:
        line = next((line for line in file if line.strip("\r\n")), "")
    if _undecoded(line):
        raise DataError(f"{table.name}, in the line of names: {NOT_UTF_8}")
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{table.name}, in the line of names: {error}") from error
    require_unique(names, table.name)
    return [name if name.strip() else f"unnamed {i}" for i, name in enumerate(names)], delimiter


def _require_whole_rows(table: Table, names: list[str], delimiter: str) -> bool:
    """Raise an error for the first row that is no text, or has another number of fields.

    Polars takes the fields that a row lacks for missing values.
    """
    row = -1
    with _text(table) as file:
        try:
            for fields in csv.reader(file, delimiter=delimiter, strict=True):
                row += bool(fields)
                if row > 0 and fields:
                    _require_whole_row(f"{table.name}, row {row - 1}", names, fields)
        except csv.Error as error:
            raise DataError(
                f"{table.name}, row {row}: {error}: is a quotation mark missing?"
            ) from error
    return True


def _require_whole_row(place: str, names: list[str], fields: list[str]) -> None:
    bad = next((i for i, value in enumerate(fields) if _undecoded(value)), None)
    if bad is not None:
        column = f", column {names[bad]}" if bad < len(names) else ""
        raise DataError(f"{place}{column}: {NOT_UTF_8} (iconv -f latin1 -t utf-8)")
    if len(fields) != len(names):
        what = f"{place}: it has {len(fields)} fields, but the line of names has {len(names)}"
        if len(names) == 1:
            what += f"; the first line, {names[0]!r}, has to be the names of the columns"
        raise DataError(what)
    if not any(fields):
        raise DataError(f"{place}: all of its fields are empty: remove the row")


def _json_frames(table: Table, wanted: list[str] | None) -> Frames:
    """Rows of objects, one in each line or all in one list."""
    with _text(table) as file:
        first = next((line for line in file if line.strip()), "")
    with _text(table) as file:
        rows, names = _objects(table.name, file, first.lstrip().startswith("[")), wanted
        while some := list(islice(rows, ROWS)):
            if names is None:
                names = list(dict.fromkeys(name for row in some for name in row))
            yield pl.DataFrame([_series(name, [row.get(name) for row in some]) for name in names])


def _objects(name: str, file: io.TextIOBase, listed: bool) -> Iterator[dict[str, Any]]:
    """The rows of a file, which are in one list as pandas writes it, or one in each line."""
    if listed:
        for row, found in enumerate(_parsed(name, file.read())):
            yield _object(f"{name}, row {row}", found)
        return
    for row, line in enumerate(line for line in file if line.strip()):
        place = f"{name}, row {row}"
        yield _object(place, _parsed(place, line))


def _parsed(place: str, text: str) -> Any:
    if _undecoded(text):
        raise DataError(f"{place}: {NOT_UTF_8}")
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: no JSON: {error}") from error


def _object(place: str, found: Any) -> dict[str, Any]:
    """A row with one column for each part of an object: state.stock, next_state.stock."""
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise DataError(f'{place}: a {kind}, not an object: write one {{"state": ...}} a line')
    row: dict[str, Any] = {}
    for name, value in found.items():
        parts = value.items() if isinstance(value, dict) else ()
        row |= {f"{name}.{part}": v for part, v in parts} if parts else {name: value}
    return row


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _undecoded(text: str) -> bool:
    """Whether some bytes of a text are no UTF-8."""
    return not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text)


def _plain(path: Path, copy: Path) -> Path:
    """A file as it is; of text that is compressed or in UTF-16, a copy that is not."""
    if path.suffix.lower() in _COMPRESSED:
        try:
            with pa.input_stream(str(path), compression="detect") as stream, copy.open("wb") as to:
                copyfileobj(stream, to)
        except OSError as error:
            raise DataError(f"{path}: it cannot be read: {error}") from error
        path = copy
    with path.open("rb") as file:
        if file.read(2) not in (b"\xff\xfe", b"\xfe\xff"):
            return path
    decoded = copy.with_suffix(".txt")
    try:
        with (
            path.open(encoding="utf-16", newline="") as wide,
            decoded.open("w", encoding="utf-8", newline="") as text,
        ):
            copyfileobj(wide, text)
    except UnicodeError as error:
        raise DataError(f"{path} is not text in utf-16: {error}") from error
    return decoded


Reader = Callable[[Table, list[str] | None], Frames]
READERS: dict[str, Reader] = {
    ".parquet": _parquet_frames,
    ".csv": _csv_frames,
    ".tsv": _csv_frames,
    ".jsonl": _json_frames,
    ".ndjson": _json_frames,
    ".json": _json_frames,
    ".arrow": _arrow_frames,
    ".feather": _arrow_frames,
    ".ipc": _arrow_frames,
    SUFFIX: _decision_frames,
}

# Tables in memory ------------------------------------------------------------------------------


def frame_of(table: Any) -> pl.DataFrame:
    """A table of any package; values of several types in one column become text."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, dict):
        return pl.DataFrame([_series(str(name), list(table[name])) for name in table])
    if not hasattr(table, "items") and hasattr(table, "__arrow_c_stream__"):
        require_unique(getattr(table, "column_names", ()), "table")
        return pl.DataFrame(table)
    if not (hasattr(table, "columns") and hasattr(table, "items")):
        raise TypeError(
            f"a log of type {type(table).__name__} is neither a file nor a table: give the name of "
            "a file, or a table of pandas, Polars, DuckDB or Arrow"
        )
    index = getattr(getattr(table, "index", None), "names", ())
    levels = [n for n in index if str(n).lower() in OF_INDEX and n not in table.columns]
    table = table.reset_index(levels) if levels else table
    require_unique(map(str, table.columns), "table")
    return pl.DataFrame([_of_pandas(str(name), series) for name, series in table.items()])


def _lazy(table: Any) -> pl.LazyFrame:
    return table if isinstance(table, pl.LazyFrame) else _flat(frame_of(table)).lazy()


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with one column for each part of an object: state.stock, next_state.stock."""
    nested = [name for name, kind in frame.schema.items() if kind == pl.Struct]
    return frame.unnest(nested, separator=".") if nested else frame


def _of_pandas(name: str, series: Any) -> pl.Series:
    try:
        return pl.Series(name, pl.from_pandas(series))
    except (pa.ArrowException, OverflowError, pl.exceptions.PolarsError):
        missing = series.isna()
        return _series(name, [None if m else v for v, m in zip(series, missing, strict=True)])


def _series(name: str, values: list[Any]) -> pl.Series:
    """Values as a column; values of several types, or too large, become text."""
    try:
        kinds = {type(value) for value in values} - {type(None)}
        if kinds == {int, float}:
            return pl.Series(name, [None if v is None else float(v) for v in values], pl.Float64)
        if len(kinds) < 2:
            return pl.Series(name, values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        pass
    text = [v if isinstance(v, str | None) else json.dumps(v, default=str) for v in values]
    return pl.Series(name, text, pl.String)
