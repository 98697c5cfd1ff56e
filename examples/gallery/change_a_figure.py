"""
A figure of the paper with one setting changed
==============================================

Figures of the paper are data: panels of curves, and a curve is an algorithm with its settings.
Take one, change a setting, and run it. Here the discount of the paper's experiment on the sparse
mountain car is lowered. A few short runs are enough to see what happens; ``rblspi reproduce`` makes
a hundred.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rblspi.experiments.definitions import Figure, Group, Panel
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.plotting import curves, style
from rblspi_paper.figures import FIGURES

original = FIGURES["sparse-mountain-car"].groups[1].panels[0].curves[3]
print(original.algorithm, original.environment, dict(original.settings))

# %%
# Two variants of that curve, with 60 instead of 1,500 episodes.

variants = tuple(
    replace(
        original,
        episodes=60,
        settings={**original.settings, "discount": discount},
        label=f"discount {discount}",
    )
    for discount in (0.99, 0.95)
)
figure_data = Figure(
    "sparse-mountain-car-discount",
    "Sparse mountain car",
    (Group("", (Panel("K = 20, β = 1000, α = 1", variants),)),),
    block=10,
)

# %%
# Runs are kept in a store, and only missing ones are made.

with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "results.sqlite") as store:
    run_all(missing(store, variants, 4), store, lambda: ThreadPoolExecutor(1), 1)
    result = read(store, figure_data)

with style.style():
    figure = curves.draw(result)
