"""RBLSPI and online LSPI on the sparse mountain car: a table and pictures, in two minutes.

The only reward is for reaching the goal, and random actions never get there, so an agent has to
explore systematically to learn anything. ``make demo`` runs this file; it writes into demo/.
"""
# ruff: noqa: E402

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):  # one thread per process; set before NumPy is imported
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from rblspi import RBLSPI, Agent, OnlineLSPI, RBFGrid
from rblspi.core.progress import progress
from rblspi.plotting import maps, style

CAR = "rblspi/SparseMountainCar-v0"
EPISODES = 300
SEEDS = range(6)
FOLDER = Path("demo")

ALGORITHMS = {
    "RBLSPI": lambda seed: RBLSPI(
        CAR, RBFGrid(8), prior_precision=10, noise_precision=10_000, update_every=20, seed=seed
    ),
    "online LSPI": lambda seed: OnlineLSPI(CAR, RBFGrid(8), update_every=20, seed=seed),
}

_finished: Any = None  # episodes of every run so far, in memory shared by the processes


def share(counters: Any) -> None:
    global _finished
    _finished = counters


def run(index: int, algorithm: str, seed: int) -> tuple[np.ndarray, float]:
    """Train one agent; returns its episodes and the microseconds that a step took."""
    agent = ALGORITHMS[algorithm](seed)
    start = time.perf_counter()

    def count(agent: Agent) -> None:
        _finished[index] = len(agent.episodes)

    agent.learn(episodes=EPISODES, callback=count)
    seconds = time.perf_counter() - start
    if algorithm == "RBLSPI" and seed == 0:
        agent.save(FOLDER / "agent.npz")
    return agent.episodes.copy(), 1e6 * seconds / agent.num_timesteps


def train_all() -> dict[str, list[tuple[np.ndarray, float]]]:
    """Make all runs on all processors; the results are grouped by algorithm."""
    # The first run of each algorithm comes first, in a process of its own, and compiles.
    runs = [(name, seed) for seed in SEEDS for name in ALGORITHMS]
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(runs), lock=False)
    with (
        ProcessPoolExecutor(os.cpu_count(), context, share, (counters,)) as pool,
        progress(EPISODES * len(runs)) as tell,
    ):
        futures = [pool.submit(run, index, *which) for index, which in enumerate(runs)]
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=0.2)
            tell(sum(counters), f"{sum(counters):,} episodes")
        results = [future.result() for future in futures]
    return {
        name: [result for result, (other, _) in zip(results, runs, strict=True) if other == name]
        for name in ALGORITHMS
    }


def compare(results: dict[str, list[tuple[np.ndarray, float]]]) -> Table:
    table = Table(title=f"Sparse mountain car, {len(SEEDS)} runs of {EPISODES} episodes")
    table.add_column("")
    headings = ("first 100 episodes", "last 100 episodes", "reached the goal", "µs a step")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, runs in results.items():
        lengths = np.array([episodes[:, 0] for episodes, _ in runs])
        reached = np.mean([episodes[:, 1].mean() for episodes, _ in runs])
        table.add_row(
            name,
            *(f"{part.mean():.0f} steps" for part in (lengths[:, :100], lengths[:, -100:])),
            f"{reached:.0%}",
            f"{np.median([speed for _, speed in runs]):.0f}",
        )
    return table


def draw_curves(results: dict[str, list[tuple[np.ndarray, float]]], block: int = 10) -> Figure:
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, runs), colour in zip(results.items(), (style.BLUE, style.BLACK), strict=True):
        lengths = np.array([episodes[:, 0] for episodes, _ in runs])
        means = lengths.reshape(len(runs), -1, block).mean(axis=2)
        at = block * (np.arange(means.shape[1]) + 0.5)
        axes.plot(at, means.T, color=colour, lw=0.6, alpha=0.35)
        axes.plot(at, means.mean(axis=0), color=colour, lw=2.0, label=name)
    axes.axhline(97.7, color=style.GREY, lw=1, ls="--")
    axes.text(EPISODES - 3, 90, "the best possible: 97.7", ha="right", va="top", fontsize=8)
    axes.set(xlabel="episode", ylabel="steps to the goal (500: not reached)")
    axes.set(xlim=(0, EPISODES), ylim=(0, 520))
    axes.set_title("Sparse mountain car", fontweight="bold")
    axes.legend(loc="center right")
    return figure


def main() -> None:
    console = Console()
    start = time.perf_counter()
    FOLDER.mkdir(exist_ok=True)
    console.print("[dim]The first time, compiling takes half a minute.[/dim]")
    results = train_all()
    console.print(compare(results))
    agent = Agent.load(FOLDER / "agent.npz")
    with style.style():
        pictures = [
            style.save(draw_curves(results), FOLDER / "learning_curves")[0],
            style.save(maps.draw(maps.compute(agent)), FOLDER / "maps")[0],
        ]
    seconds = time.perf_counter() - start
    console.print(f"{', '.join(map(str, pictures))} ({seconds:.0f} s in all)")


if __name__ == "__main__":
    main()
