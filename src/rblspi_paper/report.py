"""The report on the paper: its figures, and a verdict on each of its claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rblspi.experiments.definitions import Figure
from rblspi.experiments.judging import Claim, Evidence, Judgement, judge
from rblspi.experiments.results import FigureResult
from rblspi.plotting import page
from rblspi_paper import chain, claims_page
from rblspi_paper.claims import CLAIMS, FINAL, Scope, claims_within
from rblspi_paper.claims_page import ReadingVerdicts
from rblspi_paper.figures import FIGURES
from rblspi_paper.readings import DEFAULT, Reading, name_of, rescoped
from rblspi_paper.stated import write_numbers

HEADING = "Randomised Bayesian least-squares policy iteration, reproduced"


class Report(NamedTuple):
    """The page that was written, and the verdicts on it."""

    page: Path
    judgements: tuple[Judgement, ...]


def write_report(
    results: Sequence[FigureResult], folder: Path, reading: Reading = DEFAULT
) -> Report:
    """Write the figures, tables and the page of some results into a folder.

    Figures of the paper and experiments of the user's own may be mixed; the claims that are judged
    are those about the figures of the paper, under a reading of it. Under the default, verdicts
    under other readings are shown beside it if the folder has the ``readings.json`` of the study.
    """
    judgements = judgements_on(results, claims_within(rescoped(reading, Scope())))
    drawings = {"chain": chain.draw}
    heading = f"{_heading(results)} ({name_of(reading)})" if reading else _heading(results)
    variants = {} if reading else _by_the_end(results)
    readings = _readings(folder) if judgements and not reading else None
    written = page.write(
        results,
        folder,
        drawings=drawings,
        heading=heading,
        badges=claims_page.badges(judgements),
        sections=claims_page.sections(judgements, variants, readings),
    )
    claims_page.write_files(folder, judgements, results, variants, readings)
    if judgements:
        write_numbers(folder)
    return Report(written, judgements)


def _by_the_end(results: Sequence[FigureResult]) -> dict[str, tuple[Judgement, ...]]:
    """The claims that compare settings, by the final episodes instead of all."""
    usual = {claim.id: claim.judged_by for claim in CLAIMS}
    final = claims_within(Scope(performance="final"))
    judged = judgements_on(results, [c for c in final if c.judged_by != usual[c.id]])
    return {f"Settings compared by their last {FINAL} episodes": judged} if judged else {}


def _readings(folder: Path) -> ReadingVerdicts | None:
    """What ``readings.json`` in a folder says, if there is one."""
    data = folder / "readings.json"
    if not data.exists():
        return None
    claims = json.loads(data.read_text(encoding="utf-8"))["claims"]
    single, combined = (
        {
            claim["id"]: {
                cell["reading"]: cell["verdict"]
                for cell in claim["readings"]
                if cell["verdict"] and cell["combined"] == combines
            }
            for claim in claims
        }
        for combines in (False, True)
    )
    words = {claim["id"]: claim["summary"] for claim in claims}
    return ReadingVerdicts(single, combined, words)


def judgements_on(
    results: Sequence[FigureResult], claims: Sequence[Claim] = CLAIMS
) -> tuple[Judgement, ...]:
    """Judge the claims about those figures of the paper that are among the results."""
    shown = {result.figure.id: result for result in results if result.figure.id in FIGURES}
    instead = {
        curve.digest: run
        for name, result in shown.items()
        for curve, run in zip(FIGURES[name].curves, result.figure.curves, strict=True)
    }
    evidence = Evidence(shown.values(), instead)
    return tuple(
        judge(claim, evidence, _shortfall(claim, shown[claim.figure].figure))
        for claim in claims
        if claim.figure in shown
    )


def _heading(results: Sequence[FigureResult]) -> str:
    """What the report is about: the paper, or the experiments of the user's own."""
    if any(result.figure.id in FIGURES for result in results):
        return HEADING
    titles = [result.figure.title for result in results]
    return titles[0] if len(titles) == 1 else "Experiments"


def _shortfall(claim: Claim, figure: Figure) -> str:
    """Why the runs of a figure are too short to decide a claim; empty if they are not."""
    episodes = min((curve.episodes for curve in figure.curves), default=0)
    needed = claim.episodes or max(curve.episodes for curve in FIGURES[claim.figure].curves)
    if episodes >= needed:
        return ""
    return f"needs runs of {needed} episodes, these have {episodes}"
