"""The data report as a page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from rblspi.core.files import write_text
from rblspi.offline.data_report import DataReport
from rblspi.plotting.html import badge, document, picture, table, text
from rblspi.plotting.style import BLUE, GREEN, ORANGE, save, style

#: pictures of columns; further ones are left out
MOST_COLUMNS = 12
#: the verdicts on whose ground the words of findings stand
_KINDS = {"good": "holds", "doubtful": "undecided", "bad": "does-not-hold"}


def write(report: DataReport, folder: Path, columns: str = "", name: str = "the log") -> Path:
    """Write ``data.html`` and its picture into a folder; returns the page.

    Parameters
    ----------
    report : DataReport
    folder : Path
        Created if it does not exist.
    columns : str
        The roles of the columns, as a table in plain text.
    name : str
        What the log is called on the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        _, drawn = save(draw(report), folder / "data")
    page = folder / "data.html"
    write_text(page, _page(report, drawn, columns, name))
    return page


def draw(report: DataReport) -> Drawing:
    """Rewards, lengths of episodes, actions, and the columns of the state."""
    log = report.log
    numbers = log.observations.reshape(log.size, -1)[:, :MOST_COLUMNS]
    rows = 1 + -(-numbers.shape[1] // 3)
    figure = Drawing(figsize=(9, 2.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False).ravel()
    _histogram(axes[0], log.rewards, "reward", ORANGE)
    _histogram(axes[1], report.lengths, "transitions of an episode", GREEN)
    counts = np.bincount(log.actions, minlength=max(len(report.action_names), 1))
    names = tuple(map(str, report.action_names or range(len(counts))))
    axes[2].bar(range(len(counts)), counts, color=BLUE)
    if len(counts) <= 12:
        axes[2].set_xticks(range(len(counts)), [name[:10] for name in names], rotation=30)
    axes[2].set_title("action")
    for axis, values, label in zip(axes[3:], numbers.T, report.names, strict=False):
        _histogram(axis, values, label, BLUE)
    for axis in axes[3 + numbers.shape[1] :]:
        axis.set_visible(False)
    return figure


def _histogram(axis: Any, values: Any, title: str, color: str) -> None:
    few = len(np.unique(values[:10_000])) <= 2
    axis.hist(np.asarray(values, np.float64), bins=3 if few else 30, color=color)
    axis.set_title(title[:40].replace("$", r"\$"))


def _page(report: DataReport, drawn: Path, columns: str, name: str) -> str:
    facts = table(["", ""], [map(text, fact) for fact in report.facts])
    findings = table(
        ["finding", "#value", "", "what to do"],
        (
            (text(f.name), f"{f.value:.4g}", badge(_KINDS[f.word], f.word), text(f.advice))
            for f in sorted(report.findings, key=lambda f: f.word == "good")
        ),
    )
    roles = f"<h2>Columns</h2><pre>{text(columns)}</pre>" if columns else ""
    shown = picture(
        drawn,
        "Histograms of rewards, lengths, actions and columns",
        f"How often values occur in {report.log.size:,} transitions.",
    )
    body = f"""<h1>{text(name)}</h1>
<p class="lead">{badge(_KINDS[report.word], report.word)}</p>
{facts}
<h2>Findings</h2>
{findings}
{roles}
<h2>Pictures</h2>
{shown}"""
    return document("rblspi: a log", body)
