"""Verdicts on claims: as a part of the report's page, as ``claims.json`` and as ``claims.md``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rblspi.core.files import write_text
from rblspi.core.progress import duration
from rblspi.experiments.judging import CHANCE, Finding, Judgement, Verdict, counted
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.plotting.html import badge, table, text
from rblspi.plotting.page import Section, footnote
from rblspi.plotting.tables import CLIPPED, distinct, interval_text, markdown, versions_of

#: verdicts by other rules than the usual ones, by the title they are listed under
Variants = Mapping[str, Sequence[Judgement]]

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


_WORDS: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
}


def write_files(
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
    plain = json.dumps(content, indent=1, ensure_ascii=False)
    write_text(folder / "claims.json", f"{plain}\n")
    write_text(folder / "claims.md", _markdown(judgements, results, variants, readings))


# Markdown -----------------------------------------------------------------------------------------


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
            f"{_side(finding)} ({finding.runs} runs"
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
    return ["## The runs", "", *markdown(columns, rows), "", _made(distinct(results))]


def _made(curves: Sequence[CurveResult]) -> str:
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


# HTML ---------------------------------------------------------------------------------------------


def sections(
    judgements: Sequence[Judgement], variants: Variants, readings: ReadingVerdicts | None
) -> list[Section]:
    """The parts of the page with the verdicts, before the figures."""
    if not judgements:
        return []
    others = (
        f"<h3>{text(title)}</h3>{_claims_table(judged, anchors=False)}"
        for title, judged in variants.items()
    )
    found = [Section("claims", "Claims", "\n".join([_section(judgements), *others]))]
    return (
        [*found, Section("readings", "Other readings", _readings(readings))] if readings else found
    )


def badges(judgements: Iterable[Judgement]) -> str:
    """How often each verdict occurs."""
    return "".join(badge(verdict, n) for verdict, n in _counted(j.verdict for j in judgements))


def _counted(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, str]]:
    """Each verdict that occurs, and how often in words."""
    found = list(verdicts)
    return [(v, f"{found.count(v)} {words}") for v, words in _WORDS.items() if v in found]


def _section(judgements: Sequence[Judgement]) -> str:
    return f"""<h2 id="claims">What the paper says, and what was measured</h2>
<p>A number on the right comes with its 95% confidence interval. It <em>holds</em> if the whole
interval is on the right side of the line, <em>does not hold</em> if all of it is on the wrong
side, and is <em>undecided</em> otherwise. A claim holds if all of its numbers do; one that does
not is enough against it. Numbers in grey are shown for comparison and do not count. “Final” means
the last 100 episodes of a run, “overall” all of them. {text(CHANCE)}</p>
{_claims_table(judgements)}"""


def _claims_table(judgements: Sequence[Judgement], anchors: bool = True) -> str:
    """A table of claims, to whose rows links can lead if they have anchors."""
    rows = "\n".join(_claim(judgement, anchors) for judgement in judgements)
    return f"""<div class="wide"><table class="claims">
<thead><tr><th>Claim</th><th>In the paper</th><th>Verdict</th><th>Measured</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>{footnote(rows)}"""


def _claim(judgement: Judgement, anchor: bool) -> str:
    claim, verdict, findings, note = judgement
    place = f' id="claim-{claim.id}"' if anchor else ""
    rows = (
        (
            *(text(f.what), interval_text(*f.measured, f.clipped), _side(f)),
            *(f.runs, f.verdict),
        )
        for f in findings
    )
    kinds = ["" if finding.counts else "aside" for finding in findings]
    measured = table(["number", "#mean [95%]", "#line", "#runs", ""], rows, kinds)
    if len(findings) > 4:
        counted = _counted(finding.verdict for finding in findings if finding.counts)
        summary = ", ".join(words for _, words in counted)
        measured = f"<details><summary>{summary}</summary>{measured}</details>"
    return f"""<tr{place}><td>{claim.id}</td>
<td>{text(claim.says)}<p class="rule">{text(claim.judged_by)}
<a href="#{claim.figure}">Figure</a></p></td>
<td>{badge(verdict, verdict)}<div class="note">{text(note)}</div></td>
<td>{measured if findings else ""}</td></tr>"""


def _readings(readings: ReadingVerdicts) -> str:
    rows = ((claim, text(words)) for claim, words in readings.words.items())
    words = table(["claim", "under which readings it holds"], rows)
    return f"""<h2 id="readings">Under other readings of what the paper leaves open</h2>
<p>Fewer, and for some domains shorter, runs: readings.md says which, and lists what moves a claim
most.</p>
<details><summary>In words</summary><div class="wide">{words}</div></details>"""


def _side(finding: Finding) -> str:
    """On which side of which line a finding should be, as HTML."""
    line = f"{finding.line:g}".replace("-", "−")
    return f"{'&gt;' if finding.above else '&lt;'} {line}"
