"""Runs that leave a store as a table and enter another one."""

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest

from rblspi.experiments.definitions import Group, Panel
from rblspi.experiments.export import COLUMNS, export
from rblspi.experiments.imports import ImportedTableError, read_runs
from rblspi.experiments.judging import Evidence, Missing
from rblspi.experiments.results import SERIES, StoreError, read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from tests.support.experiments import (
    CURVES,
    FIGURE,
    READ,
    SWEEP,
    arrays_of,
    assert_same,
    one_thread,
)

RUNS = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with runs that were made."""
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with Store(path) as store:
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
    return path


def import_runs(table, store):
    runs = read_runs(table)
    return len(runs), store.add_all(runs)


def exported(made, path, **how):
    with Store(made) as store:
        export([read(store, FIGURE)], path, **how)
    return path


def rewritten(path, change):
    """The table with every row changed by a function."""
    with path.open(newline="") as file:
        rows = [change(dict(row)) for row in csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [name for name in COLUMNS if name in rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["all.csv", "all.csv.gz", "all.parquet"])
def test_episodes_arrive_to_the_last_bit(made, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / "other.sqlite"
    table = exported(made, tmp_path / name)
    with Store(path) as store:
        assert import_runs(table, store) == (3 * RUNS, 3 * RUNS)
        assert missing(store, CURVES, RUNS) == []
        there = [[*store.runs(curve, *store.codes(curve))] for curve in CURVES]
    with Store(made) as store:
        here = [[*store.runs(curve, *store.codes(curve))] for curve in CURVES]
    assert [[record for record, _ in runs] for runs in there] == [
        [record for record, _ in runs] for runs in here
    ]
    assert_same(arrays_of(path), arrays_of(made))


def test_means_of_blocks_give_the_same_summaries_and_the_same_table_again(made, tmp_path):
    table = exported(made, tmp_path / "blocks.csv.gz", blocks=True)
    with Store(tmp_path / "other.sqlite") as store:
        import_runs(table, store)
        there = read(store, FIGURE)
    with Store(made) as store:
        here = read(store, FIGURE)
    assert {result.block for result in there.curves.values()} == {4}
    for digest, summary in here.summaries.items():
        for one, other in zip(summary, there.summaries[digest], strict=True):
            np.testing.assert_array_equal(one, other)
    export([there], tmp_path / "again.csv.gz", blocks=True)
    assert (tmp_path / "again.csv.gz").read_bytes() == table.read_bytes()
    with pytest.raises(StoreError, match="means of 4 episodes"):
        export([there], tmp_path / "episodes.csv")


def test_means_are_means_whatever_is_known_of_the_runs(made, tmp_path):
    """Of some runs the episodes are known, of others means: as if all of them were made here."""
    table = exported(made, tmp_path / "blocks.csv", blocks=True)
    lines = table.read_text().splitlines(keepends=True)
    with table.open("w", newline="") as file:
        file.writelines(line for line in lines if line.split(",")[-5] in ("seed", "1"))
    with Store(tmp_path / "other.sqlite") as store:
        assert import_runs(table, store) == (len(CURVES), len(CURVES))
        assert {run.seed for run in missing(store, CURVES, RUNS)} == {0, 2}
        run_all(missing(store, CURVES, RUNS), store, one_thread, 1)
        mixed = Evidence([read(store, FIGURE)])
    with Store(made) as store:
        whole = Evidence([read(store, FIGURE)])
    for curve in CURVES:
        for name in SERIES:
            for first, stop in ((0, None), (-4, None), (4, 8)):
                np.testing.assert_allclose(
                    *(found.mean(curve, name, first, stop) for found in (mixed, whole)), rtol=1e-14
                )
    lengths = whole.of(CURVES[0]).arrays["length"]
    np.testing.assert_array_equal(
        whole.mean(CURVES[0], "under_limit"), (lengths < 500).mean(axis=1)
    )
    np.testing.assert_allclose(*(e.mean(CURVES[0], "length", -100) for e in (mixed, whole)))
    with pytest.raises(Missing, match="means of 4 episodes, which do not tell episodes 3 to 12"):
        mixed.mean(CURVES[0], "length", 2)
    for evidence in (mixed, whole):
        with pytest.raises(Missing):
            evidence.mean(CURVES[0], "length", 12, 16)


def test_figures_need_blocks_that_the_means_make(made, tmp_path):
    with Store(made) as store:
        export([read(store, replace(FIGURE, block=2))], tmp_path / "blocks.csv", blocks=True)
        expected = read(store, FIGURE).summaries
    with Store(tmp_path / "other.sqlite") as store:
        import_runs(tmp_path / "blocks.csv", store)
        found = read(store, FIGURE).summaries
        for digest, summary in expected.items():
            np.testing.assert_array_equal(found[digest].episodes, summary.episodes)
            np.testing.assert_allclose(found[digest].mean, summary.mean, rtol=1e-14)
        with pytest.raises(StoreError, match="means of 2 episodes"):
            _ = read(store, replace(FIGURE, block=3)).summaries


def test_runs_that_are_there_stay(made, tmp_path):
    table = rewritten(exported(made, tmp_path / "all.csv"), lambda row: row | {"length": "7"})
    with Store(tmp_path / "other.sqlite") as store:
        run_all(missing(store, CURVES[:1], RUNS), store, one_thread, 1)
        assert import_runs(table, store) == (3 * RUNS, 2 * RUNS)
        for curve, replaced in zip(CURVES, (False, True, True), strict=True):
            (_, arrays), *_ = store.runs(curve, *store.codes(curve))
            assert (arrays["length"] == 7).all() == replaced


def test_runs_by_other_code_do_not_pass_for_those_of_the_present_one(made, tmp_path):
    table = rewritten(exported(made, tmp_path / "all.csv"), lambda row: row | {"code": "0" * 16})
    with Store(tmp_path / "other.sqlite") as store:
        import_runs(table, store)
        assert len(missing(store, CURVES, RUNS)) == len(CURVES) * RUNS
        assert not read(store, FIGURE)[CURVES[0]].present_code


def test_settings_of_all_kinds_are_found_again(made, tmp_path):
    """Arguments of an environment, and what an evaluated run has in common with a plain one."""
    figure = replace(SWEEP, groups=(replace(SWEEP.groups[0], panels=(Panel("", tuple(READ)),)),))
    evaluated = replace(CURVES[0], evaluation=1)
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, [*READ, evaluated], 1), store, one_thread, 1)
        alone = replace(FIGURE, groups=(Group("", (Panel("", (evaluated,)),)),))
        export([read(store, figure), read(store, alone)], tmp_path / "all.csv")
    with Store(tmp_path / "other.sqlite") as store:
        assert import_runs(tmp_path / "all.csv", store)[1] == len(READ) + 1
        assert missing(store, [*READ, CURVES[0]], 1) == []


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
        (lambda row: row | {"return": "nan"}, "return='nan'"),
        (lambda row: row | {"length": "0.5"}, "length='0.5' is not a number from 1"),
        (lambda row: row | {"under_limit": "2"}, "under_limit='2'"),
        (lambda row: row | {"episode": "4"}, "end with 4, 4, 4"),
        (lambda row: row | {"episode": "0"}, "episode='0'"),
        (lambda row: row | {"episode": int(row["episode"]) + 1}, "end with 5, 9, 13"),
        (lambda row: row | {"episode": int(row["episode"]) // 4, "episodes": 3}, "whole number"),
    ],
)
def test_a_table_that_was_tampered_with_is_refused(made, tmp_path, change, message):
    table = exported(made, tmp_path / "blocks.csv", blocks=True)
    read_runs(table)
    with pytest.raises(ImportedTableError, match=message):
        read_runs(rewritten(table, change))


def test_whole_numbers_are_read_exactly(made, tmp_path):
    table = exported(made, tmp_path / "blocks.csv", blocks=True)
    for written, seed in ((str(2**53 + 1), 2**53 + 1), ("7.0", 7)):
        runs = read_runs(rewritten(table, lambda row, text=written: row | {"seed": text}))
        assert {record.seed for _, record, _ in runs} == {seed}


def test_files_that_were_damaged_on_the_way_are_refused(made, tmp_path):
    whole = exported(made, tmp_path / "all.csv").read_bytes()
    means = exported(made, tmp_path / "blocks.csv", blocks=True).read_bytes()
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
        "number.csv": means[:-3],
        "line.csv": means[:-1],
        "utf-16.csv": whole.decode().encode("utf-16"),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImportedTableError, match=name):
            read_runs(tmp_path / name)


def test_a_table_that_went_through_a_spreadsheet_is_read(made, tmp_path):
    table = exported(made, tmp_path / "all.csv")
    expected = read_runs(table)
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n"))
    for (curve, record, arrays), (*other, others) in zip(expected, read_runs(table), strict=True):
        assert [curve, record] == other
        assert_same([arrays], [others])


def test_episodes_take_the_place_of_means_and_not_the_other_way_round(made, tmp_path):
    means = exported(made, tmp_path / "blocks.csv", blocks=True)
    episodes = exported(made, tmp_path / "all.csv")
    path = tmp_path / "other.sqlite"
    with Store(path) as store:
        for table, new in ((means, 3 * RUNS), (episodes, 3 * RUNS), (means, 0), (episodes, 0)):
            assert import_runs(table, store) == (3 * RUNS, new)
    assert_same(arrays_of(path), arrays_of(made))


def test_means_that_do_not_make_the_stored_ones_stay_out(made, tmp_path):
    """Means of four episodes are more numbers than means of six, but do not make these."""
    tables = [tmp_path / f"{block}.csv" for block in (6, 4, 2)]
    with Store(made) as store:
        for table, block in zip(tables, (6, 4, 2), strict=True):
            export([read(store, replace(FIGURE, block=block))], table, blocks=True)
    with Store(tmp_path / "other.sqlite") as store:
        assert [import_runs(table, store)[1] for table in tables] == [3 * RUNS, 0, 3 * RUNS]
        assert set(store.entries(CURVES[0]).values()) == {6}


def test_a_failure_half_way_leaves_the_store_as_it_was(made, tmp_path):
    runs = read_runs(exported(made, tmp_path / "all.csv"))
    with Store(tmp_path / "other.sqlite") as store:
        with pytest.raises(StoreError):
            store.add_all([*runs[:-1], (runs[-1][0], runs[-1][1]._replace(seconds=None), {})])
        assert all(store.codes(curve) == {} for curve in CURVES)
        assert store.add_all(runs) == len(runs)


def test_a_table_serves_all_figures_that_it_was_exported_for(made, tmp_path):
    figures = [replace(FIGURE, block=block) for block in (4, 6)]
    with Store(made) as store:
        export([read(store, figure) for figure in figures], tmp_path / "blocks.csv", blocks=True)
    with Store(tmp_path / "other.sqlite") as store:
        import_runs(tmp_path / "blocks.csv", store)
        for figure in figures:
            assert len(read(store, figure).summaries) == len(CURVES)


def test_no_episode_is_left_out_where_blocks_do_not_divide_a_run(made, tmp_path):
    with Store(made) as store:
        result = read(store, replace(FIGURE, block=5))
    export([result], tmp_path / "blocks.csv", blocks=True)
    runs = read_runs(tmp_path / "blocks.csv")
    assert [len(arrays["length"]) for *_, arrays in runs] == [12] * (3 * RUNS)
