"""Sweeps that are killed, on this machine and on a cluster, end with the same numbers."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from rblspi.core.cluster import dask_client
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import dask_executors, missing, run_all
from tests.support.cluster import local_cluster
from tests.support.experiments import SWEEP, arrays_of, assert_same, one_thread

pytestmark = pytest.mark.slow

RUNS = 12
KILLS = 3
CURVES = SWEEP.curves


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path) as store:
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
    return arrays_of(path, SWEEP)


def start(path):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.sweep", path, str(RUNS)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until_gone(group):
    """Workers see that their parent is no more, and leave."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("workers outlived the killed process")


@pytest.mark.slow
def test_a_sweep_that_is_killed_again_and_again_ends_with_the_numbers_of_an_undisturbed_one(
    tmp_path, undisturbed
):
    path = tmp_path / "results.sqlite"
    rng = random.Random(0)
    stored = []
    for _ in range(KILLS):
        process = start(path)
        process.stdout.readline()
        if rng.random() < 0.7:
            process.stdout.readline()  # the first run is there: now at any moment
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        wait_until_gone(process.pid)
        with Store(path) as store:
            stored.append(RUNS * len(CURVES) - len(missing(store, CURVES, RUNS)))
    assert stored == sorted(stored)
    assert 0 < stored[-1] < RUNS * len(CURVES)
    process = start(path)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert_same(arrays_of(path, SWEEP), undisturbed)
    with Store(path) as store:
        assert missing(store, CURVES, RUNS) == []
    assert [name for name in os.listdir(tmp_path) if name != path.name] == []


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
    assert_same(arrays_of(path, SWEEP), undisturbed)


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
