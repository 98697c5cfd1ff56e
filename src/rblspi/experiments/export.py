"""Results as tables: CSV, or Parquet if pyarrow is installed.

A table is written curve by curve, so that it need not fit into memory. It is for other programs,
and for other stores: `imports` reads its runs again.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rblspi.core.files import replacing
from rblspi.experiments.definitions import Curve, canonical
from rblspi.experiments.results import SERIES, CurveResult, FigureResult, require_block
from rblspi.experiments.results_store import Record
from rblspi.experiments.summary import block_means

#: what is the same in all rows of a setting, in all rows of a run, and in one row
OF_CURVE = ("environment", "arguments", "algorithm", "basis", "settings", "episodes")
OF_RUN = ("code", "versions", "finished", "seconds", "steps", "warnings", "seed")
COLUMNS = (*OF_CURVE, *OF_RUN, "episode", *SERIES)
#: columns of whole numbers
WHOLE = ("episodes", "seed", "steps", "episode")
Write = Callable[[dict[str, list[Any]]], Any]


class ExportError(ValueError):
    """A table that cannot be written, or read, under this name."""


def require_known(path: Path) -> None:
    """Check, before hours of runs, that the name of a table is that of a format we have.

    Raises
    ------
    ExportError
    """
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise ExportError(f"cannot use {path}: the name must end in .csv, .csv.gz or .parquet")
    if name.endswith(".parquet") and find_spec("pyarrow") is None:
        raise ExportError(f"{path} needs pyarrow: pip install 'rblspi[data]'")


def export(figures: Iterable[FigureResult], path: Path, *, blocks: bool = False) -> int:
    """Write all online runs of some figures and return the number of rows.

    Parameters
    ----------
    figures : iterable of FigureResult
    path : Path
        A name that ends in .csv, .csv.gz or .parquet.
    blocks : bool
        Write a row for the mean of each block of the figure instead of for each episode; blocks
        are shorter where they would leave out the last episodes of a run.
    """
    require_known(path)
    curves: dict[str, tuple[CurveResult, int]] = {}
    for figure in figures:
        for digest, result in figure.curves.items():
            # A block that divides the run leaves no episode out, and one that divides those of all
            # figures serves them all.
            _, other = curves.get(digest, (result, result.curve.episodes))
            block = figure.figure.block_of(result.curve.episodes) if blocks else 1
            curves[digest] = (result, math.gcd(block, other))
    rows = 0
    with _writer(path) as write:
        for result, block in curves.values():
            if result.curve.episodes and result.runs:
                table = _table(result, block)
                rows += len(table["seed"])
                write(table)
    return rows


def _table(result: CurveResult, block: int) -> dict[str, list[Any]]:
    require_block(result.curve, result.block, block)
    values = {name: block_means(result.arrays[name], block // result.block) for name in SERIES}
    runs, points = values["length"].shape
    said = [_of_run(record) for record in result.records]
    return {
        **{name: [text] * (runs * points) for name, text in _of_curve(result.curve).items()},
        **{name: [run[name] for run in said for _ in range(points)] for name in OF_RUN},
        "episode": np.tile(block * np.arange(1, points + 1), runs).tolist(),
        **{name: array.ravel().tolist() for name, array in values.items()},
    }


def _of_curve(curve: Curve) -> dict[str, Any]:
    """What a table says of a setting."""
    values = {name: getattr(curve, name) for name in OF_CURVE}
    texts = {name: canonical(dict(values[name])) for name in ("arguments", "basis", "settings")}
    return values | texts


def _of_run(record: Record) -> dict[str, Any]:
    """What a table says of a run."""
    texts = {"versions": canonical(record.versions), "warnings": canonical(list(record.warnings))}
    said = record._asdict() | texts
    return {name: said[name] for name in OF_RUN}


@contextmanager
def _writer(path: Path) -> Iterator[Write]:
    name = path.name.lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        opened = _parquet(temporary) if name.endswith(".parquet") else _csv(temporary, name)
        with opened as write:
            yield write


@contextmanager
def _csv(path: Path, name: str) -> Iterator[Write]:
    with path.open("wb") as raw:
        # Without name and time stamp, equal tables give equal files.
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if name.endswith(".gz") else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            yield lambda table: writer.writerows(zip(*table.values(), strict=True))


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    text, whole, real = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    kinds = dict.fromkeys(COLUMNS, pyarrow.dictionary(pyarrow.int32(), text))
    kinds |= dict.fromkeys(WHOLE, whole)
    kinds |= dict.fromkeys(("seconds", *SERIES), real)
    schema = pyarrow.schema(list(kinds.items()))
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        yield lambda table: file.write_table(pyarrow.table(table, schema))
