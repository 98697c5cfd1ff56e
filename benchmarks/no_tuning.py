"""The goals of one setting for all domains, from the block means of `rblspi reproduce`.

    rblspi reproduce --config examples/experiments/no_tuning.toml --runs 20 \
        --out results/no_tuning --export results/no_tuning/blocks.csv
    python -m benchmarks.no_tuning results/no_tuning/blocks.csv

Prints the table as Markdown.
"""

from __future__ import annotations

import csv
import sys
from typing import NamedTuple

import numpy as np

from rblspi.core.intervals import mean_interval

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


def judge(goal: Goal, rows: list[dict[str, str]]) -> str:
    """A line of the table."""
    by_run: dict[str, list[float]] = {}
    for row in rows:
        inside = goal.episode - EPISODES < int(row["episode"]) <= goal.episode
        if inside and row["environment"] == goal.environment:
            by_run.setdefault(row["seed"], []).append(float(row[goal.column]))
    values = np.array([np.mean(blocks) for blocks in by_run.values()])
    worst = values.max() if goal.lower_is_better else values.min()
    judged = worst if goal.every_run else values.mean()
    met = judged <= goal.line if goal.lower_is_better else judged >= goal.line
    sign = "at most" if goal.lower_is_better else "at least"
    wanted = f"{sign} {goal.line:g}{', every run' if goal.every_run else ''}"
    first = goal.episode - EPISODES + 1
    return (
        f"| {goal.name} | {goal.column} | {first}-{goal.episode} | {wanted} | "
        f"{mean_interval(values)} | {np.median(values):.1f} | {worst:.1f} | {len(values)} | "
        f"{'yes' if met else 'no'} |"
    )


def main() -> None:
    """Judge every domain."""
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    print("| domain | | episodes | goal | mean (95%) | median | worst run | runs | met |")
    print("|---|---|---|---|---|---|---|---|---|")
    for goal in GOALS:
        print(judge(goal, rows))


if __name__ == "__main__":
    main()
