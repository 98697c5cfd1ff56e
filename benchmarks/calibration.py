"""How often the intervals that agents state contain the true action values.

    python -m benchmarks.calibration FOLDER [SEEDS] [FIRST_SEED]

trains the default agent for 50,000 steps in every environment, for some seeds, and compares its
intervals with simulated true values. Agents and true values are kept in the folder, one file each,
and what was found in results.json: run again, it makes what is missing only. Without results.json,
the intervals of the same agents are compared again, which takes a few seconds each. At the end it
prints a table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np

import rblspi
from benchmarks.inventory import Inventory
from rblspi.core.files import replacing
from rblspi.core.intervals import mean_interval
from rblspi.core.progress import progress
from rblspi.environments.lookup import make
from rblspi.online.agent import Agent
from rblspi.rollout.calibration import Calibration, TrueValues, calibration_of, true_values

#: by the environment and the seed
Results: TypeAlias = dict[str, dict[str, float]]
STEPS = 50_000
#: the first seed; smaller ones were used to choose
FIRST = 2000
ENVIRONMENTS = (
    "CartPole-v1",
    "MountainCar-v0",
    "Acrobot-v1",
    "FrozenLake-v1",
    "rblspi/ChainWalk-v0",
    "rblspi/InvertedPendulum-v0",
    "rblspi/CartPole-v0",
    "rblspi/MountainCar-v0",
    "rblspi/SparseMountainCar-v0",
    "rblspi/PuddleWorld-v0",
    "inventory",
)


def learnt(folder: Path, name: str, seed: int) -> tuple[Agent, TrueValues]:
    """The agent of a run and the true values of its policy, from the folder or made now."""
    env = Inventory() if name == "inventory" else make(name)
    stem = f"{name.replace('/', '-')}-{seed}"
    path, truths = folder / f"{stem}.agent.npz", folder / f"{stem}.truth.npz"
    if not path.exists():
        rblspi.agent(env, seed=seed).learn(STEPS).save(path)
    agent = Agent.load(path, env)
    if not truths.exists():
        with replacing(truths) as temporary, temporary.open("wb") as file:
            np.savez(file, **true_values(agent, seed=seed)._asdict())
    with np.load(truths, allow_pickle=False) as arrays:
        return agent, TrueValues(**arrays)


def run(folder: Path, name: str, seed: int) -> dict[str, float]:
    """Coverage and sharpness of one agent."""
    agent, true = learnt(folder, name, seed)
    start = time.process_time()
    found = calibration_of(agent.policy(), true)
    return numbers_of(found) | {"seconds": time.process_time() - start}


def numbers_of(found: Calibration) -> dict[str, float]:
    """What is kept of a comparison."""
    return {"coverage": float(found.coverage(0.95)[0]), "sharpness": found.sharpness}


def table(results: Results, names: Iterable[str]) -> str:
    """One row for every environment."""
    lines = ["| environment | seeds | coverage of 95% | width, as a multiple of the width needed |"]
    lines += ["|---|---|---|---|"]
    for name in names:
        runs = [value for key, value in results.items() if key.rsplit(" ", 1)[0] == name]
        if not runs:
            continue
        covered = mean_interval([r["coverage"] for r in runs])
        sharp = mean_interval([r["sharpness"] for r in runs])
        texts = [f"{covered.mean:.1%} ({covered.low:.1%} to {min(covered.high, 1.0):.1%})"]
        texts += [f"{sharp.mean:.2f} ({max(sharp.low, 0.0):.2f} to {sharp.high:.2f})"]
        lines.append(f"| {name} | {len(runs)} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main(
    folder: Path, seeds: int, first: int, names: Sequence[str], run: Callable[..., dict[str, float]]
) -> Results:
    """Make the missing runs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    results: Results = json.loads(path.read_text()) if path.exists() else {}
    jobs = [(name, first + i) for i in range(seeds) for name in names]
    with progress(len(jobs)) as tell:
        for done, (name, seed) in enumerate(jobs):
            if f"{name} {seed}" not in results:
                results[f"{name} {seed}"] = run(folder, name, seed)
                with replacing(path) as temporary:
                    Path(temporary).write_text(json.dumps(results, indent=1))
            tell(done + 1, f"{name} {seed}")
    return results


def arguments() -> tuple[Path, int, int]:
    """The folder, the number of seeds and the first of them."""
    numbers = [int(argument) for argument in sys.argv[2:]]
    seeds, first = numbers + [20, FIRST][len(numbers) :]
    return Path(sys.argv[1]), seeds, first


if __name__ == "__main__":
    print(table(main(*arguments(), ENVIRONMENTS, run), ENVIRONMENTS))
