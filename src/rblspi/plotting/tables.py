"""The files beside the page: claims as JSON and Markdown, learning curves as CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rblspi.core.files import replacing, write_text
from rblspi.core.progress import duration
from rblspi.experiments.definitions import canonical
from rblspi.experiments.judging import CHANCE, Finding, Judgement, Verdict, counted
from rblspi.experiments.results import CurveResult, FigureResult, Summary
from rblspi.experiments.tasks import versions

#: verdicts by other rules than the usual ones, by the title they are listed under
Variants = Mapping[str, Sequence[Judgement]]

#: the footnote to intervals that have a dagger
CLIPPED = (
    "† The interval is cut where numbers become impossible: a share lies between 0 and 1, and the "
    "steps of an episode between 1 and its step limit."
)


#: verdicts by claim and reading
ByReading = Mapping[str, Mapping[str, Verdict]]


class ReadingVerdicts(NamedTuple):
    """Verdicts on claims under the readings of a paper."""

    single: ByReading
    combined: ByReading  # under several readings at once
    words: Mapping[str, str]  # all of it in a sentence, by claim

    def of(self, claim: str) -> dict[str, Verdict]:
        """All verdicts on a claim by reading, combinations included."""
        return {**self.single.get(claim, {}), **self.combined.get(claim, {})}


def write_claims(
    folder: Path,
    judgements: Sequence[Judgement],
    results: Sequence[FigureResult],
    variants: Variants,
    readings: ReadingVerdicts | None = None,
) -> None:
    """Write ``claims.json`` and ``claims.md``."""
    curves = distinct(results)
    content = {
        "claims": [
            {**judgement.plain, "readings": readings.of(judgement.claim.id) if readings else {}}
            for judgement in judgements
        ],
        "variants": {title: [j.plain for j in judged] for title, judged in variants.items()},
        "runs": sum(curve.runs for curve in curves),
        "steps": sum(curve.steps for curve in curves),
        "processor_seconds": round(sum(curve.seconds for curve in curves), 1),
        "versions": versions_of(results),
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_text(folder / "claims.json", text)
    write_text(folder / "claims.md", _markdown(judgements, results, variants, readings))


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


def _markdown(
    judgements: Sequence[Judgement],
    results: Sequence[FigureResult],
    variants: Variants,
    readings: ReadingVerdicts | None,
) -> str:
    lines = ["# Claims", "", *_claims(judgements, readings)]
    for title, judged in variants.items():
        lines += ["", f"## {title}", "", *_claims(judged)]
    every = [*judgements, *(judgement for judged in variants.values() for judgement in judged)]
    clipped = any(finding.clipped for judgement in every for finding in judgement.findings)
    note = f" {CLIPPED}" if clipped else ""
    about = f"Intervals are 95% confidence intervals.{note} {CHANCE}"
    return "\n".join([*lines, "", "## Intervals", "", about, "", *_runs(results), ""])


def _claims(
    judgements: Sequence[Judgement], readings: ReadingVerdicts | None = None
) -> Iterator[str]:
    """The lines of a table of claims."""
    yield from ("| claim | what the paper says | verdict | measured |", "|---|---|---|---|")
    for judgement in judgements:
        measured = "<br>".join(
            f"{finding.what}: {interval_text(*finding.measured, finding.clipped)}, should be "
            f"{side_text(finding)} ({finding.runs} runs"
            f"{'' if finding.counts else '; shown only'}): {finding.verdict}"
            for finding in judgement.findings
        )
        note = f"<br>{judgement.note}" if judgement.note else ""
        if readings and (single := readings.single.get(judgement.claim.id)):
            note += f"<br>[Readings](readings.md): {counted(single)}"
        yield (
            f"| {judgement.claim.id} | {judgement.claim.says}<br>*Judged by:* "
            f"{judgement.claim.judged_by} | **{judgement.verdict}**{note} | {measured} |"
        )


def _runs(results: Sequence[FigureResult]) -> list[str]:
    """A table of the runs of every figure; a setting may be in several figures."""
    columns = ("figure", "settings", "runs of every setting", "steps", "processor time")
    rows = []
    by_figure = {result.figure.id: list(result.curves.values()) for result in results}
    for name, curves in {**by_figure, "all, each setting once": distinct(results)}.items():
        runs = sorted({curve.runs for curve in curves})
        number = " to ".join(map(str, dict.fromkeys((runs[0], runs[-1])))) if runs else "0"
        steps, seconds = (sum(getattr(c, of) for c in curves) for of in ("steps", "seconds"))
        rows.append((name, len(curves), number, f"{steps:,}", duration(seconds)))
    return ["## The runs", "", *markdown(columns, rows), "", made_text(distinct(results))]


# What other pages show as well --------------------------------------------------------------------


def distinct(results: Iterable[FigureResult]) -> list[CurveResult]:
    """The curves of all figures without repetitions."""
    return list({d: r for result in results for d, r in result.curves.items()}.values())


def made_text(curves: Sequence[CurveResult]) -> str:
    """When, and by which code, runs were made."""
    days = " and ".join(sorted({r.finished[:10] for curve in curves for r in curve.records}))
    if not days:
        return "There are no runs yet."
    made = [curve for curve in curves if curve.runs]
    old = sum(not curve.present_code for curve in made)
    if old == len(made):
        return f"Made on {days} by other code than wrote this page."
    by = f", those of {old} settings by other code" if old else ""
    return f"Made on {days} by the code that wrote this page{by}."


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


def side_text(finding: Finding) -> str:
    """On which side of which line a finding should be, as HTML."""
    line = f"{finding.line:g}".replace("-", "−")
    return f"{'&gt;' if finding.above else '&lt;'} {line}"


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return "?"
    size = abs(value)
    text = f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
    return "0" if text in ("-0", "-0.0") else text.replace("-", "−")
