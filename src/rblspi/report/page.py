"""The report: figures, tables, and one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import csv
import html
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rblspi.experiments.claims import CLAIMS, Evidence, Finding, Judgement, Verdict, judge
from rblspi.experiments.definitions import Curve, Figure, canonical
from rblspi.experiments.paper import FIGURES
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.store import versions
from rblspi.experiments.summary import BOOTSTRAP_SEED, RESAMPLES, Summary
from rblspi.report import chain, figures
from rblspi.report.ink import save, style


class Report(NamedTuple):
    """What was written."""

    page: Path
    judgements: tuple[Judgement, ...]


def write(results: Sequence[FigureResult], folder: Path) -> Report:
    """Write figures, tables, ``claims.json`` and ``report.html`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    judgements = judgements_on(results)
    pictures: dict[str, Path] = {}
    with style():
        for result in results:
            drawing = chain.draw(result) if result.figure.kind == "chain" else figures.draw(result)
            pictures[result.figure.id] = save(drawing, folder / "figures" / result.figure.id)[1]
    _write_json(folder / "claims.json", judgements, results)
    (folder / "claims.md").write_text(_markdown(judgements, results), encoding="utf-8")
    _write_summaries(folder / "summaries.csv", results)
    page = folder / "report.html"
    page.write_text(_page(results, judgements, pictures), encoding="utf-8")
    return Report(page, judgements)


# Claims ------------------------------------------------------------------------------------


def judgements_on(results: Sequence[FigureResult]) -> tuple[Judgement, ...]:
    """Verdicts on the claims of those figures of the paper that are among the results."""
    ours = {result.figure.id: result for result in results}
    shown = [result for result in results if result.figure.id in FIGURES]
    instead = {
        paper_curve.digest: curve
        for result in shown
        for paper_curve, curve in zip(
            FIGURES[result.figure.id].curves, result.figure.curves, strict=True
        )
    }
    evidence = Evidence(shown, instead)
    return tuple(
        judge(claim, evidence, _shortfall(ours[claim.figure].figure))
        for claim in CLAIMS
        if claim.figure in ours and claim.figure in FIGURES
    )


def _shortfall(figure: Figure) -> str:
    episodes = min((curve.episodes for curve in figure.curves), default=0)
    if episodes >= figure.full_episodes:
        return ""
    return f"runs of {episodes} instead of {figure.full_episodes} episodes decide nothing"


# Numbers in words --------------------------------------------------------------------------


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return "?"
    size = abs(value)
    text = f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
    return "0" if text in ("-0", "-0.0") else text.replace("-", "−")


def _measured(finding: Finding) -> str:
    mean, low, high = finding.measured
    return f"{_digits(mean)} [{_digits(low)}, {_digits(high)}]"


def _side(finding: Finding) -> str:
    line = f"{finding.line:g}".replace("-", "−")
    return f"{'&gt;' if finding.above else '&lt;'} {line}"


def _hours(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _seeds(result: CurveResult) -> str:
    seeds = result.seeds
    if not seeds:
        return "–"
    whole = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}–{seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _distinct(results: Iterable[FigureResult]) -> list[CurveResult]:
    return list({d: r for result in results for d, r in result.curves.items()}.values())


def _settings(curve: Curve) -> str:
    names = {
        "prior_precision": "α",
        "noise_precision": "β",
        "update_every": "K",
        "discount": "γ",
        "policy": "policy",
    }
    parts = []
    for name, value in curve.settings.items():
        shown = "end of episode" if value == "episode" else value
        parts.append(f"{names.get(name, name)} = {shown}")
    return ", ".join(parts)


# Files beside the page ---------------------------------------------------------------------


def _write_json(
    path: Path, judgements: Sequence[Judgement], results: Sequence[FigureResult]
) -> None:
    curves = _distinct(results)
    content = {
        "claims": [judgement.plain for judgement in judgements],
        "runs": sum(curve.runs for curve in curves),
        "steps": sum(curve.steps for curve in curves),
        "processor_seconds": round(sum(curve.seconds for curve in curves), 1),
        "versions": _versions(curves),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _versions(curves: Sequence[CurveResult]) -> list[dict[str, str]]:
    """Versions that runs were made with, each combination once; our own if there are no runs."""
    found = {
        json.dumps(record.versions, sort_keys=True): record.versions
        for curve in curves
        for record in curve.records
    }
    return list(found.values()) or [versions()]


def _write_summaries(path: Path, results: Sequence[FigureResult]) -> None:
    names = Summary._fields
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["figure", "measure", "environment", "algorithm", "basis", "settings", *names]
        )
        for result in results:
            for curve in result.figure.curves:
                summary = result.summaries.get(curve.digest)
                if summary is None:
                    continue
                head = [result.figure.id, result.figure.measure, curve.environment]
                head += [curve.algorithm, canonical(dict(curve.basis))]
                head += [canonical(dict(curve.settings))]
                for i in range(len(summary.episodes)):
                    row = [f"{getattr(summary, name)[i]:.7g}" for name in names[1:]]
                    writer.writerow([*head, summary.runs, *row])


def _markdown(judgements: Sequence[Judgement], results: Sequence[FigureResult]) -> str:
    lines = ["| claim | what the paper says | verdict | measured |", "|---|---|---|---|"]
    for judgement in judgements:
        measured = "<br>".join(
            f"{finding.what}: {_measured(finding)}, should be {_side(finding)}"
            f" ({finding.runs} runs{'' if finding.counts else '; shown only'}):"
            f" {finding.verdict}"
            for finding in judgement.findings
        )
        note = f"<br>{judgement.note}" if judgement.note else ""
        lines.append(
            f"| {judgement.claim.id} | {judgement.claim.says}<br>*Judged by:* "
            f"{judgement.claim.judged_by} | **{judgement.verdict}**{note} | {measured} |"
        )
    curves = _distinct(results)
    seconds = sum(curve.seconds for curve in curves)
    lines += [
        "",
        f"{sum(curve.runs for curve in curves)} runs, {sum(curve.steps for curve in curves):,} "
        f"steps, {_hours(seconds)} of processor time. Intervals are 95% confidence intervals.",
        "",
    ]
    return "\n".join(lines)


# The page ------------------------------------------------------------------------------------

_CSS = """
:root { color-scheme: light; --ink: #1c2126; --soft: #5b6670; --line: #dde2e6; --pale: #f6f8f9; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2.5rem 2rem 5rem; color: var(--ink);
  background: white; font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
p, li { max-width: 48rem; }
.lead { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
a { color: #0b5c8f; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line);
  padding: .35rem .6rem; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .4rem .6rem; vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
table.claims > tbody > tr > td:first-child { white-space: nowrap; font-weight: 600; }
.rule { color: var(--soft); font-size: .92em; margin: .25rem 0 0; }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-weight: 600;
  white-space: nowrap; font-size: .85rem; }
.holds { background: #d5eef0; color: #00565d; }
.does-not-hold { background: #fbe0d3; color: #8a3200; }
.undecided { background: #ebecee; color: #444c54; }
.note { color: var(--soft); font-size: .85em; max-width: 16rem; }
.aside td { color: var(--soft); }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .92rem; max-width: 56rem; }
summary { cursor: pointer; color: #0b5c8f; }
details[open] > summary { margin-bottom: .4rem; }
.counts { display: flex; gap: .6rem; flex-wrap: wrap; margin: 1rem 0; }
.wide { overflow-x: auto; }
"""

_WORDS: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
}

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def _page(
    results: Sequence[FigureResult],
    judgements: Sequence[Judgement],
    pictures: dict[str, Path],
) -> str:
    links = "".join(
        f'<a href="#{_text(r.figure.id)}">{_text(r.figure.title.split(":")[0])}</a>'
        for r in results
    )
    claims = [_claims(judgements)] if judgements else []
    sections = [_figure(result, pictures[result.figure.id]) for result in results]
    body = "\n".join([_head(results, judgements, links), *claims, *sections, _about(results)])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>rblspi: the experiments</title>
<style>{_CSS}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _head(results: Sequence[FigureResult], judgements: Sequence[Judgement], links: str) -> str:
    curves = _distinct(results)
    runs = sum(curve.runs for curve in curves)
    verdicts = [judgement.verdict for judgement in judgements]
    counts = "".join(
        f"{_badge(verdict, f'{verdicts.count(verdict)} {words}')}"
        for verdict, words in _WORDS.items()
        if verdict in verdicts
    )
    nav = ('<a href="#claims">Claims</a>' if judgements else "") + links
    return f"""<h1>Randomised Bayesian least-squares policy iteration, reproduced</h1>
<p class="lead">{runs:,} runs of {len(curves)} settings, {sum(c.steps for c in curves):,} steps,
{_hours(sum(c.seconds for c in curves))} of processor time.</p>
<div class="counts">{counts}</div>
<nav>{nav}<a href="#about">How it was made</a></nav>"""


def _badge(verdict: str, words: str = "") -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{_text(words or verdict)}</span>'


def _claims(judgements: Sequence[Judgement]) -> str:
    rows = "\n".join(_claim(judgement) for judgement in judgements)
    return f"""<h2 id="claims">What the paper says, and what was measured</h2>
<p>A number on the right comes with its 95% confidence interval. It <em>holds</em> if the whole
interval is on the right side of the line, <em>does not hold</em> if all of it is on the wrong
side, and is <em>undecided</em> otherwise. A claim holds if all of its numbers do; one that does
not is enough against it. Numbers in grey are shown for comparison and do not count. “Final” means
the last 100 episodes of a run, “overall” all of them.</p>
<div class="wide"><table class="claims">
<thead><tr><th>Claim</th><th>In the paper</th><th>Verdict</th><th>Measured</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>"""


def _claim(judgement: Judgement) -> str:
    claim = judgement.claim
    note = f'<div class="note">{_text(judgement.note)}</div>' if judgement.note else ""
    return f"""<tr id="claim-{claim.id}"><td>{claim.id}</td>
<td>{_text(claim.says)}<p class="rule">{_text(claim.judged_by)}
<a href="#{claim.figure}">Figure</a></p></td>
<td>{_badge(judgement.verdict)}{note}</td>
<td>{_findings(judgement.findings)}</td></tr>"""


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = "".join(
        f'<tr class="{_kind(finding)}"><td>{_text(finding.what)}</td>'
        f'<td class="number">{_measured(finding)}</td><td class="number">{_side(finding)}</td>'
        f'<td class="number">{finding.runs}</td><td>{_text(finding.verdict)}</td></tr>'
        for finding in findings
    )
    table = (
        '<table><thead><tr><th>number</th><th class="number">mean [95%]</th>'
        '<th class="number">line</th><th class="number">runs</th><th></th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    if len(findings) <= 4:
        return table
    counted = [finding.verdict for finding in findings if finding.counts]
    parts = [
        f"{counted.count(verdict)} {words}"
        for verdict, words in _WORDS.items()
        if verdict in counted
    ]
    return f"<details><summary>{', '.join(parts)}</summary>{table}</details>"


def _kind(finding: Finding) -> str:
    return "counted" if finding.counts else "aside"


def _figure(result: FigureResult, picture: Path) -> str:
    figure = result.figure
    data = base64.b64encode(picture.read_bytes()).decode()
    return f"""<h2 id="{_text(figure.id)}">{_text(figure.title)}</h2>
<figure><img alt="{_text(figure.title)}" src="data:image/svg+xml;base64,{data}">
<figcaption>{_caption(result)}</figcaption></figure>
<details><summary>Settings and numbers</summary>
<div class="wide">{_curves(result)}</div></details>"""


def _caption(result: FigureResult) -> str:
    if result.figure.kind == "chain":
        return (
            "Stripes: the policy after each improvement, the estimated one above the exact one. "
            "Lines: values of the policy under evaluation, estimated and exact. Both algorithms "
            "see the same samples: of all sample sets, the one in which the largest difference of "
            "their values is the median."
        )
    block = result.figure.block
    return (
        f"Each point is the mean of {block} episodes over all runs; bars are the 95% confidence "
        "interval of that mean, shaded regions hold the runs between the 5th and the 95th "
        "percentile."
    )


def _curves(result: FigureResult) -> str:
    rows = []
    several = len({canonical(dict(curve.basis)) for curve in result.figure.curves}) > 1
    for panel, group in ((p, g) for g in result.figure.groups for p in g.panels):
        for curve in panel.curves:
            found, summary = result[curve], result.summaries.get(curve.digest)
            place = ", ".join(part for part in (group.title, panel.title) if part)
            mean = iqm = "–"
            if summary is not None:
                ends = (summary.mean[-1], summary.low[-1], summary.high[-1])
                mean = "{} [{}, {}]".format(*map(_digits, ends))
                ends = (summary.iqm[-1], summary.iqm_low[-1], summary.iqm_high[-1])
                iqm = "{} [{}, {}]".format(*map(_digits, ends))
            concerns = sum(bool(record.concerns) for record in found.records)
            rows.append(
                f"<tr><td>{_text(place)}</td><td>{_text(curve.label)}</td>"
                f"<td>{_text(_settings(curve) + (f'; {_basis(curve)}' if several else ''))}</td>"
                f'<td class="number">{found.runs}</td><td class="number">{_seeds(found)}</td>'
                f'<td class="number">{found.steps:,}</td>'
                f'<td class="number">{_hours(found.seconds)}</td>'
                f'<td class="number">{mean}</td><td class="number">{iqm}</td>'
                f'<td class="number">{concerns or ""}</td></tr>'
            )
    first = next(iter(result.figure.curves))
    amount = f"{first.episodes} episodes" if first.episodes else f"{first.samples} samples"
    basis = "" if several else f"; {_basis(first)}"
    return (
        f"<p>{_text(first.environment)}{' and others' if _many(result) else ''}; {amount} a run"
        f"{_text(basis)}.</p>"
        "<table><thead><tr><th>panel</th><th>curve</th><th>settings</th>"
        '<th class="number">runs</th><th class="number">seeds</th><th class="number">steps</th>'
        '<th class="number">time</th><th class="number">last point: mean [95%]</th>'
        '<th class="number">interquartile mean [95%]</th><th class="number">runs with warnings</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _basis(curve: Curve) -> str:
    return ", ".join(f"{key} = {_plain(value)}" for key, value in curve.basis.items())


def _many(result: FigureResult) -> bool:
    return len({curve.environment for curve in result.figure.curves}) > 1


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_plain(item) for item in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _about(results: Sequence[FigureResult]) -> str:
    curves = _distinct(results)
    made = " ".join(
        "<li>" + ", ".join(f"{_text(k)} {_text(v)}" for k, v in combination.items()) + "</li>"
        for combination in _versions(curves)
    )
    old = sum(not curve.present_code for curve in curves)
    changed = (
        f"<p>The runs of {old} of {len(curves)} settings were made by another version of the code "
        "than the one that wrote this page.</p>"
        if old
        else ""
    )
    codes = sorted({record.code for curve in curves for record in curve.records})
    warnings = sorted({c for curve in curves for record in curve.records for c in record.concerns})
    warned = (
        "<details><summary>What algorithms warned of</summary><ul>"
        + "".join(f"<li>{_text(warning)}</li>" for warning in warnings[:20])
        + "</ul></details>"
        if warnings
        else ""
    )
    return f"""<h2 id="about">How it was made</h2>
<p>Run number i of every setting has seed i, from 0; the seed determines a run to the last bit.
Interquartile means are those of the middle half of the runs, with intervals from {RESAMPLES}
bootstrap resamples (seed {BOOTSTRAP_SEED}).</p>
<p>Versions:</p><ul>{made}</ul>
{changed}
<details><summary>Versions of the code behind the runs</summary>
<p>{_text(", ".join(codes)) or "–"}</p></details>
{warned}"""


def _text(value: str) -> str:
    """Escaped; an equation stays on one line."""
    return html.escape(value).replace(" = ", "&nbsp;=&nbsp;").replace(" × ", "&nbsp;×&nbsp;")
