"""Regret curves of agents, and a ranking that says how many seeds it needs.

They are drawn and ranked by `benchmarks.exploration`, from its runs. The regret of an episode is
the best expected return minus its return; curves are of its sum over the episodes so far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rblspi import Agent
from rblspi.core.intervals import difference_interval, half_width
from rblspi.core.types import Matrix
from rblspi.plotting.style import BASELINES, LEARNERS, save, style

#: points of a curve
POINTS = 50
#: panels side by side
COLUMNS = 4
#: quantiles of the normal distribution: two sides of 5%, and a power of 80%
SIGNIFICANCE, POWER = 1.96, 0.84
#: regrets by agent, a row for every seed and a column for every point
Regrets = Mapping[str, Matrix]


def curve(agent: Agent) -> list[float]:
    """The sum of regrets after so many episodes, at evenly spaced points of a run."""
    best = agent.env.unwrapped.optimal_return()  # type: ignore[attr-defined]
    sums = np.cumsum(best - agent.episodes[:, 1])
    places = np.linspace(len(sums) / POINTS, len(sums), POINTS).round().astype(int) - 1
    return [float(value) for value in sums[places]]


def seeds_needed(a: Matrix, b: Matrix) -> int:
    """Seeds of each agent with which a difference of this size is found four times in five.

    n = (z + z')^2 (s_a^2 + s_b^2) / (mean(a) - mean(b))^2 + z^2 / 4, the last term because the
    variances are estimated too (Guenther, 1981).
    """
    difference, variance = float(a.mean() - b.mean()), float(a.var(ddof=1) + b.var(ddof=1))
    if difference == 0.0:
        raise ValueError("the means are the same: no number of seeds tells them apart")
    n = (SIGNIFICANCE + POWER) ** 2 * variance / difference**2 + SIGNIFICANCE**2 / 4.0
    return max(2, math.ceil(n))


def ranking(problem: str, regrets: Regrets) -> None:
    """Print a line for every agent and the next one, by the regret of whole runs."""
    finals = {agent: rows[:, -1] for agent, rows in regrets.items() if len(rows) > 1}
    order = sorted(finals, key=lambda agent: float(finals[agent].mean()))
    for place, (agent, following) in enumerate(pairwise(order), start=1):
        a, b = finals[agent], finals[following]
        gap = difference_interval(b, a)
        told = "told apart" if gap.low > 0.0 else "not told apart"
        needs = f"{seeds_needed(a, b):,} seeds" if gap.mean > 0.0 else "no number of seeds"
        print(
            f"| {problem} | {place} | {agent} | {a.mean():.4g} | {following} | {gap} | {told} by "
            f"{min(len(a), len(b))} | {needs} |"
        )


def draw(tables: Mapping[str, Regrets], durations: Mapping[str, int], path: Path) -> None:
    """One panel a problem: means over seeds, and their 95% intervals."""
    names = sorted({agent for regrets in tables.values() for agent in regrets})
    strokes = dict(zip(names, (*LEARNERS, *BASELINES), strict=False))
    with style():
        columns = min(COLUMNS, len(tables))
        rows = math.ceil(len(tables) / columns)
        figure = Figure(figsize=(2.6 * columns, 2.6 * rows + 0.4), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(tables) :]:
            axis.axis("off")
        for axis, (problem, regrets) in zip(axes, tables.items(), strict=False):
            episodes = np.linspace(1, POINTS, POINTS) * durations[problem] / POINTS
            for agent, runs in regrets.items():
                mean, half = runs.mean(axis=0), half_width(runs)
                color, _, line = strokes[agent]
                axis.fill_between(episodes, mean - half, mean + half, color=color, alpha=0.2)
                axis.plot(episodes, mean, line, color=color, label=agent)
            axis.set(title=problem, xlabel="episodes")
        for axis in axes[::columns]:
            axis.set_ylabel("regret so far")
        figure.legend(*_labels(axes), loc="outside lower center", ncols=len(names))
        save(figure, path)


def _labels(axes: np.ndarray) -> tuple[list[object], list[str]]:
    """The curves of all panels, every agent once."""
    found = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)
