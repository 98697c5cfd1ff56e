"""The page about the claims under every reading, with its figures and its data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from rblspi.core.files import write_text
from rblspi.experiments.judging import CHANCE, rounded
from rblspi.plotting import tables, verdicts
from rblspi.plotting.style import save, style
from rblspi.reproduction.design import FULL, Design, parts
from rblspi.reproduction.figures import Period
from rblspi.reproduction.readings import (
    ABOUT_BELIEFBOX,
    FACTORS,
    SOURCES,
    Reading,
    in_full,
    name_of,
)
from rblspi.reproduction.study import Cell, Shift, Study, interaction

#: factors that are listed for a claim, of those that move it
MOST_LISTED = 3


def write_study(study: Study, folder: Path) -> Path:
    """Write ``readings.md``, ``readings.json`` and the figures into a folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    _draw_readings(study, folder / "figures" / "readings")
    if study.combined:
        _draw_combinations(study, folder / "figures" / "combinations")
    content = json.dumps(_plain(study), indent=1, ensure_ascii=False) + "\n"
    write_text(folder / "readings.json", content)
    page = folder / "readings.md"
    write_text(page, _page(study))
    return page


# Figures ------------------------------------------------------------------------------------------


def _draw_readings(study: Study, stem: Path) -> None:
    """Draw the claims under single changes."""
    columns = [name_of(reading) for reading in study.design.readings]
    _draw(list(study.cells), columns, list(study.cells.values()), stem)


def _draw_combinations(study: Study, stem: Path) -> None:
    """Draw the claims under combinations of the factors A, B, ... that move each of them most."""
    rows = {
        f"{claim}\n{_legend(combined)}": dict(zip(_letters(combined), cells, strict=True))
        for combined in study.combined
        for claim, cells in combined.cells.items()
    }
    columns = max(rows.values(), key=len)
    _draw(list(rows), list(columns), [[row.get(c) for c in columns] for row in rows.values()], stem)


def _draw(
    claims: Sequence[str],
    readings: Sequence[str],
    rows: Sequence[Sequence[Cell | None]],
    stem: Path,
) -> None:
    found = [[cell and cell.verdict for cell in row] for row in rows]
    own = [[cell is not None and (cell.own or not cell.reading) for cell in row] for row in rows]
    with style():
        save(verdicts.draw(claims, readings, found, own), stem)


def _letters(combined: Study) -> list[str]:
    """The readings of combined factors by the letters of these: default, A, B, AB."""
    letters = dict(zip(_factors_of(combined), ascii_uppercase, strict=False))
    texts = ("".join(letters[f] for f in reading) for reading in combined.design.readings)
    return [text or "default" for text in texts]


def _factors_of(combined: Study) -> Reading:
    """The factors that a study combines, with their levels."""
    return {f: level for reading in combined.design.readings for f, level in reading.items()}


def _legend(combined: Study) -> str:
    levels = _factors_of(combined)
    named = zip(ascii_uppercase, levels.items(), strict=False)
    return ", ".join(f"{letter} {name_of(dict([item]))}" for letter, item in named)


# Data ---------------------------------------------------------------------------------------------


def _plain(study: Study) -> dict[str, Any]:
    curves = tables.distinct(study.all_results)
    return {
        "design": {
            "runs": study.design.runs,
            "episodes": dict(study.design.episodes),
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
        "sources": {name: in_full(reading) for name, reading in SOURCES.items()},
        "claims": [
            {
                "id": claim,
                "says": row[0].claim.says,
                "summary": study.in_words(claim),
                "readings": [
                    {**_plain_cell(cell), "combined": study.combines(cell)}
                    for cell in study.all_cells(claim)
                ],
                "shifts": [_plain_shift(shift) for shift in study.shifts(claim)],
            }
            for claim, row in study.cells.items()
        ],
        "runs": sum(curve.runs for curve in curves),
        "steps": sum(curve.steps for curve in curves),
        "processor_seconds": round(sum(curve.seconds for curve in curves), 1),
        "versions": tables.versions_of(study.all_results),
    }


def _plain_cell(cell: Cell) -> dict[str, Any]:
    return {
        "reading": name_of(cell.reading),
        "verdict": cell.verdict,
        "runs": cell.runs,
        "findings": [finding.plain for finding in cell.judgement.findings],
    }


def _plain_shift(shift: Shift) -> dict[str, Any]:
    mean, *interval = rounded(shift.by)
    return {
        "reading": name_of(shift.reading),
        "what": shift.what,
        "by": mean,
        "interval": interval,
        "may_be_chance": shift.size <= 1.0,
    }


# The page -----------------------------------------------------------------------------------------


def _page(study: Study) -> str:
    sections = [_head(study), _claims(study), _shifts(study)]
    if study.combined:
        sections.append(_combinations(study))
    return "\n\n".join([*sections, _factors()]) + "\n"


def _head(study: Study) -> str:
    design = study.design
    curves = tables.distinct(study.all_results)
    runs = sum(curve.runs for curve in curves)
    return f"""# The paper under every reading

The paper leaves choices open, and a claim that does not hold here may hold with other choices. The
table of factors at the end lists these choices, the ways in which each can be read, and where each
way comes from. The first way is the default. It stays the default whatever comes out of the others.

A claim may consist of several numbers, each with a line that it should be above or below. It holds
if all of them are on the right side, and does not hold if one is on the wrong side, with the whole
of its 95% interval.

![Verdicts: claims down, readings across](figures/readings.png)

## The design

First, one factor at a time differs from the default. Then all that comes from one source is changed
together. Then, for every claim, up to four of the factors that move it most are combined: two at a
time, and four if there are four. With the single changes, that shows for every pair how far its
joint effect is from the sum of both.

{_judged(design)}

Every setting gets {design.runs} runs, with the seeds from 0 on, and {10 * design.runs} sample sets
on the chain. The rules and lines are those of [claims.md](claims.md).

{runs:,} runs: {tables.cost_text(study.all_results)} of processor time{_missing(study)}.
{tables.made_text(curves)}

    rblspi list readings                         # the choices
    rblspi readings                              # this page; can be stopped, and goes on
    rblspi readings --report-only                # this page, from the runs there are
    rblspi readings --full                       # every claim on whole runs
    rblspi reproduce --reading centres=edge      # all figures of the paper under a reading

Where a verdict under the default differs from that of [claims.md](claims.md), the reason is that
there are fewer runs here, shorter ones, fewer values of K, or one grid.

{CHANCE} With so many verdicts, some are wrong by chance."""


def _judged(design: Design) -> str:
    """Which claims are judged, and on how much of the paper."""
    if design == replace(FULL, runs=design.runs):
        return "All claims are judged, on whole runs of everything."
    scope = design.scope
    periods = {name: " and ".join(map(_period, ks)) for name, ks in scope.periods.items()}
    limits = [
        *(f"K = {ks} on {names}" for ks, names in _grouped(periods)),
        *(f"{n} × {n} RBFs on InvertedPendulum-v0" for n in scope.grids),
        *(f"the first {n} episodes on {names}" for n, names in _grouped(design.episodes)),
    ]
    return (
        f"{len(design.judged())} claims are judged, those that did not hold or were undecided when "
        f"the design was made. To save time they are judged with {'; '.join(limits)}."
    )


def _period(period: Period) -> str:
    return "500" if period == "episode" else str(period)


def _grouped(by_environment: Mapping[str, object]) -> Iterator[tuple[object, str]]:
    """Every value, with the environments that have it."""
    for value in dict.fromkeys(by_environment.values()):
        names = [n.removeprefix("rblspi/") for n, v in by_environment.items() if v == value]
        yield value, ", ".join(names)


def _missing(study: Study) -> str:
    designs = [study.design, *(combined.design for combined in study.combined)]
    wanted = sum(runs * len(figure.curves) for figure, runs in parts(designs))
    left = wanted - sum(curve.runs for curve in tables.distinct(study.all_results))
    return f"; {left:,} runs are still to be made" if left else ""


def _claims(study: Study) -> str:
    rows = []
    for claim, (default, *_) in study.cells.items():
        fewest = min((cell.runs for cell in study.all_cells(claim) if cell.verdict), default=0)
        verdict = default.verdict or "too few runs"
        rows.append((claim, default.claim.says, verdict, study.in_words(claim), fewest))
    return _section(
        "Claims",
        "Readings that change nothing about a claim are not counted, and those that come to the "
        "same for it are counted once; the default is one of them. `runs` is the smallest number "
        "of runs behind a verdict.",
        tables.markdown(
            ("claim", "what the paper says", "default", "under the readings", "runs"), rows
        ),
    )


def _shifts(study: Study) -> str:
    rows: list[Sequence[str]] = []
    for claim, (default, *_) in study.cells.items():
        shifts = study.moved_by(claim)[:MOST_LISTED]
        for shift in shifts:
            finding = default.judgement.findings[shift.place]
            was = tables.interval_text(*finding.measured, finding.clipped)
            by = tables.interval_text(*shift.by)
            rows.append((claim, name_of(shift.reading), shift.what, was, by))
        if not shifts:
            rows.append((claim, "none", "", "", ""))
    return _section(
        "What moves a claim most",
        f"For every claim, the factors that move one of its numbers most, {MOST_LISTED} at most, "
        "and the number under the default. Shifts are compared in units of their 95% interval, so "
        "that a small one may come before a large one that is less certain. Those whose interval "
        "contains 0, widened by Bonferroni's correction for the numbers of the claim, are left "
        "out; that there are many readings is not corrected for. Where a number is about the best "
        "setting, the best one is chosen under each reading. "
        "Intervals of shifts take runs as independent; those that two readings share make them "
        "wider than necessary. † The interval of the number is cut where numbers become "
        "impossible.",
        tables.markdown(("claim", "factor", "number", "default", "shift"), rows),
    )


def _combinations(study: Study) -> str:
    columns = ("claim", "reading", "verdict", "number", "measured", "interaction")
    rows = (
        row
        for combined in study.combined
        for claim in combined.cells
        for row in _combined(study, combined, claim)
    )
    return _section(
        "Combinations",
        "The number is the one that a single change moves most; the verdict is about all numbers "
        "of the claim. The interaction is how far the effect of two changes together is from the "
        "sum of their effects. It is large, too, where each change alone already spoils "
        "everything. Its interval takes runs as independent; those that readings share make it "
        "wider than necessary.\n\n"
        "![Verdicts under combinations of the factors that move a claim most]"
        "(figures/combinations.png)",
        tables.markdown(columns, rows),
    )


def _combined(study: Study, combined: Study, claim: str) -> Iterator[Sequence[str]]:
    """Rows of the table of combinations, for one claim."""
    place = study.moved_by(claim)[0].place
    for cell in combined.cells[claim]:
        if cell.verdict is None:
            continue
        finding = cell.judgement.findings[place]
        measured, joint = tables.interval_text(*finding.measured, finding.clipped), ""
        if len(cell.reading) == 2:
            joint = tables.interval_text(*interaction(combined, claim, cell.reading, place))
        yield claim, name_of(cell.reading), cell.verdict, finding.what, measured, joint


def _factors() -> str:
    rows = (
        (
            f"{factor.name}={level.name}{'' if i else ' (default)'}",
            *("" if i else factor.asks, level.says, level.source),
        )
        for factor in FACTORS.values()
        for i, level in enumerate(factor.levels)
    )
    table = tables.markdown(("factor", "what is open", "level", "source"), rows)
    sources = [(name, in_full(reading)) for name, reading in SOURCES.items()]
    return _section(
        "Factors",
        ABOUT_BELIEFBOX,
        [*table, "", *tables.markdown(("source", "what comes from it"), sources)],
    )


def _section(title: str, text: str, table: Sequence[str]) -> str:
    return "\n".join([f"## {title}", "", *([text, ""] if text else []), *table])
