"""Runs that were made elsewhere: from a table that `export` wrote, into a store.

A run is taken in with its seed, its time and the version of the code that made it, so that it
counts as if it had been made here. Of runs in a table of block means, only these means are known.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rblspi.core.check import LARGEST_COUNT
from rblspi.experiments.definitions import Curve, canonical
from rblspi.experiments.export import COLUMNS, OF_CURVE, OF_RUN, WHOLE, require_known
from rblspi.experiments.results import SERIES
from rblspi.experiments.results_store import Arrays, Record, Store, StoredRun
from rblspi.experiments.summary import block_means

Row = Mapping[str, Any]
Kind = TypeVar("Kind", list[Any], dict[str, Any])

#: the lowest and the highest number that a column may hold, where it holds numbers
RANGES = {
    **dict.fromkeys(("seed", "steps"), (0, LARGEST_COUNT)),
    **dict.fromkeys(("episodes", "episode"), (1, LARGEST_COUNT)),
    "seconds": (0.0, math.inf),
    "length": (1.0, float(np.iinfo(np.int32).max)),
    "return": (-math.inf, math.inf),
    "under_limit": (0.0, 1.0),
}


class ImportedTableError(ValueError):
    """A table that does not hold runs as `export` writes them."""


def read_runs(path: Path) -> list[StoredRun]:
    """Read the runs of a table.

    Parameters
    ----------
    path : Path
        A table whose name ends in .csv, .csv.gz or .parquet. It does not say what came out of
        evaluations of the greedy policy: such runs are read as runs without.

    Raises
    ------
    ImportedTableError
        If the table is not one of `export`.
    """
    found = [_run(path, list(rows)) for _, rows in groupby(_rows(path), _identity)]
    if not found:
        raise ImportedTableError(
            f"{path} holds no runs. Those on logged samples, as on the chain, are not exported"
        )
    return found


def contradictions(runs: Iterable[StoredRun], store: Store) -> list[StoredRun]:
    """Runs whose seed and code are in a store with other numbers.

    The same code with the same seed gives the same run, unless processors round otherwise.
    """
    stored: dict[tuple[str, str], dict[int, Arrays]] = {}
    found = []
    for curve, record, arrays in runs:
        key = (curve.digest, record.code)
        if key not in stored:
            stored[key] = {other.seed: known for other, known in store.runs(curve, record.code)}
        known = stored[key].get(record.seed)
        if known is not None and not _agree(arrays, known):
            found.append((curve, record, arrays))
    return found


def _agree(one: Arrays, other: Arrays) -> bool:
    """Whether two runs have the same means in the blocks that both of them tell."""
    for name in ("length", "return"):
        series = [one[name], other[name]]
        blocks = math.gcd(*map(len, series))
        ours, theirs = (block_means(values[None], len(values) // blocks) for values in series)
        if not np.allclose(ours, theirs, rtol=1e-9, atol=0.0):  # sums in another order
            return False
    return True


def _identity(row: Row) -> tuple[str, ...]:
    """What the rows of one run have in common."""
    return tuple(str(row[name]) for name in (*OF_CURVE, *OF_RUN))


def _run(path: Path, rows: Sequence[Row]) -> StoredRun:
    """One run, of all rows that belong to it."""
    try:
        curve, record = _curve(rows[0]), _record(rows[0])
        ends = [_whole(row, "episode") for row in rows]
        arrays = {name: np.array([_number(row, name) for row in rows]) for name in SERIES}
        _require_whole(ends, curve.episodes)
        return curve, record, arrays if ends[0] > 1 else _episodes(arrays)
    except ValueError as error:
        which = f"the run of {rows[0]['algorithm']} with seed {rows[0]['seed']!r}"
        raise ImportedTableError(f"{path}: {which} cannot be used: {error}") from error


def _require_whole(ends: Sequence[int], episodes: int) -> None:
    """Blocks of equal length, in order, up to the end of the run."""
    if ends == list(range(ends[0], episodes + 1, ends[0])) and ends[-1] == episodes:
        return
    few = ", ".join(map(str, ends if len(ends) < 5 else [*ends[:3], "...", ends[-1]]))
    raise ValueError(
        f"of its {episodes} episodes, it has rows that end with {few}. The rows of a run have to "
        "stand together, in the order of episodes, each of them once"
    )


def _curve(row: Row) -> Curve:
    basis, settings, arguments = (
        _json(row, name, dict) for name in ("basis", "settings", "arguments")
    )
    return Curve(
        *(str(row["algorithm"]), str(row["environment"]), basis, settings),
        episodes=_whole(row, "episodes"),
        arguments=arguments,
    )


def _record(row: Row) -> Record:
    return Record(
        *(_whole(row, "seed"), _code(row)),
        *(_number(row, "seconds"), _whole(row, "steps")),
        *(tuple(map(str, _json(row, "warnings", list))), _json(row, "versions", dict)),
        _time(row),
    )


def _code(row: Row) -> str:
    if not re.fullmatch("[0-9a-f]{16}", str(row["code"])):
        raise ValueError(f"code={row['code']!r} is not a version of the code: 16 digits of 0 to f")
    return str(row["code"])


def _time(row: Row) -> str:
    """When a run was finished, as a store writes it."""
    try:
        finished = datetime.fromisoformat(str(row["finished"]))
        in_utc = finished.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"finished={row['finished']!r} is not a time in ISO format") from error
    if finished.tzinfo is None:
        raise ValueError(f"finished={row['finished']!r} has no time zone")
    return in_utc.isoformat(timespec="seconds")


def _whole(row: Row, name: str) -> int:
    """A whole number, which may be written as 7.0."""
    value, text = _number(row, name), str(row[name])
    return int(text) if text.isdecimal() else int(value)


def _number(row: Row, name: str) -> float:
    least, most = RANGES[name]
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        value = math.nan
    whole = name not in WHOLE or value.is_integer()
    if not (math.isfinite(value) and least <= value <= most and whole):
        kind = "a whole number" if name in WHOLE else "a number"
        raise ValueError(f"{name}={row[name]!r} is not {kind} from {least:g} to {most:g}")
    return value


def _json(row: Row, name: str, kind: type[Kind]) -> Kind:
    try:
        value = json.loads(row[name])
        canonical(value)  # no infinities
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={row[name]!r} is not JSON ({error})") from error
    if not isinstance(value, kind):
        raise ValueError(f"{name}={row[name]!r} is not a {kind.__name__}")
    return value


def _episodes(arrays: Arrays) -> Arrays:
    """What a run made here stores, of means of single episodes."""
    lengths = arrays["length"].astype(np.int32)
    if (lengths != arrays["length"]).any():
        raise ValueError("the length of an episode is not a whole number")
    return {"length": lengths, "return": arrays["return"]}


# Reading tables ---------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[Row]:
    require_known(path)
    reader: Callable[[Path], Iterator[Row]] = _csv
    if path.name.lower().endswith(".parquet"):
        reader = _parquet
    return reader(path)


def _require_columns(path: Path, names: Sequence[str]) -> None:
    if absent := [name for name in COLUMNS if name not in names]:
        raise ImportedTableError(
            f"{path} is not a table of --export: it has the columns {', '.join(names) or 'none'}, "
            f"and not {', '.join(absent)}"
        )


def _csv(path: Path) -> Iterator[Row]:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(_lines(path, file))
            _require_columns(path, reader.fieldnames or [])
            yield from reader
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise ImportedTableError(f"{path} cannot be read: {error}") from error


def _lines(path: Path, file: Iterable[str]) -> Iterator[str]:
    """The lines of a file, whose last one has to be complete: half a number is a number, too."""
    for line in file:
        if not line.endswith(("\n", "\r")):
            raise ImportedTableError(f"{path} ends in the middle of a line: copy it once more")
        yield line


def _parquet(path: Path) -> Iterator[Row]:
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            _require_columns(path, file.schema_arrow.names)
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (OSError, ArrowException) as error:
        raise ImportedTableError(f"{path} cannot be read: {error}") from error
