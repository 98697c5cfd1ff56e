"""Save an agent, load it and go on learning: the result is the same to the last bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from rblspi import RBLSPI, RBFGrid


def new_agent() -> RBLSPI:
    return RBLSPI("rblspi/MountainCar-v0", RBFGrid(8), seed=0)


def main() -> None:
    whole = new_agent().learn(20_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "car.npz"
        new_agent().learn(10_000).save(path)
        resumed = RBLSPI.load(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {resumed.num_timesteps:,} steps")
    resumed.learn(10_000, reset_num_timesteps=False)
    same = np.array_equal(whole.posterior.mean, resumed.posterior.mean)
    print(f"{resumed.num_timesteps:,} steps; equal to an uninterrupted run: {same}")


if __name__ == "__main__":
    main()
