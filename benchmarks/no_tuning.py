"""The goals of one setting for all domains, from the block means of `rblspi reproduce`.

    rblspi reproduce --config examples/experiments/no_tuning.toml --runs 20 \
        --out results/no_tuning --export results/no_tuning/blocks.jsonl
    python -m benchmarks.no_tuning results/no_tuning/blocks.jsonl

Prints the table as Markdown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rblspi.core.intervals import mean_interval
from rblspi.experiments.tables import read_runs
from rblspi.experiments.tasks import FinishedRun

EPISODES = 100


class Goal(NamedTuple):
    """What is wanted of a domain, on average over `EPISODES` that end with ``episode``."""

    name: str
    environment: str
    column: str
    episode: int
    line: float
    every_run: bool
    lower_is_better: bool


GOALS = (
    Goal("mountain car", "rblspi/MountainCar-v0", "length", 300, 103, False, True),
    Goal("sparse mountain car", "rblspi/SparseMountainCar-v0", "length", 300, 105, False, True),
    Goal("inverted pendulum", "rblspi/InvertedPendulum-v0", "length", 200, 2950, True, False),
    Goal("cart pole", "rblspi/CartPole-v0", "length", 300, 495, True, False),
    Goal("puddle world", "rblspi/PuddleWorld-v0", "return", 400, -22, False, False),
)


def judge(goal: Goal, runs: list[FinishedRun]) -> str:
    """A line of the table."""
    first = goal.episode - EPISODES
    values = np.array(
        [
            run.arrays[goal.column][first // block : goal.episode // block].mean()
            for run in runs
            if run.curve.environment == goal.environment
            for block in [run.record.block]
        ]
    )
    worst = values.max() if goal.lower_is_better else values.min()
    judged = worst if goal.every_run else values.mean()
    met = judged <= goal.line if goal.lower_is_better else judged >= goal.line
    sign = "at most" if goal.lower_is_better else "at least"
    wanted = f"{sign} {goal.line:g}{', every run' if goal.every_run else ''}"
    return (
        f"| {goal.name} | {goal.column} | {first + 1}-{goal.episode} | {wanted} | "
        f"{mean_interval(values)} | {np.median(values):.1f} | {worst:.1f} | {len(values)} | "
        f"{'yes' if met else 'no'} |"
    )


def main() -> None:
    """Judge every domain."""
    runs = read_runs(Path(sys.argv[1]))
    print("| domain | | episodes | goal | mean (95%) | median | worst run | runs | met |")
    print("|---|---|---|---|---|---|---|---|---|")
    for goal in GOALS:
        print(judge(goal, runs))


if __name__ == "__main__":
    main()
