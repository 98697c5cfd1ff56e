"""Compare two algorithms over some seeds, with intervals that say what a difference is worth."""

from __future__ import annotations

import numpy as np

from rblspi import RBLSPI, OnlineLSPI, RBFGrid
from rblspi.agents.evaluation import evaluate

CAR = "rblspi/MountainCar-v0"


def main() -> None:
    algorithms = {
        "RBLSPI": lambda seed: RBLSPI(CAR, RBFGrid(8), seed=seed),
        "online LSPI": lambda seed: OnlineLSPI(CAR, RBFGrid(8), seed=seed),
    }
    for name, make in algorithms.items():
        lengths = [
            evaluate(make(seed).learn(15_000), episodes=20, seed=seed).lengths.mean()
            for seed in range(4)
        ]
        half = 1.96 * np.std(lengths, ddof=1) / np.sqrt(len(lengths))
        print(f"{name:12} {np.mean(lengths):6.1f} ± {half:.1f} steps to the goal")


if __name__ == "__main__":
    main()
