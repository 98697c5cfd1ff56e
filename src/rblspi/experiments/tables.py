"""Runs as tables in CSV, for other programs and for the stores of other machines.

A row is an episode, or the mean of a block of episodes. A run is imported with its seed, its time
and the version of the code that made it, so that it counts as if it had been made here. Runs on
logged samples, as on the chain, are not exported.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.files import replacing
from rblspi.experiments.definitions import Curve, canonical
from rblspi.experiments.results import CurveResult, FigureResult, block_means, require_block
from rblspi.experiments.results_store import Store
from rblspi.experiments.tasks import SERIES, Arrays, FinishedRun, Record

Row = Mapping[str, str]


class TableError(ValueError):
    """A table that cannot be written, or does not hold runs as `export` writes them."""


#: columns and their types: those constant for a setting, those constant for a run, and those of one
#: row; lists and tables are in JSON
OF_CURVE = {
    "environment": str,
    "arguments": dict,
    "algorithm": str,
    "basis": dict,
    "settings": dict,
    "episodes": int,
}
OF_RUN = {
    "code": str,
    "versions": dict,
    "finished": str,
    "seconds": float,
    "steps": int,
    "warnings": list,
    "seed": int,
}
OF_ROW = {"episode": int, "length": float, "return": float, "under_limit": float}
COLUMNS: dict[str, Any] = {**OF_CURVE, **OF_RUN, **OF_ROW}
#: ranges of columns, where other than all numbers from 0
RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("episodes", "episode"), (1, LARGEST_COUNT)),
    **dict.fromkeys(("steps", "seed"), (0, LARGEST_COUNT)),
    "length": (1, np.iinfo(np.int32).max),
    "return": (-sys.float_info.max, sys.float_info.max),
    "under_limit": (0, 1),
}


def require_known(path: Path) -> None:
    """Check, before hours of runs, that a file name ends as a table in CSV does."""
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        raise TableError(f"cannot use {path}: the name must end in .csv or .csv.gz")


# Writing ----------------------------------------------------------------------------------------


def export(figures: Iterable[FigureResult], path: Path, *, blocks: bool = False) -> int:
    """Write all online runs of some figures and return the number of rows.

    Parameters
    ----------
    figures : iterable of FigureResult
    path : Path
        A name that ends in .csv or .csv.gz.
    blocks : bool
        Write a row for the mean of each block of the figure instead of for each episode; blocks
        are shorter where they would leave out the last episodes of a run.
    """
    require_known(path)
    curves: dict[str, tuple[CurveResult, int]] = {}
    for figure in figures:
        for digest, result in figure.curves.items():
            # A block that divides the run leaves no episode out. A block that divides the blocks of
            # all figures serves all figures.
            _, other = curves.get(digest, (result, result.curve.episodes))
            block = figure.figure.block_of(result.curve.episodes) if blocks else 1
            curves[digest] = (result, math.gcd(block, other))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with replacing(path) as temporary, temporary.open("wb") as raw:
        # Without name and time stamp, equal tables give equal files.
        compressed = path.name.lower().endswith(".gz")
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for result, block in curves.values():
                if result.curve.episodes and result.runs:
                    for row in _rows_of(result, block):
                        writer.writerow(row)
                        rows += 1
    return rows


def _rows_of(result: CurveResult, block: int) -> Iterator[list[Any]]:
    require_block(result.curve, result.block, block)
    means = [block_means(result.arrays[name], block // result.block) for name in SERIES]
    of_curve = [_written(getattr(result.curve, name)) for name in OF_CURVE]
    for i, record in enumerate(result.records):
        of_run = [_written(getattr(record, name)) for name in OF_RUN]
        for j, point in enumerate(zip(*(series[i].tolist() for series in means), strict=True), 1):
            yield [*of_curve, *of_run, j * block, *point]


def _written(value: Any) -> Any:
    return canonical(value) if isinstance(value, Mapping | tuple) else value


# Reading ----------------------------------------------------------------------------------------


def read_runs(path: Path) -> list[FinishedRun]:
    """Read the runs of a table.

    Parameters
    ----------
    path : Path
        A table that `export` wrote. It leaves out evaluations of the greedy policy, so that runs
        with evaluations are read as runs without.

    Raises
    ------
    TableError
        If the table is not one of `export`.
    """
    require_known(path)

    def identity(row: Row) -> list[str]:
        return [row[name] for name in (*OF_CURVE, *OF_RUN)]

    found = [_run(path, list(rows)) for _, rows in groupby(_rows(path), identity)]
    if not found:
        raise TableError(
            f"{path} holds no runs. Those on logged samples, as on the chain, are not exported"
        )
    return found


def compared(
    runs: Iterable[FinishedRun], store: Store
) -> tuple[list[FinishedRun], list[FinishedRun]]:
    """The runs that agree with a store, and the runs whose numbers differ from it.

    The same code with the same seed gives the same run, unless processors round otherwise.
    """
    stored: dict[tuple[str, str], dict[int, Arrays]] = {}
    agreeing: list[FinishedRun] = []
    others: list[FinishedRun] = []
    for run in runs:
        key = (run.curve.digest, run.record.code)
        if key not in stored:
            of_curve = store.runs(run.curve, run.record.code)
            stored[key] = {record.seed: arrays for record, arrays in of_curve}
        known = stored[key].get(run.record.seed)
        agrees = known is None or _agree(run.arrays, known)
        (agreeing if agrees else others).append(run)
    return agreeing, others


def _agree(one: Arrays, other: Arrays) -> bool:
    """Whether two runs have the same means in the blocks that both contain."""
    for name in ("length", "return"):
        series = [one[name], other[name]]
        blocks = math.gcd(*map(len, series))
        ours, theirs = (block_means(values[None], len(values) // blocks) for values in series)
        if not np.allclose(ours, theirs, rtol=1e-9, atol=0.0):  # sums in another order
            return False
    return True


def _run(path: Path, rows: Sequence[Row]) -> FinishedRun:
    """One run, from all its rows."""
    try:
        of_curve, of_run = (
            {name: _value(name, rows[0][name]) for name in names} for names in (OF_CURVE, OF_RUN)
        )
        curve = Curve(**of_curve)
        ends = [_value("episode", row["episode"]) for row in rows]
        _require_whole(ends, curve.episodes)
        arrays = {name: np.array([_value(name, row[name]) for row in rows]) for name in SERIES}
        if not re.fullmatch("[0-9a-f]{16}", of_run["code"]):
            raise ValueError(f"code={of_run['code']!r} is not a version: 16 digits of 0 to f")
        of_run["finished"] = _in_utc(of_run["finished"])
        of_run["warnings"] = tuple(map(str, of_run["warnings"]))
        return FinishedRun(curve, Record(**of_run, block=ends[0]), arrays)
    except ValueError as error:
        which = f"the run of {rows[0]['algorithm']} with seed {rows[0]['seed']!r}"
        raise TableError(f"{path}: {which} cannot be used: {error}") from error


def _require_whole(ends: Sequence[int], episodes: int) -> None:
    """Blocks of equal length, in order, up to the end of the run."""
    if ends == list(range(ends[0], episodes + 1, ends[0])) and ends[-1] == episodes:
        return
    few = ", ".join(map(str, ends if len(ends) < 5 else [*ends[:3], "...", ends[-1]]))
    raise ValueError(
        f"of its {episodes} episodes, it has rows that end with {few}. The rows of a run have to "
        "stand together, in the order of episodes, each of them once"
    )


def _value(name: str, text: str) -> Any:
    """The value of a column; a whole number may be written as 7.0."""
    kind = COLUMNS[name]
    if kind is str:
        return text
    if kind in (dict, list):
        return _from_json(name, text, kind)
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = math.nan
    least, most = RANGES.get(name, (0, sys.float_info.max))
    if not least <= value <= most or (kind is int and value % 1):
        words = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name}={text!r} is not {words} from {least:g} to {most:g}")
    return kind(value)


def _from_json(name: str, text: str, kind: type) -> Any:
    try:
        value = json.loads(text)
        canonical(value)  # no infinities
    except ValueError as error:
        raise ValueError(f"{name}={text!r} is not JSON ({error})") from error
    if not isinstance(value, kind):
        raise ValueError(f"{name}={text!r} is not a {kind.__name__}")
    return value


def _in_utc(text: str) -> str:
    try:
        finished = datetime.fromisoformat(text)
        in_utc = finished.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"finished={text!r} is not a time in ISO format") from error
    if finished.tzinfo is None:
        raise ValueError(f"finished={text!r} has no time zone")
    return in_utc


def _rows(path: Path) -> Iterator[Row]:
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(_lines(path, file), restval="")
            names = reader.fieldnames or []
            if absent := [name for name in COLUMNS if name not in names]:
                raise TableError(
                    f"{path} is not a table of --export: it has the columns "
                    f"{', '.join(names) or 'none'}, and not {', '.join(absent)}"
                )
            yield from reader
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise TableError(f"{path} cannot be read: {error}") from error


def _lines(path: Path, file: Iterable[str]) -> Iterator[str]:
    """The lines of a file; the last one has to be complete: half a number is a number, too."""
    for line in file:
        if not line.endswith(("\n", "\r")):
            raise TableError(f"{path} ends in the middle of a line: copy it once more")
        yield line
