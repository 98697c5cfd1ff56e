import os
import re
import signal
import threading
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from gymnasium.spaces import Discrete

from rblspi.core.cluster import ClusterError
from rblspi.data import BadRows, DaskData, DataError, read_log
from rblspi.features import Polynomial, RBFGrid
from rblspi.offline import BLSPI, FQI, LSPI
from tests.support.chain import BASIS, DISCOUNT, STATES, random_episodes
from tests.support.cluster import local_cluster
from tests.support.logs import episode_rows, write_parquet

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture(scope="module")
def client():
    import dask

    settings = {"distributed.comm.timeouts.connect": "30s", "distributed.worker.daemon": False}
    with (
        dask.config.set(settings),
        local_cluster(n_workers=2, processes=True, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def written(folder, rows, at_a_time, bad=()):
    """A file of rows of the chain, some of them bad, in partitions of so many."""
    (log,) = random_episodes(1, rows, seed=0)
    log.rewards[list(bad)] = np.nan
    write_parquet(folder / "chain.parquet", log, rows // at_a_time)


@pytest.fixture
def data(tmp_path):
    written(tmp_path, 5000, 500)
    return read_log(tmp_path, actions=2, skip_bad=True)


@pytest.mark.parametrize("estimator", [LSPI, partial(LSPI, trace_decay=0.5), BLSPI, FQI])
def test_the_fit_is_the_local_one(client, data, estimator):
    here = estimator(BASIS, 2, discount=DISCOUNT).fit(data)
    there = estimator(BASIS, 2, discount=DISCOUNT).fit(DaskData(data, client))
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10, atol=0)


def test_pessimism_travels(client, data):
    settings = {"discount": DISCOUNT, "pessimism": 1.0, "noise_precision": 10.0}
    here = BLSPI(RBFGrid(5), 2, **settings).fit(data)
    there = BLSPI(RBFGrid(5), 2, **settings).fit(DaskData(data, client))
    np.testing.assert_allclose(there.predict(STATES), here.predict(STATES), rtol=1e-10)


def test_words_travel(client, tmp_path):
    for i in range(3):
        rows = pd.DataFrame(episode_rows(60, seed=i)).assign(
            episode=lambda f, i=i: f.episode + f"{i}"
        )
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
    log, basis, state = (
        read_log(tmp_path),
        Polynomial(1, low=-1, high=1),
        {"stock": 0.1, "weekday": "Mon"},
    )
    here, there = (LSPI(basis, discount=0.8).fit(data) for data in (log, DaskData(log, client)))
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10)
    assert there.act(state) == here.act(state)


def test_bad_rows_are_counted_everywhere(client, tmp_path):
    written(tmp_path, 100, 50, bad=[3, 60])
    data = DaskData(read_log(tmp_path, skip_bad=True), client)
    LSPI(BASIS, 2, discount=DISCOUNT, tolerance=1e9).fit(data)
    assert data.bad.count == 2


@pytest.mark.parametrize("name", ["CancelledError", "KilledWorker", "CommClosedError"])
def test_a_lost_cluster_is_reported_in_one_sentence(name):
    from distributed.comm import CommClosedError

    kinds = {
        "CancelledError": distributed.CancelledError("sums-1"),
        "KilledWorker": distributed.KilledWorker("sums-1", SimpleNamespace(address="tcp:"), 3),
        "CommClosedError": CommClosedError("in <TCP>: stream is closed\nand more"),
    }

    class Lost:
        """A client whose second result does not arrive."""

        def submit(self, *_, **__):
            return None

        def map(self, _, data, **__):
            return [Arrives(), *[self] * (len(data) - 1)]

        def result(self):
            raise kinds[name]

    class Arrives:
        def result(self):
            return 1, BadRows()

    results = DaskData([[], [], []], Lost()).map_partitions(len)
    assert next(results) == 1
    with pytest.raises(ClusterError) as caught:
        next(results)
    lost = rf"the sums of 2 of 3 partitions were lost on the Dask cluster \({name}: [^\n]*\); "
    assert re.fullmatch(lost + "fitting again starts over", str(caught.value))
    assert ". " not in str(caught.value)


def test_errors_of_the_data_stay_what_they_are(client, tmp_path):
    written(tmp_path, 100, 50, bad=[60])
    with pytest.raises(DataError, match="row 60, column reward: nan must be a finite number"):
        LSPI(BASIS, 2).fit(DaskData(read_log(tmp_path), client))


def test_a_scheduler_that_is_closed_during_a_pass_is_reported(data, tmp_path):
    with local_cluster(silence_logs=50) as cluster:
        client = distributed.Client(cluster.scheduler_address, set_as_default=False)
        slow = DaskData([Slow(partition, tmp_path) for partition in data.partitions()], client)

        def close_when_started():
            while not (tmp_path / f"{os.getpid()}").exists():
                time.sleep(0.01)
            cluster.close()

        closer = threading.Thread(target=close_when_started)
        closer.start()
        with pytest.raises(ClusterError, match=r"of 10 partitions were lost .*; fitting again"):
            LSPI(BASIS, 2, observation_space=Discrete(20)).fit(slow)
        closer.join()
        client.close(timeout=1)


class Slow:
    """A partition that takes a while to read, and records which process reads it."""

    def __init__(self, partition, folder):
        self.partition, self.folder = partition, folder

    def __iter__(self):
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(0.2)
        yield from self.partition


def test_a_worker_that_dies_during_a_pass_changes_nothing(client, data, tmp_path):
    settings = {"discount": DISCOUNT, "observation_space": Discrete(20)}
    here = LSPI(BASIS, 2, **settings).fit(data)
    started = tmp_path / "started"
    started.mkdir()
    workers = set(client.run(os.getpid).values())
    killed = []

    def kill_one():
        while not (busy := workers & {int(file.name) for file in started.iterdir()}):
            time.sleep(0.01)
        time.sleep(0.3)  # it holds the sums of one partition and computes those of another
        killed.append(min(busy))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    slow = DaskData([Slow(partition, started) for partition in data.partitions()], client)
    there = LSPI(BASIS, 2, **settings).fit(slow)
    killer.join()
    assert killed
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10, atol=0)
