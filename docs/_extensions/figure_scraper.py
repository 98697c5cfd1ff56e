"""Pictures of the gallery: the figures that a block of an example has made."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that has a name in the example or is open in pyplot, once."""
    named = block_vars["example_globals"].values()
    figures = [value for value in named if isinstance(value, Figure)]
    figures += [plt.figure(number) for number in plt.get_fignums()]
    paths = []
    for figure in dict.fromkeys(figures):
        if not hasattr(figure, "in_gallery"):
            figure.in_gallery = True
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=130)
    plt.close("all")
    return figure_rst(paths, gallery_conf["src_dir"])
