"""The claims under every reading: verdicts, what moves them most, and the page about it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rblspi.core.files import write_text
from rblspi.core.intervals import Interval, shift_interval
from rblspi.experiments.judging import Claim, Evidence, Judgement, Verdict, judge
from rblspi.experiments.results import CurveResult, FigureResult, read
from rblspi.experiments.results_store import Store
from rblspi.plotting import tables, verdicts
from rblspi.plotting.style import save, style
from rblspi.reproduction.design import Design, needed_by
from rblspi.reproduction.readings import DEFAULT, FACTORS, Reading, name_of


class Cell(NamedTuple):
    """A claim under a reading."""

    claim: Claim
    reading: Reading
    judgement: Judgement
    own: bool  # whether the reading changes what the claim is judged on
    runs: int  # the fewest runs of a curve behind it

    @property
    def verdict(self) -> Verdict | None:
        """None where there are no runs to judge by: one alone has no interval."""
        return self.judgement.verdict if self.runs > 1 else None


class Shift(NamedTuple):
    """How far a reading moves a number that a claim is judged by."""

    reading: Reading
    what: str
    by: Interval

    @property
    def size(self) -> float:
        """In units of half the interval: above 1, the interval does not contain 0."""
        half = (self.by.high - self.by.low) / 2
        if not math.isfinite(half):
            return 0.0
        return abs(self.by.mean) / half if half > 0 else math.inf * bool(self.by.mean)


@dataclass(frozen=True)
class Study:
    """A design with what its runs say."""

    design: Design
    results: tuple[FigureResult, ...]
    cells: dict[str, tuple[Cell, ...]]  # by claim, in the order of the readings

    def verdicts(self, claim: str) -> dict[str, Verdict]:
        """Verdicts by reading: of the default, and of readings that change something."""
        return {
            name_of(cell.reading): cell.verdict
            for cell in self.cells[claim]
            if cell.verdict is not None and (cell.own or not cell.reading)
        }

    def shifts(self, claim: str) -> list[Shift]:
        """How far each reading moves the numbers of a claim, the largest of its shifts."""
        default, *others = self.cells[claim]
        found = []
        for cell in others:
            if not cell.own or cell.verdict is None or default.verdict is None:
                continue
            pairs = zip(cell.judgement.findings, default.judgement.findings, strict=False)
            shifts = [
                Shift(cell.reading, before.what, shift_interval(now.measured, before.measured))
                for now, before in pairs
                if now.counts or before.counts
            ]
            found.append(max(shifts, key=lambda shift: shift.size))
        return sorted(found, key=lambda shift: -shift.size)

    def sentences(self) -> Iterator[str]:
        """One line for each claim."""
        for claim in self.cells:
            yield f"{claim:12} {in_words(self.verdicts(claim))}"


def in_words(found: dict[str, Verdict]) -> str:
    """Under which readings a claim holds."""
    if not found:
        return "no runs yet"
    by_verdict: dict[Verdict, list[str]] = {}
    for reading, verdict in found.items():
        by_verdict.setdefault(verdict, []).append(reading)
    if len(by_verdict) == 1:
        words: dict[Verdict, str] = {
            "holds": "holds under every reading",
            "does not hold": "holds under no reading",
            "undecided": "undecided under every reading",
        }
        return f"{words[next(iter(by_verdict))]} ({len(found)})"
    order: tuple[Verdict, ...] = ("holds", "does not hold", "undecided")
    counted = [f"{v} under {', '.join(by_verdict[v])}" for v in order if v in by_verdict]
    return "; ".join(counted)


def read_study(store: Store, design: Design) -> Study:
    """Read the runs of a design, and judge its claims under its readings."""
    results = tuple(read(store, figure, runs) for figure, runs in design.parts)
    by_digest = {d: curve for result in results for d, curve in result.curves.items()}
    cells: dict[str, tuple[Cell, ...]] = {}
    for claim in design.judged:
        needed = needed_by(claim)
        cells[claim.id] = tuple(
            _cell(design, claim, reading, needed, results, by_digest) for reading in design.readings
        )
    return Study(design, results, cells)


def _cell(
    design: Design,
    claim: Claim,
    reading: Reading,
    needed: list[Any],
    results: tuple[FigureResult, ...],
    by_digest: dict[str, CurveResult],
) -> Cell:
    instead = {curve.digest: design.curve(reading, curve) for curve in needed}
    default = {curve.digest: design.curve(DEFAULT, curve) for curve in needed}
    own = any(instead[d].digest != default[d].digest for d in instead)
    runs = min(by_digest[curve.digest].runs for curve in instead.values())
    return Cell(claim, reading, judge(claim, Evidence(results, instead)), own, runs)


# Files --------------------------------------------------------------------------------------------


def write_study(study: Study, folder: Path) -> Path:
    """Write ``readings.md``, ``readings.json`` and the figure into a folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(study.cells.values())
    with style():
        drawing = verdicts.draw(
            list(study.cells),
            [name_of(reading) for reading in study.design.readings],
            [[cell.verdict for cell in row] for row in rows],
            [[cell.own or not cell.reading for cell in row] for row in rows],
        )
        save(drawing, folder / "figures" / "readings")
    content = json.dumps(_plain(study), indent=1, ensure_ascii=False) + "\n"
    write_text(folder / "readings.json", content)
    page = folder / "readings.md"
    write_text(page, _page(study))
    return page


def _plain(study: Study) -> dict[str, Any]:
    curves = tables.distinct(study.results)
    return {
        "design": {
            "runs": study.design.runs,
            "episodes": study.design.episodes,
            "periods": {k: list(v) for k, v in study.design.scope.periods.items()},
            "grids": list(study.design.scope.grids),
        },
        "factors": [
            {
                "name": factor.name,
                "asks": factor.asks,
                "levels": [
                    {"name": level.name, "says": level.says, "source": level.source}
                    for level in factor.levels
                ],
            }
            for factor in FACTORS.values()
        ],
        "claims": [
            {
                "id": claim,
                "says": row[0].claim.says,
                "summary": in_words(study.verdicts(claim)),
                "readings": [
                    {
                        "reading": name_of(cell.reading),
                        "verdict": cell.verdict,
                        "changes_something": cell.own,
                        "runs": cell.runs,
                        "findings": [finding.plain for finding in cell.judgement.findings],
                    }
                    for cell in row
                    if cell.own or not cell.reading
                ],
            }
            for claim, row in study.cells.items()
        ],
        "runs": sum(curve.runs for curve in curves),
        "steps": sum(curve.steps for curve in curves),
        "processor_seconds": round(sum(curve.seconds for curve in curves), 1),
        "versions": tables.versions_of(study.results),
    }


def _page(study: Study) -> str:
    return "\n\n".join([_head(study), _claims(study), _shifts(study), _factors()]) + "\n"


def _head(study: Study) -> str:
    design = study.design
    curves = tables.distinct(study.results)
    runs = sum(curve.runs for curve in curves)
    wanted = sum(number * len(figure.curves) for figure, number in design.parts)
    days = sorted({record.finished[:10] for curve in curves for record in curve.records})
    when = f", made on {' and '.join(days)}" if days else ""
    amount = f"the first {design.episodes} episodes" if design.episodes else "all episodes"
    periods = "; ".join(
        f"K = {' and '.join(map(str, ks))} on {environment.removeprefix('rblspi/')}"
        for environment, ks in design.scope.periods.items()
    )
    scope = periods or "every K"
    return f"""# The paper under every reading

The paper leaves choices open, and a claim that does not hold here may hold with other choices. The
table of factors at the end lists these choices, the ways in which each can be read, and where each
way comes from. The first way is the default. It stays the default whatever comes out of the others.

![Verdicts: claims down, readings across](figures/readings.png)

## The design

One factor at a time differs from the default. {len(study.cells)} claims are judged, on {amount} of
every run; {scope}. Every setting has {design.runs} runs, with the seeds from 0 on, and
{10 * design.runs} sample sets on the chain. The rules and lines are those of
[claims.md](claims.md), on fewer numbers.

{runs} of {wanted} runs{when}: {tables.cost_text(study.results)} of processor time.

    rblspi list readings                         # the choices
    rblspi readings                              # this page; can be stopped, and goes on
    rblspi readings --report-only                # this page, from the runs there are
    rblspi readings --full                       # every claim on whole runs
    rblspi reproduce --reading centres=edge      # all figures of the paper under a reading

A verdict on shorter and fewer runs is one about these: where it differs from that of
[claims.md](claims.md) under the default, that is the reason. With intervals of 95%, a few of some
hundred verdicts are wrong by chance. A finding names the α of the default; under `alphas=lower` and
`alphas=higher` the runs have a tenth of it, and ten times as much."""


def _claims(study: Study) -> str:
    lines = [
        "## Claims",
        "",
        "Readings that change nothing about a claim are not counted. `runs` is the smallest number "
        "of runs behind a verdict.",
        "",
        "| claim | what the paper says | default | under the readings | runs |",
        "|---|---|---|---|---|",
    ]
    for claim, row in study.cells.items():
        fewest = min(cell.runs for cell in row if cell.own or not cell.reading)
        default = row[0].verdict or "no runs yet"
        words = in_words(study.verdicts(claim))
        lines.append(f"| {claim} | {row[0].claim.says} | {default} | {words} | {fewest} |")
    return "\n".join(lines)


def _shifts(study: Study) -> str:
    lines = [
        "## What moves a claim most",
        "",
        "For every claim, the three readings that move one of its numbers most, by the size of the "
        "shift in units of half its 95% interval, and the number under the default. Readings whose "
        "shift is smaller than half its interval are left out.",
        "",
        "| claim | reading | number | default | shift |",
        "|---|---|---|---|---|",
    ]
    for claim, (default, *_) in study.cells.items():
        before = {finding.what: finding for finding in default.judgement.findings}
        shifts = [shift for shift in study.shifts(claim) if shift.size > 1.0][:3]
        for shift in shifts:
            was = tables.interval_text(*before[shift.what].measured)
            by = tables.interval_text(*shift.by)
            lines.append(f"| {claim} | {name_of(shift.reading)} | {shift.what} | {was} | {by} |")
        if not shifts:
            lines.append(f"| {claim} | none | | | |")
    return "\n".join(lines)


def _factors() -> str:
    lines = ["## Factors", "", "| factor | what is open | level | source |", "|---|---|---|---|"]
    for factor in FACTORS.values():
        for i, level in enumerate(factor.levels):
            asks = factor.asks if i == 0 else ""
            name = f"{factor.name}={level.name}" + (" (default)" if i == 0 else "")
            lines.append(f"| {name} | {asks} | {level.says} | {level.source} |")
    return "\n".join(lines)
