"""Files of tables as chunks of Arrow: CSV, JSON Lines, Parquet, Arrow, and logs of decisions.

Text is read as text. What it means follows from all values of a column, see `profiles`, and not
from those at the beginning of the file. Everything that is wrong with a file is a `DataError`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rblspi.data.arrow_values import TableChunk
from rblspi.data.columns import DataError
from rblspi.data.decision_log import SUFFIX, transitions_in
from rblspi.data.parquet import PathOrPaths, files_below, listed, open_parquet, read_row_group

#: how compressed files of text end, beside their own ending
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_DELIMITERS = ",;\t|"
_CSV_ROW = re.compile(r"Row #(\d+): ?")
_CSV_COLUMN = re.compile(r"In CSV column #(\d+): ?")
#: bytes of a file of text that are parsed at a time
_BLOCK = 2**22
#: rows of JSON that become a chunk
_LINES = 2**13


def files_in(path: PathOrPaths) -> list[Path]:
    """The files of a log: those that are named, and all tables in folders, sorted by name."""
    files = files_below(path, lambda file: _ending(file) in READERS)
    if not files:
        given = ", ".join(map(str, listed(path)))
        raise DataError(f"there is no {', '.join(READERS)} file in {given}: name the files")
    endings = sorted({_ending(file) for file in files})
    if len(endings) > 1:
        raise DataError(
            f"{path} has files of several kinds, {' and '.join(endings)}: name those of one kind"
        )
    return files


def _ending(path: Path) -> str:
    """The end of the name, without that of a compressed file."""
    name = path.name.lower()
    for compressed in _COMPRESSED:
        name = name.removesuffix(compressed)
    return Path(name).suffix


def chunks_of_file(path: Path, wanted: Sequence[str] | None = None) -> Iterator[TableChunk]:
    """The rows of a file, reduced to some of its columns."""
    read = READERS.get(_ending(path)) or _by_content(path)
    first_row = 0
    try:
        for rows in read(path, wanted):
            if rows.num_rows:
                yield TableChunk(rows, str(path), first_row)
                first_row += rows.num_rows
    except OSError as error:
        raise DataError(f"{path}, after row {first_row}: it cannot be read: {error}") from error


def _by_content(path: Path) -> Callable[[Path, Sequence[str] | None], Iterator[Any]]:
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"PAR1"):
        return _parquet
    if start == b"ARROW1":
        return _arrow
    if start.startswith(b"PK"):
        raise DataError(
            f"{path} is a ZIP archive or a file of Excel: unpack it, or save the table as CSV"
        )
    return _json_lines if start.lstrip().startswith((b"{", b"[")) else _csv


# Parquet and Arrow -----------------------------------------------------------------------------


def _parquet(path: Path, wanted: Sequence[str] | None) -> Iterator[Any]:
    file = open_parquet(path)
    for number in range(file.metadata.num_row_groups):
        yield from read_row_group(file, path, number, None if wanted is None else list(wanted))


def _arrow(path: Path, wanted: Sequence[str] | None) -> Iterator[Any]:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as file:
            start = file.read(6)
            file.seek(0)
            if start == b"ARROW1":
                reader = pa.ipc.open_file(file)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                batches = iter(pa.ipc.open_stream(file))
            for batch in batches:
                batch.validate(full=True)
                yield batch if wanted is None else batch.select(list(wanted))
    except pa.ArrowException as error:
        raise DataError(f"{path} is not an Arrow file, or is damaged: {error}") from error


def _decisions(path: Path, wanted: Sequence[str] | None) -> Iterator[Any]:
    """The decisions of a policy at work that have an outcome."""
    table = transitions_in(path).to_arrow().flatten()
    yield from (table if wanted is None else table.select(list(wanted))).to_batches()


# Text ------------------------------------------------------------------------------------------


def _csv(path: Path, wanted: Sequence[str] | None) -> Iterator[Any]:
    """Rows of comma-separated values as text; the first line has the names."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    encoding, names, delimiter = _header(path)
    if not names:
        return
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            reader = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK, encoding=encoding),
                arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    include_columns=None if wanted is None else list(wanted),
                ),
            )
            yield from reader
    except pa.ArrowInvalid as error:
        raise DataError(_csv_fault(path, names, str(error))) from error
    except UnicodeError as error:
        raise DataError(f"{path} is not text in {encoding}: {error}") from error


def _csv_fault(path: Path, names: list[str], said: str) -> str:
    """Where a CSV file cannot be read, and why; rows are counted from 0, after the header."""
    row, column = _CSV_ROW.search(said), _CSV_COLUMN.search(said)
    place = f"{path}"
    if row is not None:
        place += f", row {int(row[1]) - 2}"
    if column is not None and int(column[1]) < len(names):
        place += f", column {names[int(column[1])]}"
    what = _CSV_COLUMN.sub("", _CSV_ROW.sub("", said))
    if len(names) == 1 and "Expected 1 columns" in what:
        what += f"; the first line, {names[0]!r}, has to be the names of the columns"
    if "UTF8" in what:
        what = "the text is not UTF-8: save the file as UTF-8 (iconv -f latin1 -t utf-8)"
    elif "straddling" in what:
        what = f"a row is longer than {_BLOCK:,} bytes: is a quotation mark missing?"
    return f"{place}: {' '.join(what.split())[:300]}"


def _header(path: Path) -> tuple[str, list[str], str]:
    """The encoding of a file of text, the names in its first line, and what separates them."""
    with _TextFile(path) as (file, encoding):
        line = next((line for line in file if line.strip("\r\n")), "")
    if _undecoded(line):
        raise DataError(
            f"{path}, in the line of names: the text is not UTF-8: save the file as UTF-8"
        )
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{path}, in the line of names: {error}") from error
    return encoding, names, delimiter


class _TextFile:
    """A file of text, decompressed and decoded, and its encoding."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._stream = pa.input_stream(str(path), compression="detect")
        buffered = io.BufferedReader(self._stream)
        start = buffered.peek(2)[:2]
        self.encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        decoder = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        self.file = io.TextIOWrapper(buffered, decoder, "surrogateescape", newline="")

    def __enter__(self) -> tuple[io.TextIOWrapper, str]:
        return self.file, self.encoding

    def __exit__(self, *error: object) -> None:
        self.file.close()


def _json_lines(path: Path, wanted: Sequence[str] | None) -> Iterator[Any]:
    """Rows of objects, one in each line."""
    with _TextFile(path) as (file, _):
        first = next((line for line in file if line.strip()), "")
    with _TextFile(path) as (file, _):
        read = _listed_objects if first.lstrip().startswith("[") else _objects
        yield from _batches(read(path, file), wanted)


def _listed_objects(path: Path, file: io.TextIOWrapper) -> Iterator[dict[str, Any]]:
    """The rows of a list of objects, as pandas writes them."""
    text = file.read()
    if _undecoded(text):
        raise DataError(f"{path}: the text is not UTF-8: save the file as UTF-8")
    try:
        rows = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: no JSON: {error}") from error
    for row, found in enumerate(rows):
        yield _object(path, row, found)


def _batches(objects: Iterator[dict[str, Any]], wanted: Sequence[str] | None) -> Iterator[Any]:
    names: list[str] | None = None if wanted is None else list(wanted)
    while rows := list(islice(objects, _LINES)):
        if names is None:
            names = list(dict.fromkeys(name for row in rows for name in row))
        yield _as_batch(names, rows)


def _objects(path: Path, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    row = 0
    for line in lines:
        if not line.strip():
            continue
        if _undecoded(line):
            raise DataError(f"{path}, row {row}: the text is not UTF-8: save the file as UTF-8")
        try:
            found = json.loads(line, object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, row {row}: no JSON: {error}") from error
        yield _object(path, row, found)
        row += 1


def _object(path: Path, row: int, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise DataError(
            f'{path}, row {row}: a {kind}, not an object: write one {{"state": ...}} a line'
        )
    return _flat(found)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with one column for each part of an object: state.stock, next_state.stock."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        parts = value.items() if isinstance(value, dict) else ()
        found |= {f"{name}.{part}": v for part, v in parts} if parts else {name: value}
    return found


def _undecoded(line: str) -> bool:
    """Whether some bytes of a line are not text."""
    return not line.isascii() and any("\udc80" <= letter <= "\udcff" for letter in line)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _as_batch(names: list[str], rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    arrays = [array_of([row.get(name) for row in rows]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def array_of(values: list[Any]) -> Any:
    """Values as an Arrow array; values of several types, or too large, become text."""
    import pyarrow as pa

    try:
        kinds = {type(value) for value in values} - {type(None)}
        if kinds == {int, float}:
            return pa.array([None if v is None else float(v) for v in values], pa.float64())
        if len(kinds) < 2:
            return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    return pa.array([None if v is None else _as_text(v) for v in values], pa.string())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


READERS: dict[str, Callable[[Path, Sequence[str] | None], Iterator[Any]]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_lines,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
    SUFFIX: _decisions,
}
