"""RBLSPI against online LSPI on the sparse mountain car: a table and pictures, in two minutes.

The car gets a reward for reaching the goal and nothing else. Acting at random never gets there,
so whoever wants to learn has to explore on purpose. Run by ``make demo``; writes into demo/.
"""
# ruff: noqa: E402

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):  # one thread in every process, before NumPy comes
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rblspi import RBLSPI, Agent, OnlineLSPI, RBFGrid
from rblspi.report import ink, maps

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

_finished: Any = None  # episodes of every run, shared by the processes


def share(counters: Any) -> None:
    global _finished
    _finished = counters


def run(place: int, algorithm: str, seed: int) -> tuple[np.ndarray, float]:
    """Train one agent; returns its episodes and the microseconds of a step."""
    agent = ALGORITHMS[algorithm](seed)
    start = time.perf_counter()

    def count(agent: Agent) -> None:
        _finished[place] = len(agent.episodes)

    agent.learn(episodes=EPISODES, callback=count)
    seconds = time.perf_counter() - start
    if algorithm == "RBLSPI" and seed == 0:
        agent.save(FOLDER / "agent.npz")
    return agent.episodes.copy(), 1e6 * seconds / agent.num_timesteps


def train_all(console: Console) -> dict[str, list[tuple[np.ndarray, float]]]:
    """All runs on all processors, with a bar for each algorithm."""
    runs = [(name, seed) for name in ALGORITHMS for seed in SEEDS]
    # Two algorithms at first, one in each process: neither is compiled twice.
    runs.sort(key=lambda which: (which[1] > 0, which[0] == "RBLSPI", which[1]))
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", len(runs), lock=False)
    with ProcessPoolExecutor(os.cpu_count(), context, share, (counters,)) as pool:
        futures = [pool.submit(run, place, *which) for place, which in enumerate(runs)]
        columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn())
        with Progress(
            *columns, TextColumn("episodes"), TimeElapsedColumn(), console=console
        ) as bar:
            tasks = {name: bar.add_task(name, total=EPISODES * len(SEEDS)) for name in ALGORITHMS}
            pending = set(futures)
            while pending:
                _, pending = wait(pending, timeout=0.2)
                for name, task in tasks.items():
                    own = [counters[i] for i, (other, _) in enumerate(runs) if other == name]
                    bar.update(task, completed=sum(own))
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
    for (name, runs), colour in zip(results.items(), (ink.BLUE, ink.BLACK), strict=True):
        lengths = np.array([episodes[:, 0] for episodes, _ in runs])
        means = lengths.reshape(len(runs), -1, block).mean(axis=2)
        at = block * (np.arange(means.shape[1]) + 0.5)
        axes.plot(at, means.T, color=colour, lw=0.6, alpha=0.35)
        axes.plot(at, means.mean(axis=0), color=colour, lw=2.0, label=name)
    axes.axhline(97.7, color=ink.GREY, lw=1, ls="--")
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
    console.print("[dim]The first run compiles for half a minute; later ones do not.[/dim]")
    results = train_all(console)
    console.print(compare(results))
    agent = Agent.load(FOLDER / "agent.npz")
    with ink.style():
        pictures = [
            ink.save(draw_curves(results), FOLDER / "learning_curves")[0],
            ink.save(maps.draw(maps.compute(agent)), FOLDER / "maps")[0],
        ]
    seconds = time.perf_counter() - start
    console.print(f"{', '.join(map(str, pictures))} ({seconds:.0f} s in all)")


if __name__ == "__main__":
    main()
