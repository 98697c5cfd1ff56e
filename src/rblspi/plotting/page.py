"""The report: figures, tables, and one HTML page that needs no other files."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path

from matplotlib.figure import Figure as Drawing

from rblspi.core.files import write_text
from rblspi.core.progress import duration
from rblspi.experiments.definitions import Curve, Figure, canonical
from rblspi.experiments.judging import CHANCE, Judgement, Verdict
from rblspi.experiments.results import BOOTSTRAP_SEED, RESAMPLES, FigureResult
from rblspi.plotting import curves, tables
from rblspi.plotting.html import document
from rblspi.plotting.html import table as _table
from rblspi.plotting.html import text as _text
from rblspi.plotting.style import save, style
from rblspi.plotting.tables import ReadingVerdicts, Variants

Draw = Callable[[FigureResult], Drawing]


def write(
    results: Sequence[FigureResult],
    folder: Path,
    *,
    judgements: Sequence[Judgement] = (),
    variants: Variants | None = None,
    drawings: Mapping[str, Draw] | None = None,
    readings: ReadingVerdicts | None = None,
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
    variants : mapping, optional
        Verdicts by other rules on the same runs, by the title they are listed under.
    drawings : mapping, optional
        Functions that draw figures of other kinds than ``"curves"``, by `Figure.kind`.
    readings : ReadingVerdicts, optional
        Verdicts under other readings of what a paper leaves open.
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
    tables.write_claims(folder, judgements, results, variants or {}, readings)
    tables.write_summaries(folder / "summaries.csv", results)
    page = folder / "report.html"
    write_text(page, _page(results, judgements, variants or {}, pictures, readings, heading))
    return page


_WORDS: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
}


def _page(
    results: Sequence[FigureResult],
    judgements: Sequence[Judgement],
    variants: Variants,
    pictures: Mapping[str, Path],
    readings: ReadingVerdicts | None,
    heading: str,
) -> str:
    parts = [_head(heading, results, judgements, readings)]
    parts += [_claims(judgements)] if judgements else []
    parts += [
        f"<h3>{_text(title)}</h3>{_claims_table(v, anchors=False)}" for title, v in variants.items()
    ]
    parts += [_readings(readings)] if readings else []
    parts += [_figure(result, pictures[result.figure.id]) for result in results]
    return document(heading, "\n".join([*parts, _about(results)]))


def _head(
    heading: str,
    results: Sequence[FigureResult],
    judgements: Sequence[Judgement],
    readings: ReadingVerdicts | None,
) -> str:
    curves = tables.distinct(results)
    badges = "".join(_badge(*counted) for counted in _counted(j.verdict for j in judgements))
    links = {"claims": "Claims"} if judgements else {}
    links |= {"readings": "Other readings"} if readings else {}
    links |= {result.figure.id: result.figure.title.split(":")[0] for result in results}
    links["about"] = "How it was made"
    nav = "".join(f'<a href="#{_text(place)}">{_text(name)}</a>' for place, name in links.items())
    return f"""<h1>{_text(heading)}</h1>
<p class="lead">{sum(curve.runs for curve in curves):,} runs of {len(curves)} settings,
{tables.cost_text(results)} of processor time.</p>
<div class="counts">{badges}</div>
<nav>{nav}</nav>"""


def _counted(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, str]]:
    """Each verdict that occurs, and how often in words."""
    found = list(verdicts)
    return [(v, f"{found.count(v)} {words}") for v, words in _WORDS.items() if v in found]


def _badge(verdict: Verdict, words: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{words}</span>'


def _claims(judgements: Sequence[Judgement]) -> str:
    return f"""<h2 id="claims">What the paper says, and what was measured</h2>
<p>A number on the right comes with its 95% confidence interval. It <em>holds</em> if the whole
interval is on the right side of the line, <em>does not hold</em> if all of it is on the wrong
side, and is <em>undecided</em> otherwise. A claim holds if all of its numbers do; one that does
not is enough against it. Numbers in grey are shown for comparison and do not count. “Final” means
the last 100 episodes of a run, “overall” all of them. {_text(CHANCE)}</p>
{_claims_table(judgements)}"""


def _claims_table(judgements: Sequence[Judgement], anchors: bool = True) -> str:
    """A table of claims, to whose rows links can lead if they have anchors."""
    rows = "\n".join(_claim(judgement, anchors) for judgement in judgements)
    return f"""<div class="wide"><table class="claims">
<thead><tr><th>Claim</th><th>In the paper</th><th>Verdict</th><th>Measured</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>{_footnote(rows)}"""


def _claim(judgement: Judgement, anchor: bool) -> str:
    claim, verdict, findings, note = judgement
    place = f' id="claim-{claim.id}"' if anchor else ""
    rows = (
        (
            *(_text(f.what), tables.interval_text(*f.measured, f.clipped), tables.side_text(f)),
            *(f.runs, f.verdict),
        )
        for f in findings
    )
    kinds = ["" if finding.counts else "aside" for finding in findings]
    measured = _table(["number", "#mean [95%]", "#line", "#runs", ""], rows, kinds)
    if len(findings) > 4:
        counted = _counted(finding.verdict for finding in findings if finding.counts)
        summary = ", ".join(words for _, words in counted)
        measured = f"<details><summary>{summary}</summary>{measured}</details>"
    return f"""<tr{place}><td>{claim.id}</td>
<td>{_text(claim.says)}<p class="rule">{_text(claim.judged_by)}
<a href="#{claim.figure}">Figure</a></p></td>
<td>{_badge(verdict, verdict)}<div class="note">{_text(note)}</div></td>
<td>{measured if findings else ""}</td></tr>"""


def _readings(readings: ReadingVerdicts) -> str:
    rows = ((claim, _text(words)) for claim, words in readings.words.items())
    table = _table(["claim", "under which readings it holds"], rows, repeat(""))
    return f"""<h2 id="readings">Under other readings of what the paper leaves open</h2>
<p>Fewer, and for some domains shorter, runs: readings.md says which, and lists what moves a claim
most.</p>
<details><summary>In words</summary><div class="wide">{table}</div></details>"""


def _embedded(picture: Path) -> str:
    """The address of an SVG file that is part of the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _figure(result: FigureResult, picture: Path) -> str:
    figure = result.figure
    clipped = any(summary.clipped.any() for summary in result.summaries.values())
    caption = figure.caption or (
        f"Each point is the mean of {_blocks(figure)} over all runs; bars are the 95% "
        f"confidence interval of that mean{', as far as numbers are possible' if clipped else ''}, "
        "shaded regions hold the runs between the 5th and the 95th percentile."
        f"{_evaluations(figure) if result.greedy else ''}"
    )
    return f"""<h2 id="{_text(figure.id)}">{_text(figure.title)}</h2>
<figure><img alt="{_text(figure.title)}" src="{_embedded(picture)}">
<figcaption>{_text(caption)}</figcaption></figure>
<details><summary>Settings and numbers</summary>
<div class="wide">{_curves(result)}</div></details>"""


def _blocks(figure: Figure) -> str:
    """How many episodes are in a point, in words."""
    found = sorted({figure.block_of(curve.episodes) for curve in figure.curves})
    words = str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
    return f"{words} episode{'' if found == [1] else 's'}"


def _evaluations(figure: Figure) -> str:
    counts = " or ".join(str(n) for n in sorted({c.evaluation for c in figure.curves} - {0}))
    return (
        f" Open circles are {counts} episodes of the greedy policy, which learns nothing meanwhile."
    )


def _curves(result: FigureResult) -> str:
    figure = result.figure
    bases = {canonical(curve.plain["basis"]) for curve in figure.curves}
    first = figure.curves[0]
    others = " and others" if len({curve.environment for curve in figure.curves}) > 1 else ""
    amount = f"{first.episodes} episodes" if first.episodes else f"{first.samples} samples"
    basis = f"; {_basis(first)}" if len(bases) == 1 else ""
    columns = (
        *("panel", "curve", "settings", "#runs", "#seeds", "#steps", "#time"),
        *("#last point: mean [95%]", "#interquartile mean [95%]", "#greedy at the end [95%]"),
        "#runs with warnings",
    )
    rows = (
        _curve(result, ", ".join(filter(None, (group.title, panel.title))), curve, len(bases) > 1)
        for group in figure.groups
        for panel in group.panels
        for curve in panel.curves
    )
    about = f"<p>{_text(first.place)}{others}; {amount} a run{_text(basis)}.</p>"
    table = _table(columns, rows, repeat(""))
    return f"{about}{table}{_footnote(table)}"


def _footnote(table: str) -> str:
    return f'<p class="rule">{tables.CLIPPED}</p>' if "]†" in table else ""


def _curve(result: FigureResult, place: str, curve: Curve, with_basis: bool) -> Sequence[object]:
    """A row of the table of settings and numbers."""
    found, summary = result[curve], result.summaries.get(curve.digest)
    settings = ", ".join(
        f"{_SYMBOLS.get(name, name)} = {'end of episode' if value == 'episode' else value}"
        for name, value in curve.settings.items()
    )
    if with_basis:
        settings += f"; {_basis(curve)}"
    mean = iqm = greedy = "–"
    if summary is not None:
        ends = (summary.low[-1], summary.high[-1], summary.clipped[-1])
        mean = tables.interval_text(summary.mean[-1], *ends)
        iqm = tables.interval_text(summary.iqm[-1], summary.iqm_low[-1], summary.iqm_high[-1])
    if curve.digest in result.greedy:
        last = result.greedy[curve.digest]
        ends = (last.low[-1], last.high[-1], last.clipped[-1])
        greedy = tables.interval_text(last.mean[-1], *ends)
    warned = sum(bool(record.warnings) for record in found.records)
    return (
        *(_text(place), _text(curve.label), _text(settings), found.runs, _seeds(found.seeds)),
        *(f"{found.steps:,}", duration(found.seconds), mean, iqm, greedy, warned or ""),
    )


_SYMBOLS = {"prior_precision": "α", "noise_precision": "β", "update_every": "K", "discount": "γ"}


def _seeds(seeds: tuple[int, ...]) -> str:
    if not seeds:
        return "–"
    consecutive = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}–{seeds[-1]}" if consecutive else ", ".join(map(str, seeds))


def _basis(curve: Curve) -> str:
    given = ", ".join(f"{key} = {_plain(value)}" for key, value in curve.basis.items())
    return given or "the default basis"


def _plain(value: object) -> str:
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_plain(item) for item in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _about(results: Sequence[FigureResult]) -> str:
    curves = tables.distinct(results)
    records = [record for curve in curves for record in curve.records]
    versions = tables.versions_of(results)
    made = _list(", ".join(f"{name} {v}" for name, v in found.items()) for found in versions)
    old = sum(not curve.present_code for curve in curves)
    changed = (
        f"<p>The runs of {old} of {len(curves)} settings were made by another version of the code "
        "than the one that wrote this page.</p>"
    )
    codes = ", ".join(sorted({record.code for record in records})) or "–"
    warnings = sorted({warning for record in records for warning in record.warnings})
    warned = (
        f"<details><summary>What algorithms warned of</summary>{_list(warnings[:20])}</details>"
    )
    return f"""<h2 id="about">How it was made</h2>
<p>Run number i of every setting has seed i, from 0; the seed determines a run to the last bit.
Interquartile means are those of the middle half of the runs, with intervals from {RESAMPLES}
bootstrap resamples (seed {BOOTSTRAP_SEED}).</p>
<p>Versions:</p>{made}
{changed if old else ""}
<details><summary>Versions of the code behind the runs</summary>
<p>{_text(codes)}</p></details>
{warned if warnings else ""}"""


def _list(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(text)}</li>" for text in texts) + "</ul>"
