"""The figure of the chain walk: the iterations of BLSPI in one row, those of LSPI in another.

For every iteration, two stripes show the improved policy, the estimated one above the exact one.
Two lines show the values of the policy under evaluation, estimated and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rblspi.core.types import Array, Integers
from rblspi.experiments.results import CurveResult, FigureResult, Range
from rblspi.experiments.tasks import make_environment
from rblspi.plotting.style import BLACK, BLUE, GREY, SKY
from rblspi_paper.claims import chain_differences

YELLOW = "#F5C84B"


class ChainIteration(NamedTuple):
    """One iteration of a run; every array has shape (states,)."""

    evaluated: Integers  # the policy under evaluation
    estimated: Array  # max_a of its estimated action values
    exact: Array  # max_a of its exact action values
    improved: Integers  # greedy with respect to the estimated values
    exactly_improved: Integers  # greedy with respect to the exact values


def iterations(result: CurveResult, seed: int = 0) -> list[ChainIteration]:
    """The iterations of one run, compared with exact policy evaluation."""
    chain: Any = make_environment(result.curve).unwrapped
    discount = float(result.curve.settings["discount"])
    values = result.tables_by_seed[seed]
    policy = np.zeros(values.shape[1], np.int64)
    found = []
    for estimate in values:
        exact = chain.exact_action_values(policy, discount)
        (estimated, improved), (true, best) = (
            (values.max(axis=1), values.argmax(axis=1)) for values in (estimate, exact)
        )
        found.append(ChainIteration(policy, estimated, true, improved, best))
        policy = improved
    return found


def typical_seed(curves: Sequence[CurveResult]) -> int | None:
    """The seed of the samples on which the two algorithms differ by the median amount."""
    tables = [curve.tables_by_seed for curve in curves]
    seeds = sorted(set.intersection(*(set(table) for table in tables)))
    if not seeds:
        return None
    apart = [chain_differences(*(table[seed] for table in tables))[0].max() for seed in seeds]
    return seeds[int(np.argsort(apart, kind="stable")[(len(apart) - 1) // 2])]


def draw(result: FigureResult) -> Drawing:
    """Draw both algorithms on the same, typical set of samples."""
    curves = [result[curve] for panel in result.figure.panels for curve in panel.curves]
    seed = typical_seed(curves)
    histories = [[] if seed is None else iterations(curve, seed) for curve in curves]
    columns = max([1, *map(len, histories)])
    drawing = Drawing(figsize=(2.15 * columns + 0.6, 6.6), layout="constrained")
    root: Any = drawing
    body, foot = root.subfigures(2, 1, height_ratios=[6.1, 0.4])
    parts = body.subfigures(len(curves), 1, hspace=0.04)
    top = max([1.0, *(float(step.exact.max()) for history in histories for step in history)])
    for part, curve, history in zip(np.atleast_1d(parts), curves, histories, strict=True):
        part.suptitle(curve.curve.label, fontsize=11, fontweight="bold")
        _draw_history(part, history, columns, (-0.35 * top, 1.45 * top))
    handles = [
        Line2D([], [], color=BLUE, linewidth=1.6, label="estimated value"),
        Line2D([], [], color=BLACK, linestyle=":", linewidth=1.6, label="exact value"),
        Patch(color=SKY, label="left"),
        Patch(color=YELLOW, label="right"),
    ]
    foot.legend(handles=handles, loc="center", ncols=4, fontsize=9)
    return drawing


def _draw_history(part: Any, history: list[ChainIteration], columns: int, limits: Range) -> None:
    axes = part.subplots(2, columns, height_ratios=[1, 3.2], sharex=True, squeeze=False)
    for i, (stripe, values) in enumerate(axes.T):
        if i >= len(history):
            stripe.set_axis_off()
            values.set_axis_off()
            values.text(0.5, 0.5, "converged", transform=values.transAxes, ha="center", color=GREY)
            continue
        stripe.set_title(f"iteration {i + 1}")
        _draw_policies(stripe, history[i], i == 0)
        _draw_values(values, history[i], limits)
        values.tick_params(labelsize=8, labelleft=i == 0)
        if i == 0:
            values.set_ylabel("value")


def _draw_policies(ax: Any, iteration: ChainIteration, labelled: bool) -> None:
    states = len(iteration.improved)
    ax.pcolormesh(
        np.arange(states + 1) + 0.5,
        [0.0, 1.0, 2.0],
        np.stack([iteration.exactly_improved, iteration.improved]),
        cmap=ListedColormap([SKY, YELLOW]),
        vmin=0,
        vmax=1,
        edgecolors="white",
        linewidth=0.4,
    )
    ax.set_yticks([0.5, 1.5], ["exact", "estimated"] if labelled else ["", ""])
    ax.tick_params(length=0, labelsize=8, labelbottom=False)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _draw_values(ax: Any, iteration: ChainIteration, limits: Range) -> None:
    states = np.arange(1, len(iteration.improved) + 1)
    ax.plot(states, iteration.estimated, color=BLUE, linewidth=1.6)
    ax.plot(states, iteration.exact, color=BLACK, linestyle=":", linewidth=1.6)
    ax.set_ylim(*limits)
    ax.set_xticks([1, *range(5, len(states) + 1, 5)])
    ax.set_xlabel("state")
    low, high = iteration.estimated.min(), iteration.estimated.max()
    for value, outside, height in ((high, high > limits[1], 0.9), (low, low < limits[0], 0.03)):
        if outside:  # say how far a line goes beyond the axes
            ax.text(
                *(0.5, height, f"to {value:.0f}".replace("-", "−")),
                transform=ax.transAxes,
                ha="center",
                fontsize=8,
                color=BLUE,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )
