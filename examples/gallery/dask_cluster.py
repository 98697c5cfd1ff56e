"""
Logs on a Dask cluster
======================

``DaskData`` stands for Parquet files that the workers of a cluster read. They send back their sums,
not rows, and the result is that of a single machine. Here the cluster is two threads of this
process; the address of a real one takes its place.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from rblspi import FQI, RBFGrid
from rblspi.data import DaskData, ParquetWriter, read_log
from rblspi.plotting import style
from rblspi.rollout import collect

PENDULUM = "rblspi/InvertedPendulum-v0"
folder = tempfile.TemporaryDirectory()
for seed in range(4):
    with ParquetWriter(Path(folder.name) / f"day{seed}.parquet") as writer:
        for chunk in collect(PENDULUM, episodes=300, seed=seed):
            writer.write(chunk)
logs = read_log(folder.name, actions=3)
print(f"{logs.size:,} transitions in {len(list(logs.partitions()))} partitions")

# %%

basis = RBFGrid(4, low=(-np.pi / 4, -1.0), high=(np.pi / 4, 1.0))
local = FQI(basis, 3, discount=0.95).fit(logs)
with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as client:
    remote = FQI(basis, 3, discount=0.95).fit(DaskData(logs, client))
print("the same weights:", np.array_equal(local.weights_, remote.weights_))

# %%

with style.style():
    figure, axes = plt.subplots(figsize=(3.6, 3.4), layout="constrained")
    axes.plot(local.weights_, remote.weights_, "o", color=style.BLUE, markersize=4)
    axes.set(xlabel="weights, one machine", ylabel="weights, cluster")
folder.cleanup()
