"""Scores of our defaults in bsuite, by its own rules: the table of docs/exploration.md.

    python -m benchmarks.bsuite_scores FILE [PROCESSES]

It needs bsuite (`pip install '.[bsuite]'`). The ids were chosen before any of them was run: those
that fit into three hours of two cores. There is one setting, the defaults: `OPSRL` where
observations are numbers of boards, and `RBLSPI` elsewhere. Episodes are as many as bsuite asks for.
Every finished run is a line of FILE, and is not made again.
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

from rblspi import OPSRL, RBLSPI, Agent
from rblspi.environments.bsuite_ import RULES, BsuiteEnvironment, History, score, settings

#: numbers of the settings of every experiment; in the deep sea 0 to 10 are the sizes 10 to 30
IDS = {
    "bandit": range(20),
    "catch": range(20),
    "deep_sea": range(11),
    "deep_sea_stochastic": range(6),
    "discounting_chain": range(5),
    "mountain_car": range(4),
    "umbrella_length": range(0, 15, 2),
    "cartpole": range(2),
}
TABLES = ("bandit", "catch", "deep_sea", "deep_sea_stochastic")


def run(experiment: str, number: int) -> dict[str, Any]:
    """One id, for as many episodes as it asks for."""
    env = BsuiteEnvironment(f"{experiment}/{number}", table=experiment in TABLES)
    kind: type[Agent] = OPSRL if env.table else RBLSPI
    start = time.process_time()
    kind(env, seed=number).learn(episodes=env.episodes)
    # Only the deep sea is scored by more than the last note.
    notes = env.history.notes if experiment.startswith("deep_sea") else [env.history.notes[-1]]
    return {
        "experiment": experiment,
        "number": number,
        "returns": env.history.returns,
        "notes": [{name: float(value) for name, value in note.items()} for note in notes],
        "seconds": time.process_time() - start,
    }


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
        agent = "OPSRL" if experiment in TABLES else "RBLSPI"
        seconds = sum(line["seconds"] for line in found)
        print(
            f"| {experiment} | {agent} | {score(experiment, runs):.3f} | {len(found)} of "
            f"{len(given)} | {seconds:.0f} |"
        )


def main() -> None:
    """Make the runs that are missing, and print the table."""
    path, processes = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    lines = path.read_text().splitlines() if path.exists() else []
    done = {(line["experiment"], line["number"]) for line in map(json.loads, lines)}
    missing = [(e, n) for e, numbers in IDS.items() for n in numbers if (e, n) not in done]
    with ProcessPoolExecutor(processes) as pool, path.open("a") as file:
        for future in [pool.submit(run, *key) for key in missing]:
            print(json.dumps(future.result()), file=file, flush=True)
    table(path)


if __name__ == "__main__":
    main()
