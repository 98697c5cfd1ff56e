"""Compare two algorithms over several seeds, with confidence intervals of their means."""

from __future__ import annotations

from rblspi import RBLSPI, OnlineLSPI, RBFGrid, evaluate
from rblspi.core.intervals import mean_interval

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
        print(f"{name:12} {mean_interval(lengths)} steps to the goal")


if __name__ == "__main__":
    main()
