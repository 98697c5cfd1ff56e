"""How everything drawn looks: colours that everyone can tell apart, and files that repeat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

# Okabe and Ito's colours, which readers of every kind of colour vision can tell apart.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#111111", "#7F7F7F"


class Stroke(NamedTuple):
    """How one curve is drawn."""

    colour: str
    marker: str
    dashes: Literal["-", "--", ":"]


LEARNERS = (
    Stroke(BLUE, "o", "-"),
    Stroke(ORANGE, "s", "-"),
    Stroke(GREEN, "^", "-"),
    Stroke(VERMILLION, "D", "-"),
    Stroke(PURPLE, "v", "-"),
    Stroke(SKY, "P", "-"),
)
BASELINES = (Stroke(BLACK, "x", "--"), Stroke(GREY, "+", ":"))

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "rblspi",
    "svg.fonttype": "path",
}


@contextmanager
def style() -> Iterator[None]:
    """Our look, for what is drawn inside; the user's own settings are left alone."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def save(canvas: Canvas, stem: Path) -> tuple[Path, Path]:
    """Write PNG and SVG; equal drawings give equal files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".svg")
    canvas.savefig(png, dpi=160, metadata={"Software": None})
    canvas.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg
