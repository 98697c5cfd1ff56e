"""Runs that leave a store as a table and enter another one."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Group, Panel
from rblspi.experiments.judging import Evidence, Missing
from rblspi.experiments.results import StoreError, read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.experiments.tables import TableError, export, read_runs
from rblspi.experiments.tasks import SERIES
from tests.support.experiments import CURVES, FIGURE, READ, arrays_of, assert_same, one_thread

RUNS = 3
ALL = RUNS * len(CURVES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with runs that were made."""
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path) as store:
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
    return path


@pytest.fixture
def other(tmp_path):
    """An empty store."""
    with Store(tmp_path / "other.sqlite") as store:
        yield store


def exported(made, path, block=1):
    with Store(made) as store:
        export([read(store, replace(FIGURE, block=block))], path)
    return path


def means(made, path, block=None):
    return exported(made, path, block or FIGURE.block)


def lines_of(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        return [json.loads(line) for line in file]


def rewritten(path, change):
    """The table with every run changed by a function."""
    path.write_text("".join(f"{json.dumps(change(run))}\n" for run in lines_of(path)))
    return path


def test_a_table_has_every_episode_or_the_means_of_blocks(made, tmp_path):
    with Store(made) as store:
        result = read(store, replace(FIGURE, block=1))
        assert export([result, result], tmp_path / "all.jsonl") == ALL
    lengths = result[CURVES[0]].arrays["length"]
    first, second = lines_of(tmp_path / "all.jsonl")[:2]
    assert [first["seed"], second["seed"], second["block"]] == [0, 1, 1]
    assert second["length"] == lengths[1].tolist()
    means_of_four = lines_of(means(made, tmp_path / "blocks.jsonl.gz"))[0]
    assert means_of_four["block"] == 4
    expected = lengths[0].reshape(3, 4).mean(axis=1)
    np.testing.assert_array_equal(means_of_four["length"], expected)
    with pytest.raises(TableError, match=r"must end in \.jsonl or \.jsonl\.gz"):
        export([result], tmp_path / "all.xlsx")


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_episodes_arrive_to_the_last_bit(made, tmp_path, other, name):
    assert other.add(read_runs(exported(made, tmp_path / name))) == ALL
    assert missing(other, CURVES, RUNS) == []
    with Store(made) as store:
        for curve in CURVES:
            (code,) = store.codes(curve)
            for one, two in zip(store.runs(curve, code), other.runs(curve, code), strict=True):
                assert one[0] == two[0]
                assert_same([one[1]], [two[1]])


def test_means_of_blocks_give_the_same_summaries_and_the_same_table_again(made, tmp_path, other):
    table = means(made, tmp_path / "blocks.jsonl.gz")
    other.add(read_runs(table))
    there = read(other, FIGURE)
    with Store(made) as store:
        here = read(store, FIGURE)
    assert {result.block for result in there.curves.values()} == {4}
    for digest, summary in here.summaries.items():
        for one, two in zip(summary, there.summaries[digest], strict=True):
            np.testing.assert_array_equal(one, two)
    export([there], tmp_path / "again.jsonl.gz")
    assert (tmp_path / "again.jsonl.gz").read_bytes() == table.read_bytes()
    with pytest.raises(StoreError, match="means of 4 episodes"):
        export([read(other, replace(FIGURE, block=1))], tmp_path / "episodes.jsonl")


def test_means_are_means_whatever_is_known_of_the_runs(made, tmp_path, other):
    """Of some runs the episodes are known, of others means: as if all of them were made here."""
    runs = [
        run for run in read_runs(means(made, tmp_path / "blocks.jsonl")) if run.record.seed == 1
    ]
    assert other.add(runs) == len(CURVES)
    assert {run.seed for run in missing(other, CURVES, RUNS)} == {0, 2}
    run_all(missing(other, CURVES, RUNS), other, one_thread, 1)
    mixed = Evidence([read(other, FIGURE)])
    with Store(made) as store:
        whole = Evidence([read(store, FIGURE)])
    for curve in CURVES:
        for name in SERIES:
            for first, stop in ((0, None), (-4, None), (4, 8), (-100, None)):
                np.testing.assert_allclose(
                    *(found.mean(curve, name, first, stop) for found in (mixed, whole)), rtol=1e-14
                )
    lengths = whole.of(CURVES[0]).arrays["length"]
    np.testing.assert_array_equal(
        whole.mean(CURVES[0], "under_limit"), (lengths < 500).mean(axis=1)
    )
    with pytest.raises(Missing, match="means of 4 episodes, which do not tell episodes 3 to 12"):
        mixed.mean(CURVES[0], "length", 2)
    for evidence in (mixed, whole):
        with pytest.raises(Missing):
            evidence.mean(CURVES[0], "length", 12, 16)


def test_figures_need_blocks_that_the_means_make(made, tmp_path, other):
    with Store(made) as store:
        expected = read(store, FIGURE).summaries
    other.add(read_runs(means(made, tmp_path / "blocks.jsonl", block=2)))
    found = read(other, FIGURE).summaries
    for digest, summary in expected.items():
        np.testing.assert_array_equal(found[digest].episodes, summary.episodes)
        np.testing.assert_allclose(found[digest].mean, summary.mean, rtol=1e-14)
    with pytest.raises(StoreError, match="means of 2 episodes"):
        _ = read(other, replace(FIGURE, block=3)).summaries


def test_runs_by_other_code_do_not_pass_for_those_of_the_present_one(made, tmp_path, other):
    table = rewritten(exported(made, tmp_path / "all.jsonl"), lambda run: run | {"code": "0" * 16})
    other.add(read_runs(table))
    assert len(missing(other, CURVES, RUNS)) == ALL
    assert not read(other, FIGURE)[CURVES[0]].present_code


def test_settings_of_all_kinds_are_found_again(tmp_path, other):
    """Arguments of an environment, and of an evaluated run what a plain one has."""
    evaluated = replace(CURVES[0], evaluation=1)
    curves = (*READ, evaluated)
    figures = [replace(FIGURE, groups=(Group("", (Panel("", (c,)),)),)) for c in curves]
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, curves, 1), store, one_thread, 1)
        export([read(store, figure) for figure in figures], tmp_path / "all.jsonl")
    assert other.add(read_runs(tmp_path / "all.jsonl")) == len(curves)
    assert missing(other, READ, 1) == []
    assert other.codes(CURVES[0]) == {code_version(evaluated): 1}


def _without(run, name):
    return {key: value for key, value in run.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: _without(run, "code"), "it has no code"),
        (lambda run: [run], "it has no environment"),
        (lambda run: run | {"settings": [1]}, "not a valid dict"),
        (lambda run: run | {"settings": {"discount": float("nan")}}, "not JSON compliant"),
        (lambda run: run | {"seconds": "much"}, "could not convert"),
        (lambda run: run | {"seed": -1}, "seed=-1 is not a valid int"),
        (lambda run: run | {"seed": True}, "seed=True is not a valid int"),
        (lambda run: run | {"code": "<b>"}, "code='<b>' is not a version"),
        (lambda run: run | {"finished": "18.11.2026"}, "not a time in ISO format"),
        (lambda run: run | {"finished": "2026-11-18T10:00"}, "has no time zone"),
        (lambda run: run | {"finished": "0001-01-01T00:00+14:00"}, "not a time in ISO format"),
        (lambda run: run | {"steps": 10**20}, "steps"),
        (lambda run: run | {"return": ["much"] * 3}, "could not convert"),
        (lambda run: run | {"length": [0.5] * 3}, "length=0.5 is not a number from 1"),
        (lambda run: run | {"under_limit": [2] * 3}, "under_limit=2"),
        (lambda run: run | {"length": [1, 1]}, "length has 2 means of 4, of 12 episodes"),
        (lambda run: run | {"block": 0}, "means of 0, of 12 episodes"),
    ],
)
def test_a_table_that_was_tampered_with_is_refused(made, tmp_path, change, message):
    table = means(made, tmp_path / "blocks.jsonl")
    with pytest.raises(TableError, match=rf"blocks\.jsonl, line 1 is not a run.*{message}"):
        read_runs(rewritten(table, change))


def test_files_that_were_damaged_on_the_way_are_refused(made, tmp_path):
    whole = exported(made, tmp_path / "all.jsonl").read_bytes()
    packed = exported(made, tmp_path / "all.jsonl.gz").read_bytes()
    middle = len(packed) // 2
    damaged = {
        "short.jsonl.gz": packed[:-40],
        "bits.jsonl.gz": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
        "cut.jsonl.gz": gzip.compress(whole[: len(whole) // 2]),
        "empty.jsonl": b"",
        "words.jsonl": b"foo,bar\n1,2\n",
        "utf-16.jsonl": whole.decode().encode("utf-16"),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=name):
            read_runs(tmp_path / name)


def test_runs_that_are_there_make_way_only_for_more_of_the_same(made, tmp_path, other):
    """Means of four are more numbers than means of six, but do not make these."""
    tables = [means(made, tmp_path / f"{block}.jsonl", block) for block in (6, 4, 2)]
    episodes = exported(made, tmp_path / "all.jsonl")
    changed = exported(made, tmp_path / "changed.jsonl")
    rewritten(changed, lambda run: run | {"length": [7] * len(run["length"])})
    added = [other.add(read_runs(table)) for table in (*tables, episodes, *tables, changed)]
    assert added == [ALL, 0, ALL, ALL, 0, 0, 0, 0]
    assert_same(arrays_of(other.path), arrays_of(made))


def test_a_failure_half_way_leaves_the_store_as_it_was(made, tmp_path, other):
    runs = read_runs(exported(made, tmp_path / "all.jsonl"))
    bad = runs[-1]._replace(record=runs[-1].record._replace(seconds=np.nan))
    with pytest.raises(StoreError):
        other.add([*runs[:-1], bad])
    assert all(other.codes(curve) == {} for curve in CURVES)
    assert other.add(runs) == ALL


def test_a_table_serves_all_figures_and_leaves_no_episode_out(made, tmp_path, other):
    figures = [replace(FIGURE, block=block) for block in (4, 6)]
    with Store(made) as store:
        export([read(store, figure) for figure in figures], tmp_path / "both.jsonl")
    other.add(read_runs(tmp_path / "both.jsonl"))
    for figure in figures:
        assert len(read(other, figure).summaries) == len(CURVES)
    runs = read_runs(means(made, tmp_path / "five.jsonl", block=5))
    assert [len(run.arrays["length"]) for run in runs] == [12] * ALL
