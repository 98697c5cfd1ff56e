"""The report: figures, tables, and one HTML page that needs no other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure as Drawing

from rblspi.core.files import write_text
from rblspi.core.progress import duration
from rblspi.experiments.definitions import Curve, Figure, canonical
from rblspi.experiments.results import BOOTSTRAP_SEED, RESAMPLES, FigureResult
from rblspi.plotting import curves, tables
from rblspi.plotting.html import document, listed, picture, table, text
from rblspi.plotting.style import save, style

Draw = Callable[[FigureResult], Drawing]


class Section(NamedTuple):
    """A part of the page before its figures."""

    place: str  # to which links lead
    name: str  # in the list of links
    body: str  # HTML


def write(
    results: Sequence[FigureResult],
    folder: Path,
    *,
    drawings: Mapping[str, Draw] | None = None,
    heading: str = "Experiments",
    badges: str = "",
    sections: Sequence[Section] = (),
) -> Path:
    """Write figures, their numbers and the page ``report.html`` into a folder; returns the page.

    Parameters
    ----------
    results : sequence of FigureResult
    folder : Path
        Created if it does not exist.
    drawings : mapping, optional
        Functions that draw figures of other kinds than ``"curves"``, by `Figure.kind`.
    heading : str
    badges : str
        HTML that comes before the links.
    sections : sequence of Section
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
    tables.write_summaries(folder / "summaries.csv", results)
    page = folder / "report.html"
    body = [
        _head(heading, results, badges, sections),
        *(section.body for section in sections),
        *(_figure(result, pictures[result.figure.id]) for result in results),
        _about(results),
    ]
    write_text(page, document(heading, "\n".join(body)))
    return page


def _head(
    heading: str, results: Sequence[FigureResult], badges: str, sections: Sequence[Section]
) -> str:
    curves = tables.distinct(results)
    links = {section.place: section.name for section in sections}
    links |= {result.figure.id: result.figure.title.split(":")[0] for result in results}
    links["about"] = "How it was made"
    nav = "".join(f'<a href="#{text(place)}">{text(name)}</a>' for place, name in links.items())
    return f"""<h1>{text(heading)}</h1>
<p class="lead">{sum(curve.runs for curve in curves):,} runs of {len(curves)} settings,
{tables.cost_text(results)} of processor time.</p>
<div class="counts">{badges}</div>
<nav>{nav}</nav>"""


def _figure(result: FigureResult, drawn: Path) -> str:
    figure = result.figure
    clipped = any(summary.clipped.any() for summary in result.summaries.values())
    caption = figure.caption or (
        f"Each point is the mean of {_blocks(figure)} over all runs; bars are the 95% "
        f"confidence interval of that mean{', as far as numbers are possible' if clipped else ''}, "
        "shaded regions hold the runs between the 5th and the 95th percentile."
        f"{_evaluations(figure) if result.greedy else ''}"
    )
    return f"""<h2 id="{text(figure.id)}">{text(figure.title)}</h2>
{picture(drawn, figure.title, caption)}
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
    about = f"<p>{text(first.place)}{others}; {amount} a run{text(basis)}.</p>"
    numbers = table(columns, rows)
    return f"{about}{numbers}{footnote(numbers)}"


def footnote(html: str) -> str:
    """What a dagger behind an interval means, if there is one."""
    return f'<p class="rule">{tables.CLIPPED}</p>' if "]†" in html else ""


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
        *(text(place), text(curve.label), text(settings), found.runs, _seeds(found.seeds)),
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
    made = listed(", ".join(f"{name} {v}" for name, v in found.items()) for found in versions)
    old = sum(not curve.present_code for curve in curves)
    changed = (
        f"<p>The runs of {old} of {len(curves)} settings were made by another version of the code "
        "than the one that wrote this page.</p>"
    )
    codes = ", ".join(sorted({record.code for record in records})) or "–"
    warnings = sorted({warning for record in records for warning in record.warnings})
    warned = (
        f"<details><summary>What algorithms warned of</summary>{listed(warnings[:20])}</details>"
    )
    return f"""<h2 id="about">How it was made</h2>
<p>Run number i of every setting has seed i, from 0; the seed determines a run to the last bit.
Interquartile means are those of the middle half of the runs, with intervals from {RESAMPLES}
bootstrap resamples (seed {BOOTSTRAP_SEED}).</p>
<p>Versions:</p>{made}
{changed if old else ""}
<details><summary>Versions of the code behind the runs</summary>
<p>{text(codes)}</p></details>
{warned if warnings else ""}"""
