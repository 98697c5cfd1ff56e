"""Results as tables for other programs: CSV, or Parquet if pyarrow is installed.

A table is written curve by curve, so that it need not fit into memory.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rblspi.core.files import replacing
from rblspi.experiments.definitions import canonical
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.summary import block_means

COLUMNS = ("environment", "algorithm", "basis", "settings", "seed", "episode", "length", "return")
Write = Callable[[dict[str, list[Any]]], Any]


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
    curves: dict[str, tuple[CurveResult, int]] = {}
    for figure in figures:
        for digest, result in figure.curves.items():
            curves.setdefault(
                digest, (result, figure.figure.block_of(result.curve.episodes) if blocks else 1)
            )
    rows = 0
    with _writer(path) as write:
        for result, block in curves.values():
            if result.curve.episodes and result.runs:
                table = _table(result, block)
                rows += len(table["seed"])
                write(table)
    return rows


def _table(result: CurveResult, block: int) -> dict[str, list[Any]]:
    curve = result.curve
    values = {name: block_means(result.arrays[name], block) for name in ("length", "return")}
    runs, points = values["length"].shape
    plain = (canonical(curve.plain[name]) for name in ("basis", "settings"))
    texts = (curve.place, curve.algorithm, *plain)
    return {
        **{name: [text] * (runs * points) for name, text in zip(COLUMNS, texts, strict=False)},
        "seed": np.repeat(result.seeds, points).tolist(),
        "episode": np.tile(block * np.arange(1, points + 1), runs).tolist(),
        **{name: array.ravel().tolist() for name, array in values.items()},
    }


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
            yield lambda table: writer.writerows(zip(*map(_short, table.values()), strict=True))


def _short(column: list[Any]) -> list[Any]:
    """Numbers as text with eight significant digits, which is plenty for a mean."""
    return [f"{value:.8g}" if isinstance(value, float) else value for value in column]


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    text, whole, real = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    kinds = (*[pyarrow.dictionary(pyarrow.int32(), text)] * 4, whole, whole, real, real)
    schema = pyarrow.schema(list(zip(COLUMNS, kinds, strict=True)))
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        yield lambda table: file.write_table(pyarrow.table(table, schema))
