"""Examples of the gallery: each has to run without a warning and to draw something.

The pictures are the figures and films that a block of an example has made.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.animation import Animation
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_filters: list[Any] = []
_drawn: set[str] = set()  # names of files


def require_quiet_and_drawn(gallery_conf: dict[str, Any], fname: Any, when: str) -> None:
    """Make warnings errors before an example, and refuse one without a picture after it."""
    if fname is None:
        return
    if when == "before":
        _filters[:] = warnings.filters
        warnings.simplefilter("error")
        return
    warnings.filters[:] = _filters  # type: ignore[index]
    if Path(fname).name not in _drawn:
        raise ValueError(f"{fname} draws nothing that has a name")


def scrape_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that has a name in the example or is open in pyplot, once; films as GIF."""
    named = list(block_vars["example_globals"].values())
    paths = []
    for film in (value for value in named if isinstance(value, Animation)):
        if not hasattr(film._fig, "in_gallery"):
            film._fig.in_gallery = True
            paths.append(str(Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")))
            film.save(paths[-1], writer="pillow", dpi=90)
    figures = [value for value in named if isinstance(value, Figure)]
    figures += [plt.figure(number) for number in plt.get_fignums()]
    for figure in dict.fromkeys(figures):
        if not hasattr(figure, "in_gallery"):
            figure.in_gallery = True
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=130)
    plt.close("all")
    if paths:
        _drawn.add(Path(block_vars["src_file"]).name)
    return figure_rst(paths, gallery_conf["src_dir"])
