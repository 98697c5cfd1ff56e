"""Runs as lines of JSON, for other programs and for the stores of other machines.

A line is a run: its curve, its record, and the means of the blocks of episodes that its figure
draws, which may be single episodes. A run is imported with its seed, its time and the version of
the code that made it, so that it counts as if it had been made here. Runs on logged samples, as on
the chain, are not exported.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.files import replacing
from rblspi.core.types import Array
from rblspi.experiments.definitions import Curve, canonical
from rblspi.experiments.results import CurveResult, FigureResult, block_means, require_block
from rblspi.experiments.results_store import Store
from rblspi.experiments.tasks import SERIES, Arrays, FinishedRun, Record


class TableError(ValueError):
    """A table that cannot be written, or does not hold runs as `export` writes them."""


#: the fields of a line and their types: those of the curve and those of the record
OF_CURVE = {
    "environment": str,
    "arguments": dict,
    "algorithm": str,
    "basis": dict,
    "settings": dict,
    "episodes": int,
}
OF_RECORD = {
    "seed": int,
    "code": str,
    "seconds": float,
    "steps": int,
    "warnings": list,
    "versions": dict,
    "finished": str,
    "block": int,
}
#: ranges of the series
RANGES: dict[str, tuple[float, float]] = {
    "length": (1, np.iinfo(np.int32).max),
    "return": (-sys.float_info.max, sys.float_info.max),
    "under_limit": (0, 1),
}


def require_known(path: Path) -> None:
    """Check, before hours of runs, that a file name ends as a table does."""
    if not path.name.lower().endswith((".jsonl", ".jsonl.gz")):
        raise TableError(f"cannot use {path}: the name must end in .jsonl or .jsonl.gz")


# Writing ----------------------------------------------------------------------------------------


def export(figures: Iterable[FigureResult], path: Path) -> int:
    """Write all online runs of some figures and return their number.

    The name ends in .jsonl or .jsonl.gz. Blocks are shorter than those of the figure where they
    would leave out the last episodes of a run.
    """
    require_known(path)
    curves: dict[str, tuple[CurveResult, int]] = {}
    for figure in figures:
        for digest, result in figure.curves.items():
            # A block that divides the run leaves no episode out. A block that divides the blocks of
            # all figures serves all figures.
            _, other = curves.get(digest, (result, result.curve.episodes))
            block = figure.figure.block_of(result.curve.episodes)
            curves[digest] = (result, math.gcd(block, other))
    lines = [line for found in curves.values() if found[0].runs for line in _lines_of(*found)]
    text = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        # Without a time stamp, equal tables give equal files.
        packed = path.name.lower().endswith(".gz")
        temporary.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    return len(lines)


def _lines_of(result: CurveResult, block: int) -> Iterator[str]:
    if not result.curve.episodes:
        return
    require_block(result.curve, result.block, block)
    means = {name: block_means(result.arrays[name], block // result.block) for name in SERIES}
    of_curve = {name: getattr(result.curve, name) for name in OF_CURVE}
    for i, record in enumerate(result.records):
        series = {name: values[i].tolist() for name, values in means.items()}
        yield json.dumps(of_curve | record._asdict() | {"block": block} | series)


# Reading ----------------------------------------------------------------------------------------


def read_runs(path: Path) -> list[FinishedRun]:
    """Read the runs of a table that `export` wrote.

    It leaves out evaluations of the greedy policy, so that runs with evaluations are read as runs
    without. Anything else than such a table is a `TableError`.
    """
    require_known(path)
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            found = [_run(f"{path}, line {n}", line) for n, line in enumerate(file, 1)]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise TableError(f"{path} cannot be read: {error}") from error
    if not found:
        raise TableError(
            f"{path} holds no runs. Those on logged samples, as on the chain, are not exported"
        )
    return found


def _run(place: str, line: str) -> FinishedRun:
    try:
        given = json.loads(line)
        canonical(given)  # no infinities
        of_curve, of_record = (
            {name: _value(given, name, kind) for name, kind in fields.items()}
            for fields in (OF_CURVE, OF_RECORD)
        )
        if not re.fullmatch("[0-9a-f]{16}", of_record["code"]):
            raise ValueError(f"code={of_record['code']!r} is not a version: 16 digits of 0 to f")
        of_record["finished"] = _in_utc(of_record["finished"])
        of_record["warnings"] = tuple(map(str, of_record["warnings"]))
        curve, record = Curve(**of_curve), Record(**of_record)
        arrays = {name: _series(given, name, curve.episodes, record.block) for name in SERIES}
    except (ValueError, TypeError, RecursionError) as error:
        raise TableError(f"{place} is not a run of --export: {error}") from error
    return FinishedRun(curve, record, arrays)


def _value(given: Any, name: str, kind: type) -> Any:
    """A field of a run, which must have the right type; a number must be 0 or more."""
    if not isinstance(given, dict) or name not in given:
        raise ValueError(f"it has no {name}")
    value = float(given[name]) if kind is float else given[name]
    number = value if kind in (int, float) else 0
    if type(value) is not kind or not 0 <= number <= LARGEST_COUNT:
        raise ValueError(f"{name}={given[name]!r} is not a valid {kind.__name__}")
    return value


def _series(given: Any, name: str, episodes: int, block: int) -> Array:
    """The numbers of all blocks of a run."""
    values, (least, most) = np.array(_value(given, name, list), np.float64), RANGES[name]
    if values.ndim != 1 or len(values) * block != episodes or not episodes:
        raise ValueError(f"{name} has {len(values)} means of {block}, of {episodes} episodes")
    for value in values[~((values >= least) & (values <= most))]:
        raise ValueError(f"{name}={value:g} is not a number from {least:g} to {most:g}")
    return values


def _in_utc(text: str) -> str:
    try:
        finished = datetime.fromisoformat(text)
        in_utc = finished.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        raise ValueError(f"finished={text!r} is not a time in ISO format") from error
    if finished.tzinfo is None:
        raise ValueError(f"finished={text!r} has no time zone")
    return in_utc


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
