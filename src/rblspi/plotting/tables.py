"""The learning curves of a report as CSV, and numbers as the pages of a report write them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from rblspi.core.files import replacing
from rblspi.core.progress import duration
from rblspi.experiments.definitions import canonical
from rblspi.experiments.results import CurveResult, FigureResult, Summary
from rblspi.experiments.tasks import versions

#: the footnote to intervals that have a dagger
CLIPPED = (
    "† The interval is cut where numbers become impossible: a share lies between 0 and 1, and the "
    "steps of an episode between 1 and its step limit."
)


def write_summaries(path: Path, results: Sequence[FigureResult]) -> None:
    """Write the learning curves of all figures as CSV, a row for every point."""
    columns = ("environment", "algorithm", "basis", "settings")
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", "measure", *columns, *Summary._fields])
        for result in results:
            for digest, (runs, *arrays) in result.summaries.items():
                curve = result.curves[digest].curve
                texts = [curve.place, curve.algorithm]
                texts += [canonical(curve.plain[name]) for name in ("basis", "settings")]
                for point in zip(*arrays, strict=True):
                    numbers = [f"{value:.7g}" for value in point]
                    writer.writerow(
                        [result.figure.id, result.figure.measure, *texts, runs, *numbers]
                    )


def distinct(results: Iterable[FigureResult]) -> list[CurveResult]:
    """The curves of all figures without repetitions."""
    return list({d: r for result in results for d, r in result.curves.items()}.values())


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table in Markdown."""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return [*head, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def versions_of(results: Sequence[FigureResult]) -> list[dict[str, str]]:
    """The different versions that runs were made with; the installed ones if there are no runs."""
    found = {
        json.dumps(record.versions, sort_keys=True): record.versions
        for curve in distinct(results)
        for record in curve.records
    }
    return list(found.values()) or [versions()]


def cost_text(results: Sequence[FigureResult]) -> str:
    """The number of steps and the processor time of all runs."""
    curves = distinct(results)
    seconds = sum(curve.seconds for curve in curves)
    return f"{sum(curve.steps for curve in curves):,} steps, {duration(seconds)}"


def interval_text(mean: float, low: float, high: float, clipped: object = False) -> str:
    """A mean and its interval, with a dagger if the interval was clipped."""
    return f"{_digits(mean)} [{_digits(low)}, {_digits(high)}]{'†' if clipped else ''}"


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return "?"
    size = abs(value)
    text = f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
    return "0" if text in ("-0", "-0.0") else text.replace("-", "−")
