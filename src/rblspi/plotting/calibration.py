"""Figures of a calibration: stated against true values, and coverage by level."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Drawing

from rblspi.plotting import style
from rblspi.rollout.calibration import Calibration


def draw(result: Calibration) -> Drawing:
    """Draw stated against true values, and the coverage of intervals by their probability."""
    figure = Drawing(figsize=(7.4, 3.5), layout="constrained")
    scatter, curve = figure.subplots(1, 2)
    low = min(result.truth.min(), result.mean.min())
    high = max(result.truth.max(), result.mean.max())
    scatter.plot([low, high], [low, high], color=style.GREY, lw=1, ls="--", zorder=1)
    scatter.errorbar(
        result.truth,
        result.mean,
        xerr=2.0 * result.error if result.error.any() else None,
        yerr=2.0 * result.std,
        fmt="o",
        color=style.BLUE,
        markersize=3,
        elinewidth=0.6,
        alpha=0.6,
    )
    truth, stated = (
        ("mean return of a held-out region", "mean stated value ± 2 std")
        if result.of_means
        else ("true action value", "stated action value ± 2 std")
    )
    scatter.set_xlabel(truth)
    scatter.set_ylabel(stated)
    scatter.set_title("Stated and true values", fontweight="bold")

    levels = np.linspace(0.0, 0.995, 200)
    curve.plot([0, 1], [0, 1], color=style.GREY, lw=1, ls="--", label="as stated")
    (inside,) = result.coverage(0.95)
    label = f"found: {inside:.0%} in the 95% interval"
    curve.plot(levels, result.coverage(levels), color=style.VERMILLION, lw=1.8, label=label)
    curve.plot([0.95], [inside], "o", color=style.VERMILLION, markersize=5)
    curve.set(xlim=(0, 1), ylim=(0, 1.02))
    curve.set_xlabel("probability of the interval")
    curve.set_ylabel("share of true values inside")
    curve.set_title("Coverage", fontweight="bold")
    curve.legend(loc="best")
    return figure
