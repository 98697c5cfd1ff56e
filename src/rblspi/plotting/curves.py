"""Figures of learning curves.

A line is the mean over runs, and its bars are the 95% confidence interval of that mean, as far as
numbers are possible. The shaded region holds the runs between the 5th and the 95th percentile. A
thin dotted line with open circles is the greedy policy, where it was evaluated on the way.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from rblspi.experiments.definitions import Figure, Panel
from rblspi.experiments.results import FigureResult, Summary
from rblspi.plotting.style import BASELINES, GREY, LEARNERS, Stroke
from rblspi.registry import algorithm

PANEL_WIDTH, PANEL_HEIGHT = 3.1, 2.35
_GREEDY: dict[str, Any] = {
    "linestyle": ":",
    "linewidth": 1.0,
    "marker": "o",
    "markersize": 3.2,
    "markerfacecolor": "white",
    "markeredgewidth": 0.8,
}
_MEASURES = {"length": "steps per episode", "return": "return per episode"}


def draw(result: FigureResult) -> Drawing:
    """Draw a figure of learning curves."""
    figure = result.figure
    widths = [min(group.columns, len(group.panels)) for group in figure.groups]
    heights = [-(-len(g.panels) // width) for g, width in zip(figure.groups, widths, strict=True)]
    height = PANEL_HEIGHT * max(heights)
    size = max(PANEL_WIDTH * sum(widths), 5.6), height + 1.0
    drawing = Drawing(figsize=size, layout="constrained")
    root: Any = drawing
    body, foot = root.subfigures(2, 1, height_ratios=[height + 0.4, 0.45])
    parts = np.atleast_1d(body.subfigures(1, len(figure.groups), width_ratios=widths, wspace=0.02))
    limits, strokes = figure.limits or _limits(result), _strokes(figure)
    ends = [s.episodes[-1] + 0.6 * s.episodes[0] for s in result.summaries.values()]
    end = max(ends, default=1.0)
    for part, group, rows, columns in zip(parts, figure.groups, heights, widths, strict=True):
        if group.title:
            part.suptitle(group.title, fontsize=11, fontweight="bold")
        axes = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax in axes.ravel()[len(group.panels) :]:
            ax.set_visible(False)
        for ax, panel in zip(axes.ravel(), group.panels, strict=False):
            _draw_panel(ax, panel, result, strokes)
            if figure.ticks:
                ax.set_yscale("log")
                ax.set_yticks(figure.ticks, [f"{tick:g}" for tick in figure.ticks])
                ax.minorticks_off()
            ax.set(xlim=(0, end), ylim=limits)
        for ax in axes[-1]:
            ax.set_xlabel("episode")
        for ax in axes[:, 0]:
            ax.set_ylabel(_MEASURES[figure.measure])
    _legend(foot, strokes, bool(result.greedy))
    return drawing


def _draw_panel(ax: Any, panel: Panel, result: FigureResult, strokes: dict[str, Stroke]) -> None:
    ax.set_title(panel.title, loc="left")
    drawn = [curve for curve in panel.curves if curve.digest in result.summaries]
    for i, curve in enumerate(drawn):
        summary = result.summaries[curve.digest]
        _draw_curve(ax, summary, strokes[curve.label], i - (len(drawn) - 1) / 2)
        if curve.digest in result.greedy:
            _draw_greedy(ax, result.greedy[curve.digest], strokes[curve.label])
    if not drawn:
        ax.text(0.5, 0.5, "no runs yet", transform=ax.transAxes, ha="center", color=GREY)
    runs = sorted({result[curve].runs for curve in panel.curves})
    text = f"{runs[0]} runs" if len(runs) == 1 else f"{runs[0]}–{runs[-1]} runs"
    ax.set_title(text, loc="right", fontsize=7.5, color=GREY)
    ax.tick_params(labelbottom=True, labelleft=True, labelsize=8)


def _draw_curve(ax: Any, summary: Summary, stroke: Stroke, shift: float) -> None:
    x = summary.episodes
    ax.fill_between(
        x, summary.percentile_5, summary.percentile_95, color=stroke.color, alpha=0.13, linewidth=0
    )
    # Shift the bars so that those of different curves do not cover each other.
    errors = np.nan_to_num([summary.mean - summary.low, summary.high - summary.mean])
    _, caps, bars = ax.errorbar(
        x + 0.07 * x[0] * shift,
        summary.mean,
        yerr=np.maximum(errors, 0.0),
        **stroke._asdict(),
        markersize=2.8,
        markeredgewidth=0.9,
        linewidth=1.3,
        elinewidth=0.9,
        capsize=1.5,
        capthick=0.8,
    )
    for part in (*caps, *bars):
        part.set_alpha(0.6)


def _draw_greedy(ax: Any, summary: Summary, stroke: Stroke) -> None:
    ax.plot(summary.episodes, summary.mean, color=stroke.color, **_GREEDY)
    ax.vlines(
        summary.episodes, summary.low, summary.high, color=stroke.color, linewidth=0.6, alpha=0.6
    )


def _legend(foot: Any, strokes: dict[str, Stroke], greedy: bool) -> None:
    handles = [
        Line2D([], [], **stroke._asdict(), markersize=4, linewidth=1.5, label=label)
        for label, stroke in strokes.items()
    ]
    if greedy:
        handles.append(Line2D([], [], color=GREY, label="the greedy policy", **_GREEDY))
    foot.legend(handles=handles, loc="center", ncols=min(len(handles), 6), fontsize=9)


def _strokes(figure: Figure) -> dict[str, Stroke]:
    """A stroke for each label, the same in all panels."""
    learners, baselines = cycle(LEARNERS), cycle(BASELINES)
    strokes: dict[str, Stroke] = {}
    for panel in figure.panels:
        for curve in panel.curves:
            if curve.label not in strokes:
                is_baseline = algorithm(curve.algorithm).baseline
                strokes[curve.label] = next(baselines if is_baseline else learners)
    return strokes


def _limits(result: FigureResult) -> tuple[float, float]:
    """Vertical limits that leave room for all means, and some space around them."""
    summaries = [*result.summaries.values(), *result.greedy.values()]
    if not summaries:
        return 0.0, 1.0
    low = min(float(s.mean.min()) for s in summaries)
    high = max(float(s.mean.max()) for s in summaries)
    room = 0.06 * max(high - low, 1e-9)
    return low - room, high + room
