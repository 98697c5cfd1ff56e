"""The style of all figures, and how they are written to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing

from rblspi.core.files import replacing

# The palette of Okabe and Ito, which can be told apart with every kind of colour vision.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#111111", "#7F7F7F"


class Stroke(NamedTuple):
    """The look of a curve, in the words of Matplotlib."""

    color: str
    marker: str
    linestyle: Literal["-", "--", ":"]


LEARNERS = tuple(
    Stroke(color, marker, "-")
    for color, marker in zip((BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY), "os^DvP", strict=True)
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
    """Draw in our style inside this context; the user's own settings stay as they are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def save(figure: Drawing, stem: Path) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG; equal figures give equal files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".svg")
    with replacing(png) as pixels, replacing(svg) as lines:  # both of them or none
        figure.savefig(pixels, format="png", dpi=160, metadata={"Software": None})
        figure.savefig(lines, format="svg", metadata={"Date": None, "Creator": None})
    return png, svg
