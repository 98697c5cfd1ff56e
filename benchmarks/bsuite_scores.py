"""Scores of our defaults in bsuite, by its own rules: the table of docs/exploration.md.

    python -m benchmarks.bsuite_scores FILE [PROCESSES]

It needs bsuite (`pip install '.[bsuite]'`). The ids of an experiment were chosen before any of them
was run, by how many fit into an hour of one core. There is one setting: what `rblspi train` uses
for observations of this kind, with its defaults. Boards are numbers where `BsuiteEnvironment` has a
table of them. Episodes are as many as bsuite asks for. Every finished run is a line of FILE, and is
not made again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from benchmarks.bsuite_rules import RULES, BsuiteEnvironment, History, score, settings
from rblspi.online.factory import default_for

#: numbers of the settings of every experiment: all where a run takes seconds, and as many as there
#: is time for elsewhere, spread evenly
IDS = {
    "bandit": range(20),
    "catch": range(20),
    "deep_sea": range(21),
    "umbrella_length": range(0, 23, 4),
    "cartpole": range(0, 20, 4),
    "discounting_chain": range(0, 20, 4),
    "mountain_car": range(0, 20, 4),
    "deep_sea_stochastic": range(0, 21, 5),
}
TABLES = ("bandit", "catch", "deep_sea", "deep_sea_stochastic")


def run(experiment: str, number: int) -> dict[str, Any]:
    """One id, for as many episodes as it asks for."""
    env = BsuiteEnvironment(f"{experiment}/{number}", table=experiment in TABLES)
    algorithm = default_for(env.observation_space)
    start = time.process_time()
    algorithm.load()(env, seed=number).learn(episodes=env.episodes)
    # Only the deep sea is scored by more than the last note.
    notes = env.history.notes if experiment.startswith("deep_sea") else [env.history.notes[-1]]
    return {
        "experiment": experiment,
        "number": number,
        "agent": algorithm.label,
        "returns": env.history.returns,
        "notes": [{name: float(value) for name, value in note.items()} for note in notes],
        "seconds": time.process_time() - start,
    }


def in_turn() -> list[tuple[str, int]]:
    """The first id of every experiment, then the second of every one, and so on."""
    ranks = [(rank, e, n) for e, numbers in IDS.items() for rank, n in enumerate(numbers)]
    return [(e, n) for _, e, n in sorted(ranks)]


def history(line: dict[str, Any]) -> History:
    """What happened in a run, from its line."""
    missing = len(line["returns"]) - len(line["notes"])
    return History(line["returns"], [{}] * missing + line["notes"])


def table(path: Path) -> None:
    """The score of every experiment, over the ids that were run."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print("| experiment | agent | score | ids | seconds |")
    print("|---|---|---|---|---|")
    for experiment in RULES:
        found = [line for line in lines if line["experiment"] == experiment]
        if not found:
            continue
        given = settings(experiment)
        names = {f"{experiment}/{line['number']}": line for line in found}
        runs = {name: (given[name], history(line)) for name, line in names.items()}
        agent, seconds = found[0]["agent"], sum(line["seconds"] for line in found)
        print(
            f"| {experiment} | {agent} | {score(experiment, runs):.3f} | {len(found)} of "
            f"{len(given)} | {seconds:.0f} |"
        )


def main() -> None:
    """Make the runs that are missing, and print the table."""
    path, processes = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    lines = path.read_text().splitlines() if path.exists() else []
    done = {(line["experiment"], line["number"]) for line in map(json.loads, lines)}
    missing = [key for key in in_turn() if key not in done]
    with ProcessPoolExecutor(processes) as pool, path.open("a") as file:
        for future in [pool.submit(run, *key) for key in missing]:
            print(json.dumps(future.result()), file=file, flush=True)
    table(path)


if __name__ == "__main__":
    main()
