"""Runs that leave a store as a table and enter another one."""

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest

from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Group, Panel
from rblspi.experiments.judging import Evidence, Missing
from rblspi.experiments.results import StoreError, read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.experiments.tables import COLUMNS, TableError, export, read_runs
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


def exported(made, path, block=None, **how):
    with Store(made) as store:
        export([read(store, replace(FIGURE, block=block or FIGURE.block))], path, **how)
    return path


def means(made, path, block=None):
    return exported(made, path, block, blocks=True)


def rows_of(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def rewritten(path, change):
    """The table with every row changed by a function."""
    rows = [change(row) for row in rows_of(path)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in COLUMNS if name in rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_table_has_every_episode_or_the_means_of_blocks(made, tmp_path):
    with Store(made) as store:
        result = read(store, FIGURE)
        assert export([result, result], tmp_path / "all.csv") == ALL * 12
    lengths = result[CURVES[0]].arrays["length"]
    rows = rows_of(tmp_path / "all.csv")
    assert tuple(rows[0]) == tuple(COLUMNS)
    second = [row for row in rows if "0.001" in row["settings"] and row["seed"] == "1"]
    assert [int(row["episode"]) for row in second] == list(range(1, 13))
    assert [float(row["length"]) for row in second] == lengths[1].tolist()
    blocks = rows_of(means(made, tmp_path / "blocks.csv.gz"))[:3]
    assert [int(row["episode"]) for row in blocks] == [4, 8, 12]
    expected = lengths[0].reshape(3, 4).mean(axis=1)
    np.testing.assert_array_equal([float(row["length"]) for row in blocks], expected)
    with pytest.raises(TableError, match=r"must end in \.csv or \.csv\.gz"):
        export([result], tmp_path / "all.xlsx")


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz"])
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
    table = means(made, tmp_path / "blocks.csv.gz")
    other.add(read_runs(table))
    there = read(other, FIGURE)
    with Store(made) as store:
        here = read(store, FIGURE)
    assert {result.block for result in there.curves.values()} == {4}
    for digest, summary in here.summaries.items():
        for one, two in zip(summary, there.summaries[digest], strict=True):
            np.testing.assert_array_equal(one, two)
    export([there], tmp_path / "again.csv.gz", blocks=True)
    assert (tmp_path / "again.csv.gz").read_bytes() == table.read_bytes()
    with pytest.raises(StoreError, match="means of 4 episodes"):
        export([there], tmp_path / "episodes.csv")


def test_means_are_means_whatever_is_known_of_the_runs(made, tmp_path, other):
    """Of some runs the episodes are known, of others means: as if all of them were made here."""
    runs = [run for run in read_runs(means(made, tmp_path / "blocks.csv")) if run.record.seed == 1]
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
    other.add(read_runs(means(made, tmp_path / "blocks.csv", block=2)))
    found = read(other, FIGURE).summaries
    for digest, summary in expected.items():
        np.testing.assert_array_equal(found[digest].episodes, summary.episodes)
        np.testing.assert_allclose(found[digest].mean, summary.mean, rtol=1e-14)
    with pytest.raises(StoreError, match="means of 2 episodes"):
        _ = read(other, replace(FIGURE, block=3)).summaries


def test_runs_by_other_code_do_not_pass_for_those_of_the_present_one(made, tmp_path, other):
    table = rewritten(exported(made, tmp_path / "all.csv"), lambda row: row | {"code": "0" * 16})
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
        export([read(store, figure) for figure in figures], tmp_path / "all.csv")
    assert other.add(read_runs(tmp_path / "all.csv")) == len(curves)
    assert missing(other, READ, 1) == []
    assert other.codes(CURVES[0]) == {code_version(evaluated): 1}


def _without(row, name):
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: _without(row, "code"), "and not code"),
        (lambda row: row | {"settings": "[1]"}, "not a dict"),
        (lambda row: row | {"settings": '{"discount": NaN}'}, "not JSON"),
        (lambda row: row | {"warnings": "["}, "not JSON"),
        (lambda row: row | {"seconds": row["episode"]}, "of its 12 episodes, .* end with 4. The"),
        (lambda row: row | {"seconds": "nan"}, "seconds='nan' is not a number from 0"),
        (lambda row: row | {"seed": "-1"}, "seed='-1' is not a whole number"),
        (lambda row: row | {"code": "<b>"}, "code='<b>' is not a version"),
        (lambda row: row | {"finished": "18.11.2026"}, "not a time in ISO format"),
        (lambda row: row | {"finished": "2026-11-18T10:00"}, "has no time zone"),
        (lambda row: row | {"finished": "0001-01-01T00:00+14:00"}, "not a time in ISO format"),
        (lambda row: row | {"steps": "99999999999999999999"}, "steps"),
        (lambda row: row | {"return": "much"}, "return='much'"),
        (lambda row: row | {"length": "0.5"}, "length='0.5' is not a number from 1"),
        (lambda row: row | {"under_limit": "2"}, "under_limit='2'"),
        (lambda row: row | {"episode": "4"}, "end with 4, 4, 4"),
        (lambda row: row | {"episode": int(row["episode"]) + 1}, "end with 5, 9, 13"),
    ],
)
def test_a_table_that_was_tampered_with_is_refused(made, tmp_path, change, message):
    table = means(made, tmp_path / "blocks.csv")
    read_runs(table)
    with pytest.raises(TableError, match=message):
        read_runs(rewritten(table, change))


def test_whole_numbers_are_read_exactly(made, tmp_path):
    table = means(made, tmp_path / "blocks.csv")
    for written, seed in ((str(2**53 + 1), 2**53 + 1), ("7.0", 7)):
        runs = read_runs(rewritten(table, lambda row, text=written: row | {"seed": text}))
        assert {run.record.seed for run in runs} == {seed}


def test_files_that_were_damaged_on_the_way_are_refused(made, tmp_path):
    whole = exported(made, tmp_path / "all.csv").read_bytes()
    packed = exported(made, tmp_path / "all.csv.gz").read_bytes()
    middle = len(packed) // 2
    damaged = {
        "short.csv.gz": packed[:-40],
        "bits.csv.gz": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
        "cut.csv.gz": gzip.compress(whole[: len(whole) // 2]),
        "twice.csv": whole + whole,
        "empty.csv": b"",
        "header.csv": whole[: whole.index(b"\n") + 1],
        "words.csv": b"foo,bar\n1,2\n",
        "row.csv": whole + b"rblspi/MountainCar-v0\n",
        "line.csv": whole[:-1],
        "utf-16.csv": whole.decode().encode("utf-16"),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=name):
            read_runs(tmp_path / name)


def test_a_table_that_went_through_a_spreadsheet_is_read(made, tmp_path):
    table = exported(made, tmp_path / "all.csv")
    expected = read_runs(table)
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n"))
    for one, two in zip(expected, read_runs(table), strict=True):
        assert one[:2] == two[:2]
        assert_same([one.arrays], [two.arrays])


def test_runs_that_are_there_make_way_only_for_more_of_the_same(made, tmp_path, other):
    """Means of four are more numbers than means of six, but do not make these."""
    tables = [means(made, tmp_path / f"{block}.csv", block) for block in (6, 4, 2)]
    episodes = exported(made, tmp_path / "all.csv")
    changed = exported(made, tmp_path / "changed.csv")
    rewritten(changed, lambda row: row | {"length": "7"})
    added = [other.add(read_runs(table)) for table in (*tables, episodes, *tables, changed)]
    assert added == [ALL, 0, ALL, ALL, 0, 0, 0, 0]
    assert_same(arrays_of(other.path), arrays_of(made))


def test_a_failure_half_way_leaves_the_store_as_it_was(made, tmp_path, other):
    runs = read_runs(exported(made, tmp_path / "all.csv"))
    bad = runs[-1]._replace(record=runs[-1].record._replace(seconds=None))
    with pytest.raises(StoreError):
        other.add([*runs[:-1], bad])
    assert all(other.codes(curve) == {} for curve in CURVES)
    assert other.add(runs) == ALL


def test_a_table_serves_all_figures_and_leaves_no_episode_out(made, tmp_path, other):
    figures = [replace(FIGURE, block=block) for block in (4, 6)]
    with Store(made) as store:
        export([read(store, figure) for figure in figures], tmp_path / "both.csv", blocks=True)
    other.add(read_runs(tmp_path / "both.csv"))
    for figure in figures:
        assert len(read(other, figure).summaries) == len(CURVES)
    runs = read_runs(means(made, tmp_path / "five.csv", block=5))
    assert [len(run.arrays["length"]) for run in runs] == [12] * ALL
