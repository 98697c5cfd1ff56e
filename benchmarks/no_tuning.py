"""The goals of one setting for all domains, from the block means of `rblspi reproduce`.

    rblspi reproduce --runs 20 --out results/no_tuning --export results/no_tuning/blocks.csv \
        --config examples/experiments/no_tuning_cars.toml \
        --config examples/experiments/no_tuning_pendulum.toml \
        --config examples/experiments/no_tuning_pole.toml \
        --config examples/experiments/no_tuning_puddles.toml
    python -m benchmarks.no_tuning results/no_tuning/blocks.csv

Prints the table as Markdown.
"""

from __future__ import annotations

import csv
import json
import sys
from typing import NamedTuple

import numpy as np


class Goal(NamedTuple):
    """What is wanted of a domain, in a block of 100 episodes that ends with ``episode``."""

    name: str
    environment: str
    cells: int
    column: str
    episode: int
    line: float
    every_run: bool
    lower_is_better: bool


CAR, SPARSE = "rblspi/MountainCar-v0", "rblspi/SparseMountainCar-v0"
PENDULUM, POLE, PUDDLES = (
    "rblspi/InvertedPendulum-v0",
    "rblspi/CartPole-v0",
    "rblspi/PuddleWorld-v0",
)

GOALS = (
    Goal("mountain car, 12 x 12", CAR, 12, "length", 300, 103, False, True),
    Goal("mountain car, 8 x 8", CAR, 8, "length", 300, 103, False, True),
    Goal("sparse mountain car, 12 x 12", SPARSE, 12, "length", 300, 105, False, True),
    Goal("sparse mountain car, 8 x 8", SPARSE, 8, "length", 300, 105, False, True),
    Goal("pendulum, 3 x 3", PENDULUM, 3, "length", 200, 2950, True, False),
    Goal("pendulum, 5 x 5", PENDULUM, 5, "length", 200, 2950, True, False),
    Goal("cart pole", POLE, 3, "length", 300, 495, True, False),
    Goal("puddle world, 12 x 12", PUDDLES, 12, "return", 400, -22, False, False),
    Goal("puddle world, 8 x 8", PUDDLES, 8, "return", 400, -22, False, False),
)


def judge(goal: Goal, rows: list[dict[str, str]]) -> str:
    values = np.array(
        [
            float(row[goal.column])
            for row in rows
            if row["environment"] == goal.environment
            and json.loads(row["basis"])["cells"] == goal.cells
            and int(row["episode"]) == goal.episode
        ]
    )
    worst = values.max() if goal.lower_is_better else values.min()
    judged = worst if goal.every_run else values.mean()
    met = judged <= goal.line if goal.lower_is_better else judged >= goal.line
    sign = "at most" if goal.lower_is_better else "at least"
    wanted = f"{sign} {goal.line:g}{', every run' if goal.every_run else ''}"
    return (
        f"| {goal.name} | {goal.episode - 99}-{goal.episode} | {wanted} | {values.mean():.1f} | "
        f"{np.median(values):.1f} | {worst:.1f} | {len(values)} | {'yes' if met else 'no'} |"
    )


def main() -> None:
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    print("| domain | episodes | goal | mean | median | worst run | runs | met |")
    print("|---|---|---|---|---|---|---|---|")
    for goal in GOALS:
        print(judge(goal, rows))


if __name__ == "__main__":
    main()
