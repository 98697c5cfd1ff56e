"""The report: figures, tables, and one HTML page that needs no other files."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure as Drawing

from rblspi.core.progress import duration
from rblspi.experiments.definitions import Curve, Group, Panel, canonical
from rblspi.experiments.judging import Finding, Judgement, Verdict
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.summary import BOOTSTRAP_SEED, RESAMPLES
from rblspi.plotting import curves
from rblspi.plotting.style import save, style
from rblspi.plotting.tables import (
    cost_text,
    distinct,
    interval_text,
    side_text,
    versions_of,
    write_claims,
    write_summaries,
)

Draw = Callable[[FigureResult], Drawing]


def write(
    results: Sequence[FigureResult],
    folder: Path,
    *,
    judgements: Sequence[Judgement] = (),
    drawings: Mapping[str, Draw] | None = None,
    heading: str = "Experiments",
) -> Path:
    """Write figures, tables and the page ``report.html`` into a folder; returns the page.

    Parameters
    ----------
    results : sequence of FigureResult
    folder : Path
        Created if it does not exist.
    judgements : sequence of Judgement
        Verdicts to list on the page.
    drawings : mapping, optional
        Functions that draw figures of other kinds than ``"curves"``, by `Figure.kind`.
    heading : str
    """
    known = {"curves": curves.draw, **(drawings or {})}
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Path] = {}
    with style():
        for result in results:
            figure = result.figure
            if figure.kind not in known:
                raise ValueError(f"figure {figure.id!r} has kind={figure.kind!r}: pass drawings=")
            stem = folder / "figures" / figure.id
            _, pictures[figure.id] = save(known[figure.kind](result), stem)
    write_claims(folder, judgements, results)
    write_summaries(folder / "summaries.csv", results)
    page = folder / "report.html"
    page.write_text(_page(results, judgements, pictures, heading), encoding="utf-8")
    return page


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
    pictures: Mapping[str, Path],
    heading: str,
) -> str:
    links = "".join(
        f'<a href="#{_text(r.figure.id)}">{_text(r.figure.title.split(":")[0])}</a>'
        for r in results
    )
    claims = [_claims(judgements)] if judgements else []
    sections = [_figure(result, pictures[result.figure.id]) for result in results]
    head = _head(heading, results, judgements, links)
    body = "\n".join([head, *claims, *sections, _about(results)])
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


def _head(
    heading: str, results: Sequence[FigureResult], judgements: Sequence[Judgement], links: str
) -> str:
    settings = distinct(results)
    runs = sum(result.runs for result in settings)
    verdicts = [judgement.verdict for judgement in judgements]
    counts = "".join(
        f"{_badge(verdict, f'{verdicts.count(verdict)} {words}')}"
        for verdict, words in _WORDS.items()
        if verdict in verdicts
    )
    nav = ('<a href="#claims">Claims</a>' if judgements else "") + links
    return f"""<h1>{_text(heading)}</h1>
<p class="lead">{runs:,} runs of {len(settings)} settings, {cost_text(results)} of processor
time.</p>
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
        f'<td class="number">{interval_text(*finding.measured)}</td>'
        f'<td class="number">{side_text(finding)}</td>'
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
    return _text(result.figure.caption) or (
        f"Each point is the mean of {result.figure.block} episodes over all runs; bars are the 95% "
        "confidence interval of that mean, shaded regions hold the runs between the 5th and the "
        "95th percentile."
    )


def _curves(result: FigureResult) -> str:
    figure = result.figure
    several = len({canonical(dict(curve.basis)) for curve in figure.curves}) > 1
    rows = "".join(
        _curve(result, group, panel, curve, several)
        for group in figure.groups
        for panel in group.panels
        for curve in panel.curves
    )
    first = figure.curves[0]
    others = " and others" if len({curve.environment for curve in figure.curves}) > 1 else ""
    amount = f"{first.episodes} episodes" if first.episodes else f"{first.samples} samples"
    basis = "" if several else f"; {_basis(first)}"
    return (
        f"<p>{_text(first.environment)}{others}; {amount} a run{_text(basis)}.</p>"
        "<table><thead><tr><th>panel</th><th>curve</th><th>settings</th>"
        '<th class="number">runs</th><th class="number">seeds</th><th class="number">steps</th>'
        '<th class="number">time</th><th class="number">last point: mean [95%]</th>'
        '<th class="number">interquartile mean [95%]</th><th class="number">runs with warnings</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def _curve(result: FigureResult, group: Group, panel: Panel, curve: Curve, with_basis: bool) -> str:
    """A row of the table of settings and numbers."""
    found, summary = result[curve], result.summaries.get(curve.digest)
    place = ", ".join(part for part in (group.title, panel.title) if part)
    settings = _settings(curve) + (f"; {_basis(curve)}" if with_basis else "")
    mean = iqm = "–"
    if summary is not None:
        mean = interval_text(summary.mean[-1], summary.low[-1], summary.high[-1])
        iqm = interval_text(summary.iqm[-1], summary.iqm_low[-1], summary.iqm_high[-1])
    warned = sum(bool(record.warnings) for record in found.records)
    numbers = (
        *(found.runs, _seeds(found), f"{found.steps:,}", duration(found.seconds)),
        *(mean, iqm, warned or ""),
    )
    texts = "".join(f"<td>{_text(text)}</td>" for text in (place, curve.label, settings))
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return f"<tr>{texts}{cells}</tr>"


_SYMBOLS = {
    "prior_precision": "α",
    "noise_precision": "β",
    "update_every": "K",
    "discount": "γ",
}


def _settings(curve: Curve) -> str:
    return ", ".join(
        f"{_SYMBOLS.get(name, name)} = {'end of episode' if value == 'episode' else value}"
        for name, value in curve.settings.items()
    )


def _seeds(result: CurveResult) -> str:
    seeds = result.seeds
    if not seeds:
        return "–"
    consecutive = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}–{seeds[-1]}" if consecutive else ", ".join(map(str, seeds))


def _basis(curve: Curve) -> str:
    return ", ".join(f"{key} = {_plain(value)}" for key, value in curve.basis.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_plain(item) for item in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _about(results: Sequence[FigureResult]) -> str:
    settings = distinct(results)
    records = [record for result in settings for record in result.records]
    made = " ".join(
        "<li>" + ", ".join(f"{_text(k)} {_text(v)}" for k, v in combination.items()) + "</li>"
        for combination in versions_of(results)
    )
    old = sum(not result.present_code for result in settings)
    changed = (
        f"<p>The runs of {old} of {len(settings)} settings were made by another version of the "
        "code than the one that wrote this page.</p>"
        if old
        else ""
    )
    codes = sorted({record.code for record in records})
    warnings = sorted({warning for record in records for warning in record.warnings})
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
    """Escape a text for HTML; equations are not broken across lines."""
    return html.escape(value).replace(" = ", "&nbsp;=&nbsp;").replace(" × ", "&nbsp;×&nbsp;")
