import os
import signal
import threading
import time

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi.datasets import ParquetData, ParquetWriter
from rblspi.estimators import BLSPI, LSPI, OnCluster
from rblspi.features import RBFGrid
from tests.estimators.chain import BASIS, DISCOUNT, STATES, random_episodes

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    import dask

    settings = {"distributed.comm.timeouts.connect": "30s", "distributed.worker.daemon": False}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def data(tmp_path):
    (log,) = random_episodes(1, 5000, seed=0)
    with ParquetWriter(tmp_path / "chain.parquet") as writer:
        for start in range(0, 5000, 500):
            writer.write(log.rows(start, start + 500))
    return ParquetData(tmp_path, actions=2, skip_bad=True)


@pytest.mark.parametrize("estimator", [LSPI, BLSPI])
def test_the_fit_is_the_local_one(client, data, estimator):
    here = estimator(BASIS, 2, discount=DISCOUNT).fit(data)
    there = estimator(BASIS, 2, discount=DISCOUNT).fit(OnCluster(data, client))
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10, atol=0)


def test_pessimism_travels(client, data):
    settings = {"discount": DISCOUNT, "pessimism": 1.0, "noise_precision": 10.0}
    here = BLSPI(RBFGrid(5), 2, **settings).fit(data)
    there = BLSPI(RBFGrid(5), 2, **settings).fit(OnCluster(data, client))
    np.testing.assert_allclose(there.predict(STATES), here.predict(STATES), rtol=1e-10)


def test_bad_rows_are_counted_everywhere(client, tmp_path):
    (log,) = random_episodes(1, 100, seed=0)
    log.rewards[[3, 60]] = np.nan
    with ParquetWriter(tmp_path / "chain.parquet") as writer:
        writer.write(log.rows(0, 50))
        writer.write(log.rows(50, 100))
    data = OnCluster(ParquetData(tmp_path, skip_bad=True), client)
    LSPI(BASIS, 2, discount=DISCOUNT, tolerance=1e9).fit(data)
    assert data.bad.count == 2


class Slow:
    """A part whose reading takes a while, and says which process has begun it."""

    def __init__(self, part, folder):
        self.part, self.folder = part, folder

    def __iter__(self):
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(0.2)
        yield from self.part


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
        time.sleep(0.3)  # it holds the sums of one part, and is at another one
        killed.append(min(busy))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    slow = OnCluster([Slow(part, started) for part in data.parts()], client)
    there = LSPI(BASIS, 2, **settings).fit(slow)
    killer.join()
    assert killed
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-10, atol=0)
