"""How often the intervals that agents state contain the true action values.

    python -m benchmarks.calibration FILE.json [SEEDS]

trains the default agent for 50,000 steps in every environment, for some seeds, and compares its
intervals with simulated true values. Every run is written to the file when it is done; run again,
it makes the missing runs only. At the end it prints a table.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from benchmarks.inventory import Inventory
from rblspi import RBLSPI
from rblspi.core.files import replacing
from rblspi.core.intervals import mean_interval
from rblspi.core.progress import progress
from rblspi.rollout.calibration import calibrate

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


def run(name: str, seed: int) -> dict[str, float]:
    """Coverage and sharpness of one agent."""
    agent = RBLSPI(Inventory() if name == "inventory" else name, seed=seed)
    agent.learn(STEPS)
    found = calibrate(agent, seed=seed)
    (inside,) = found.coverage(0.95)
    return {"coverage": float(inside), "sharpness": found.sharpness}


def table(results: dict[str, dict[str, float]]) -> str:
    """One row for every environment."""
    lines = ["| environment | seeds | coverage of 95% | width, as a multiple of the width needed |"]
    lines += ["|---|---|---|---|"]
    for name in ENVIRONMENTS:
        runs = [value for key, value in results.items() if key.rsplit(" ", 1)[0] == name]
        if not runs:
            continue
        covered = mean_interval([r["coverage"] for r in runs])
        sharp = mean_interval([r["sharpness"] for r in runs])
        texts = [f"{covered.mean:.1%} ({covered.low:.1%} to {min(covered.high, 1.0):.1%})"]
        texts += [f"{sharp.mean:.2f} ({sharp.low:.2f} to {sharp.high:.2f})"]
        lines.append(f"| {name} | {len(runs)} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main(path: Path, seeds: int) -> None:
    """Make the missing runs."""
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    jobs = [(name, FIRST + i) for i in range(seeds) for name in ENVIRONMENTS]
    with progress(len(jobs)) as tell:
        for done, (name, seed) in enumerate(jobs):
            if f"{name} {seed}" not in results:
                results[f"{name} {seed}"] = run(name, seed)
                with replacing(path) as temporary:
                    Path(temporary).write_text(json.dumps(results, indent=1))
            tell(done + 1, f"{name} {seed}")
    print(table(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20)
