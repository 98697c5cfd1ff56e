"""Results as tables for other programs: CSV, or Parquet if pyarrow is installed.

A table is written curve by curve, so that it need not fit into memory.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rblspi.core.files import replacing
from rblspi.experiments.definitions import canonical, unique
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.summary import block_means

COLUMNS = (
    "environment",
    "algorithm",
    "basis",
    "settings",
    "seed",
    "episode",
    "length",
    "return",
)
Write = Callable[[dict[str, Sequence[Any]]], None]


class ExportError(ValueError):
    """A table that cannot be written under this name."""


def require_writable(path: Path) -> None:
    """Check, before hours of runs, that a table can be written under this name.

    Raises
    ------
    ExportError
    """
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise ExportError(f"cannot write {path}: the name must end in .csv, .csv.gz or .parquet")
    if name.endswith(".parquet") and find_spec("pyarrow") is None:
        raise ExportError(f"cannot write {path} without pyarrow: pip install 'rblspi[data]'")


def export(figures: Iterable[FigureResult], path: Path, *, blocks: bool = False) -> int:
    """Write all online runs of some figures and return the number of rows.

    Parameters
    ----------
    figures : iterable of FigureResult
    path : Path
        A name that ends in .csv, .csv.gz or .parquet.
    blocks : bool
        Write a row for the mean of each block of the figure instead of for each episode.
    """
    require_writable(path)
    results = list(figures)
    curves = unique(curve for result in results for curve in result.figure.curves)
    rows = 0
    with _writer(path) as write:
        for curve in curves:
            result = next(r for r in results if curve.digest in r.curves)
            found = result[curve]
            if curve.episodes and found.runs:
                table = _table(found, result.figure.block if blocks else 1)
                rows += len(table["seed"])
                write(table)
    return rows


def _table(result: CurveResult, block: int) -> dict[str, Sequence[Any]]:
    curve = result.curve
    size = min(block, curve.episodes)
    values = {name: block_means(result.arrays[name], size) for name in ("length", "return")}
    runs, points = values["length"].shape
    same = {
        "environment": curve.environment,
        "algorithm": curve.algorithm,
        "basis": canonical(dict(curve.basis)),
        "settings": canonical(dict(curve.settings)),
    }
    return {
        **{name: [value] * (runs * points) for name, value in same.items()},
        "seed": np.repeat(result.seeds, points).tolist(),
        "episode": np.tile(size * np.arange(1, points + 1), runs).tolist(),
        **{name: array.ravel().tolist() for name, array in values.items()},
    }


@contextmanager
def _writer(path: Path) -> Iterator[Write]:
    name = path.name.lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        if name.endswith(".parquet"):
            opened = _parquet(temporary)
        else:
            opened = _csv(temporary, compressed=name.endswith(".gz"))
        with opened as write:
            yield write


@contextmanager
def _csv(path: Path, compressed: bool) -> Iterator[Write]:
    # Without name and time stamp, equal tables give equal files.
    with path.open("wb") as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)

            def write(table: dict[str, Sequence[Any]]) -> None:
                columns = [_short(table[name]) for name in COLUMNS]
                writer.writerows(zip(*columns, strict=True))

            yield write


def _short(column: Sequence[Any]) -> Sequence[Any]:
    """Numbers as text with eight significant digits, which is plenty for a mean."""
    return [f"{value:.8g}" if isinstance(value, float) else value for value in column]


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = dict.fromkeys(COLUMNS[:4], text) | {
        "seed": pyarrow.int64(),
        "episode": pyarrow.int64(),
        "length": pyarrow.float64(),
        "return": pyarrow.float64(),
    }
    schema = pyarrow.schema(list(kinds.items()))
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:

        def write(table: dict[str, Sequence[Any]]) -> None:
            arrays = [pyarrow.array(table[name], kinds[name]) for name in COLUMNS]
            file.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

        yield write
