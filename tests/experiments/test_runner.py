import os
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from rblspi.core.cluster import ClusterError
from rblspi.experiments import runner
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Run
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import (
    RunError,
    dask_executors,
    local_processes,
    missing,
    prepare,
    run_all,
)
from rblspi.experiments.tasks import FinishedRun, execute
from rblspi_paper.figures import LSPI
from tests.support.cluster import local_cluster
from tests.support.experiments import CURVES, FIGURE, arrays_of, assert_same, curve, one_thread

pytestmark = pytest.mark.slow

RUNS = 4


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path) as store:
        prepare(CURVES)
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
    return arrays_of(path)


def test_neither_workers_nor_order_change_a_bit(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        todo = missing(store, CURVES, RUNS)
        run_all(todo[::-1], store, lambda: local_processes(2), 5)
        assert missing(store, CURVES, RUNS) == []
    assert_same(arrays_of(path), undisturbed)


def test_a_changed_setting_runs_only_what_changed(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, CURVES, 2), store, one_thread, 1)
        changed = replace(CURVES[0], settings={**CURVES[0].settings, "noise_precision": 1.0})
        left = missing(store, [changed, *CURVES[1:]], 2)
        assert {run.curve.digest for run in left} == {changed.digest}
        assert len(left) == 2
        assert [run.seed for run in missing(store, CURVES, 3)] == [2, 2, 2]


def test_changed_code_runs_again_unless_told_otherwise(tmp_path, monkeypatch):
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, CURVES[:1], 2), store, one_thread, 1)
        monkeypatch.setattr(runner, "code_version", lambda curve: "changed")
        assert len(missing(store, CURVES[:1], 2)) == 2
        assert missing(store, CURVES[:1], 2, any_code=True) == []


def test_runs_of_different_code_are_not_mixed(tmp_path):
    first = CURVES[0]
    with Store(tmp_path / "results.sqlite") as store:
        todo = missing(store, [first], 3)
        for curve, record, arrays in map(execute, todo):
            store.add([FinishedRun(curve, record._replace(code="another"), arrays)])
        result = read(store, FIGURE)[first]
        assert (result.runs, result.present_code) == (3, False)
        store.add([execute(todo[0])])
        result = read(store, FIGURE)[first]
        assert (result.runs, result.present_code) == (1, True)
        result = read(store, FIGURE, any_code=True)[first]
        assert (result.runs, result.present_code) == (3, False)
        assert [record.code == code_version(first) for record in result.records] == [1, 0, 0]


def test_a_worker_with_other_code_is_refused(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        todo = [replace(run, code="ours") for run in missing(store, CURVES[:1], 1)]
        with pytest.raises(RunError, match="other code"):
            run_all(todo, store, one_thread, 1)
        assert store.codes(CURVES[0]) == {}


class DyingOnce(ProcessPoolExecutor):
    """Loses a worker at the third run it is given."""

    given = 0

    def submit(self, fn, /, *args, **kwargs):
        DyingOnce.given += 1
        if DyingOnce.given == 3:
            return super().submit(os._exit, 1)
        return super().submit(fn, *args, **kwargs)


def test_a_worker_that_dies_costs_only_the_runs_in_flight(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"

    def executors():
        context = local_processes(1)._mp_context
        return DyingOnce(1, mp_context=context)

    with Store(path) as store:
        run_all(missing(store, CURVES, RUNS), store, executors, 1)
    assert_same(arrays_of(path), undisturbed)


def test_a_run_that_fails_is_named(tmp_path):
    bad = curve(update_every=0)
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(RunError, match=r"update_every=0.*seed 0"):
            run_all(missing(store, [bad], 1), store, one_thread, 1)
        with pytest.raises(ValueError, match=r"rblspi on .*update_every=0"):
            prepare([bad])


def test_offline_runs_see_the_same_samples_and_give_values_of_every_iteration(tmp_path):
    short = replace(LSPI, samples=500)
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, [short], 2), store, one_thread, 1)
        tables = [arrays["action_values"] for _, arrays in store.runs(short, code_version(short))]
    assert all(table.shape[1:] == (20, 2) for table in tables)
    np.testing.assert_array_equal(tables[0], execute(Run(short, 0)).arrays["action_values"])
    assert tables[0][0].tobytes() != tables[1][0].tobytes()


@contextmanager
def cluster(workers=1):
    """A Dask cluster of threads in this process, and a client of it."""
    distributed = pytest.importorskip("distributed")
    with (
        local_cluster(n_workers=workers, silence_logs=50) as made,
        distributed.Client(made.scheduler_address, timeout="2s", set_as_default=False) as client,
    ):
        yield made, client


def test_a_lost_cluster_costs_only_the_runs_in_flight(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"
    kept = []
    with Store(path) as store:
        with cluster() as (made, client):

            def close_after_two(run):
                kept.append(run)
                if len(kept) == 2:
                    made.close()

            todo = missing(store, CURVES, RUNS)
            with pytest.raises(ClusterError, match=r"kept in .*results\.sqlite.* same command"):
                run_all(todo, store, client.get_executor, 4, close_after_two)
        left = missing(store, CURVES, RUNS)
        assert len(left) <= len(todo) - len(kept)
        run_all(left, store, one_thread, 1)
    assert_same(arrays_of(path), undisturbed)


def test_a_cluster_without_workers_is_waited_for_aloud(tmp_path, undisturbed, monkeypatch, capsys):
    monkeypatch.setattr(runner, "FIRST_NOTICE", 0.2)
    monkeypatch.setattr(runner, "NEXT_NOTICE", 0.4)
    path = tmp_path / "results.sqlite"
    with Store(path) as store, cluster(workers=0) as (made, client):
        later = threading.Timer(1.0, made.scale, [1])
        later.start()
        run_all(missing(store, CURVES, RUNS), store, *dask_executors(client))
        later.join()
    said = f"rblspi: waiting for workers of the cluster at {made.scheduler_address} ...\n"
    assert capsys.readouterr().err.count(said) in (2, 3)
    assert_same(arrays_of(path), undisturbed)


def test_a_scheduler_that_dies_before_workers_come_is_told():
    with cluster(workers=0) as (made, client):
        made.close()
        with pytest.raises(ClusterError, match="does not answer any more: start one"):
            dask_executors(client)
