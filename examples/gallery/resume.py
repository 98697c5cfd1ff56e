"""
Stop, save, and go on
=====================

An agent that was saved and loaded goes on as if nothing had happened: its weights are the same to
the last bit as those of an agent that was never stopped.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, RBFGrid
from rblspi.plotting import style


def new_agent():
    """An agent that has learnt nothing yet."""
    return RBLSPI("rblspi/MountainCar-v0", RBFGrid(8), seed=0)


whole = new_agent().learn(10_000)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "car.npz"
    new_agent().learn(5_000).save(path)
    print(f"{path.stat().st_size / 1e3:.0f} kB")
    resumed = RBLSPI.load(path)
before = len(resumed.episodes)
resumed.learn(5_000, reset_num_timesteps=False)
print("equal to the last bit:", np.array_equal(whole.posterior.mean, resumed.posterior.mean))

# %%

with style.style():
    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    axes.plot(whole.episodes[:, 0], color=style.SKY, lw=5, label="never stopped")
    axes.plot(resumed.episodes[:, 0], color=style.BLUE, lw=1.2, label="stopped and resumed")
    axes.axvline(before - 0.5, color=style.GREY, ls="--", lw=1, label="saved and loaded")
    axes.set(xlabel="episode", ylabel="steps to the goal")
    axes.legend()
