"""A forest plot: the value of a policy by every method, with its interval."""

from __future__ import annotations

import sys

from matplotlib.figure import Figure as Drawing

from rblspi.offline.estimates import Estimates
from rblspi.plotting import style


def draw(result: Estimates, truth: float | None = None) -> Drawing:
    """Draw one line for each method, with a line at the true value if it is known.

    The axis shows all values and the narrower intervals; an interval that reaches further ends in
    an arrow.
    """
    rows = [row for row in result.rows if row.known]
    apart = {row.method for pair in result.disagreements() for row in pair}
    figure = Drawing(figsize=(7.4, 0.9 + 0.42 * len(rows)), layout="constrained")
    axes = figure.subplots()
    low, high = _limits(result, truth)
    for place, row in enumerate(rows):
        colour = style.VERMILLION if row.method in apart else style.BLUE
        ends = max(row.low, low), min(row.high, high)
        axes.plot(ends, (place, place), color=colour, lw=1.6)
        axes.plot(row.mean, place, "o", color=colour, markersize=5)
        for end, marker, beyond in zip(ends, "<>", (row.low < low, row.high > high), strict=True):
            axes.plot(end, place, marker if beyond else "|", color=colour, markersize=6)
    if truth is not None:
        axes.axvline(truth, color=style.GREY, lw=1, ls="--", zorder=1, label="true value")
        axes.legend(loc="best")
    axes.set_yticks(range(len(rows)), [row.method for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"value of the policy in its first states, {result.confidence:.0%} intervals")
    if apart:
        axes.set_title("Intervals in red do not overlap with some other", loc="left")
    return figure


def _limits(result: Estimates, truth: float | None) -> tuple[float, float]:
    """All values, and the intervals up to four times as wide as the median."""
    rows = [row for row in result.rows if row.known]
    widths = sorted(row.high - row.low for row in rows)
    widest = min(4.0 * widths[len(widths) // 2], sys.float_info.max)
    usual = [row for row in rows if row.high - row.low <= widest]
    points = [row.mean for row in rows] + [end for row in usual for end in (row.low, row.high)]
    points += [] if truth is None else [truth]
    margin = 0.08 * (max(points) - min(points))
    return min(points) - margin, max(points) + margin
