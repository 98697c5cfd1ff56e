"""What agents with their defaults reach on Gymnasium's environments.

    python -m benchmarks.gymnasium_defaults FILE [SEEDS] [NAME ...]

Every finished run is a line of FILE and is not made again: stop and go on as you like. Seeds are
from 1000 on, and everything was chosen with seeds below 100; those of Fitted R-max are from 3000
on, in Acrobot from 5000 on, and those of optimistic LSVI and of deep Q-learning from 5000 on; all
were chosen with smaller ones. LunarLander needs Box2D. The table is printed as Markdown.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi import evaluate
from rblspi.core.intervals import mean_interval
from rblspi.registry import algorithm


class Row(NamedTuple):
    """An environment, how long an agent learns in it, and what is wanted of its greedy policy."""

    id: str
    algorithm: str
    steps: int
    wanted: float
    episodes: int = 20  # of the greedy policy
    discount: float = 0.99

    @property
    def first(self) -> int:
        """The first seed: none of those that chose anything of the algorithm."""
        if self.algorithm in ("optimistic-lsvi", "deep-q"):
            return 5000
        if self.algorithm != "fitted-rmax":
            return 1000
        return 5000 if self.id == "Acrobot-v1" else 3000

    @property
    def name(self) -> str:
        """Of the row, in the file."""
        return f"{self.id} {self.algorithm} {self.steps}"


ROWS = (
    Row("FrozenLake-v1", "opsrl", 20_000, 0.70, 200),
    Row("CliffWalking-v1", "opsrl", 20_000, -13.0),
    Row("Taxi-v4", "opsrl", 100_000, 7.5, 200),
    Row("Blackjack-v1", "opsrl", 200_000, -0.06, 2000),
    Row("CartPole-v1", "fitted-rmax", 20_000, 500.0),
    Row("MountainCar-v0", "fitted-rmax", 30_000, -102.0),
    Row("rblspi/CartPole-v0", "fitted-rmax", 30_000, 495.0),
    Row("rblspi/InvertedPendulum-v0", "fitted-rmax", 20_000, 0.0, discount=0.95),
    Row("rblspi/PuddleWorld-v0", "fitted-rmax", 15_000, -22.0, 200),
    Row("rblspi/SparseMountainCar-v0", "fitted-rmax", 30_000, 1.0),
    Row("Acrobot-v1", "fitted-rmax", 50_000, -85.0),
    Row("LunarLander-v3", "deep-q", 100_000, 220.0),
    Row("Acrobot-v1", "deep-q", 30_000, -80.0),
    Row("CartPole-v1", "deep-q", 20_000, 500.0),
    Row("LunarLander-v3", "optimistic-lsvi", 100_000, 150.0),
    Row("Acrobot-v1", "optimistic-lsvi", 50_000, -85.0),
    Row("CartPole-v1", "optimistic-lsvi", 20_000, 500.0),
)


def run(row: Row, seed: int) -> dict[str, Any]:
    """Learn, and evaluate the greedy policy."""
    agent = algorithm(row.algorithm).load()(row.id, seed=seed, discount=row.discount)
    start = time.process_time()
    agent.learn(row.steps)
    seconds = time.process_time() - start
    # An agent that never ends an episode of the cliff is stopped after a thousand steps.
    limit = gym.spec(row.id).max_episode_steps or 1000
    env = gym.make(row.id, max_episode_steps=limit)
    found = evaluate(agent.policy(), env, row.episodes, seed=10_000 + seed)
    greedy = float(found.returns.mean())
    return {"row": row.name, "seed": seed, "return": greedy, "us": 1e6 * seconds / row.steps}


def missing(file: Path, seeds: int, names: list[str]) -> Iterator[tuple[Row, int]]:
    """The runs that are not in the file."""
    done = {(line["row"], line["seed"]) for line in lines(file)}
    for i in range(seeds):
        for row in ROWS:
            seed = row.first + i
            wanted = not names or row.id in names or row.algorithm in names
            if wanted and (row.name, seed) not in done:
                yield row, seed


def lines(file: Path) -> list[dict[str, Any]]:
    """The finished runs."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def print_table(file: Path) -> None:
    """A row for each environment and algorithm."""
    print("| environment | agent | steps | wanted | mean (95%) | worst | reached in | µs a step |")
    print("|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        found = [line for line in lines(file) if line["row"] == row.name]
        if not found:
            continue
        returns = np.array([line["return"] for line in found])
        reached = int((returns >= row.wanted).sum())
        print(
            f"| `{row.id}` | `{row.algorithm}` | {row.steps:,} | {row.wanted:g} "
            f"| {mean_interval(returns)} | {returns.min():.4g} "
            f"| {reached} of {len(returns)} | {np.median([line['us'] for line in found]):.0f} |"
        )


def main() -> None:
    """Make the runs that are missing, and print the table."""
    file = Path(sys.argv[1])
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    for row, seed in missing(file, seeds, sys.argv[3:]):
        print(f"{row.name}, seed {seed}", file=sys.stderr, flush=True)
        result = run(row, seed)
        with file.open("a") as out:
            out.write(json.dumps(result) + "\n")
    print_table(file)


if __name__ == "__main__":
    main()
