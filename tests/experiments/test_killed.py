"""Sweeps that are killed, on this machine and on a cluster, end with the same numbers."""

import os
import random
import signal
import threading
import time

import pytest

from rblspi.core.cluster import dask_client
from rblspi.experiments.config import dump
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import dask_executors, missing, run_all
from tests.support.cluster import local_cluster
from tests.support.experiments import FIGURE, arrays_of, assert_same, one_thread
from tests.support.process import Running

pytestmark = pytest.mark.slow

RUNS = 12
KILLS = 2
CURVES = FIGURE.curves


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path) as store:
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
    return arrays_of(path)


#: tells of every commit
TELLING = """
from rblspi.experiments.results_store import Store
add = Store.add
Store.add = lambda self, runs: [add(self, runs), print("committed", flush=True)][0]
"""


def test_a_sweep_that_is_killed_again_and_again_ends_with_the_numbers_of_an_undisturbed_one(
    tmp_path, undisturbed
):
    (tmp_path / "small.toml").write_text(dump(FIGURE), encoding="utf-8")
    command = ("reproduce", "--config", "small.toml", "--runs", RUNS, "--jobs", 2, "--out", "out")
    path, rng, stored = tmp_path / "out" / "results.sqlite", random.Random(0), []
    for _ in range(KILLS):
        running = Running(tmp_path, *command, prelude=TELLING)
        running.until(lambda running=running: "committed" in running.out)
        time.sleep(rng.uniform(0.0, 0.1))
        running.signal(signal.SIGKILL)
        running.wait()  # also for workers, which see that their parent is no more
        with Store(path) as store:
            stored.append(RUNS * len(CURVES) - len(missing(store, CURVES, RUNS)))
    assert stored == sorted(stored)
    assert 0 < stored[-1] < RUNS * len(CURVES)
    Running(tmp_path, *command).wait().require(0)
    assert_same(arrays_of(path), undisturbed)


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_a_worker_half_way_gives_the_same_numbers(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"
    done = threading.Event()
    with (
        local_cluster(n_workers=2, processes=True) as cluster,
        Store(path) as store,
        dask_client(cluster.scheduler_address) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        count = 0

        def tell(run):
            nonlocal count
            count += 1
            if count == RUNS * len(CURVES) // 2:
                os.kill(victim, signal.SIGKILL)
                done.set()

        run_all(missing(store, CURVES, RUNS), store, *dask_executors(client), tell)
    assert done.is_set()
    assert_same(arrays_of(path), undisturbed)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_goes_wrong_on_a_cluster_is_not_hidden(tmp_path, error):
    def tell(run):
        raise error

    with (
        local_cluster() as cluster,
        Store(tmp_path / "results.sqlite") as store,
        dask_client(cluster.scheduler_address) as client,
        pytest.raises(error),
    ):
        run_all(missing(store, CURVES[:1], 2), store, *dask_executors(client), tell)
