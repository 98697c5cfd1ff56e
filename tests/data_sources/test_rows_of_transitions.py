"""Rows of transitions: the same from a table and from Parquet files, which are read in parts."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rblspi.data import Columns, DataError, read_log
from rblspi.features import Polynomial, RBFGrid
from rblspi.offline import LSPI
from tests.support.chain import random_episodes
from tests.support.logs import arrays, as_columns, assert_same, joined, some_log, write_parquet

BASIS = Polynomial(2, low=-1, high=1)


@pytest.fixture(params=["a table of Arrow", "pandas", "Parquet"])
def form(request, tmp_path):
    """Columns in one of the forms of a log."""

    def of(columns):
        if request.param == "pandas":
            return pd.DataFrame(columns)
        table = pa.table(columns)
        if request.param == "Parquet":
            pq.write_table(table, tmp_path / "table.parquet")
        return tmp_path / "table.parquet" if request.param == "Parquet" else table

    return of


# What a table may look like --------------------------------------------------------------------


OWN_NAMES = Columns(
    state=("x", "y"), action="a", reward="r", next_state=("x_next", "y_next"), terminated="end"
)


def test_lists_and_single_columns_mean_the_same(form):
    log = some_log()
    parts = {
        f"{name}_{i}": column[:, i]
        for name, column in (("obs", log.observations), ("next_obs", log.next_observations))
        for i in range(2)
    }
    few = {"act": log.actions.astype(np.int8), "rew": log.rewards, "terminal": log.terminated * 1.0}
    own = dict(zip(("x", "y", "x_next", "y_next"), parts.values(), strict=True))
    own |= dict(zip(("a", "r", "end"), few.values(), strict=True))
    assert_same(joined(read_log(form(as_columns(log)))), log)
    assert_same(joined(read_log(form(parts | few))), log)
    assert_same(joined(read_log(form(own), OWN_NAMES)), log)


@pytest.mark.parametrize("name", ["truncated", "timeout"])
def test_tables_may_say_where_episodes_were_cut_short(form, name):
    log = replace(some_log(), truncated=np.arange(200) % 5 == 0)
    table = form(as_columns(log) | {name: log.truncated.astype(np.int8)})
    columns = Columns() if name == "truncated" else Columns(truncated=name)
    assert_same(joined(read_log(table, columns)), log)


def test_whole_numbers_stay_states(form):
    columns = {"state": [0, 1], "action": [0, 1], "reward": [0, 1], "next_state": [1, 2]}
    chunk = joined(read_log(form(columns | {"terminal": [0, 1]})))
    assert chunk.observations.dtype == np.int64
    assert chunk.observations.shape == (2,)
    assert chunk.rewards.dtype == np.float64


def test_columns_are_read_from_text():
    text = "state=x+y, action=a,reward=r,next_state=x_next+y_next,terminated=end"
    assert Columns.from_text(text) == OWN_NAMES
    with pytest.raises(ValueError, match="columns 'gamma=3' must say FIELD=NAME"):
        Columns.from_text("gamma=3")


def test_states_are_guessed_like_those_of_other_logs(form):
    columns = {"x": [1.0, 2.0], "next_x": [2.0, 3.0], "action": [0, 1], "reward": [0, 1]}
    log = read_log(form(columns | {"terminated": [False, True]}))
    np.testing.assert_array_equal(joined(log).next_observations.ravel(), [2.0, 3.0])


# What is wrong is named -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reward": [0.0, 0.0, np.nan]}, "row 2, column reward: (nan|None) must be a finite num"),
        ({"reward": [0.0, None, 0.0]}, "row 1, column reward: (nan|None) must be a finite number"),
        ({"action": [0, 3, 1]}, "row 1, column action: 3 is not an action: .* 0 to 2"),
        ({"action": [0, 1, -1]}, "row 2, column action: -1 is not an action"),
        ({"action": [0.0, 0.5, 1.0]}, r"row 1, column action: 0\.5 is not an action"),
        ({"action": np.array([0, 1, 2**63], np.uint64)}, "row 2, column action: .* is not an act"),
        ({"action": [0.0, 1.0, 1e300]}, "row 2, column action: .* is not an action"),
        ({"terminated": [0, 1, 2]}, "row 2, column terminated: 2 must be true or false"),
        ({"truncated": [0, 1, 3]}, "row 2, column truncated: 3 must be true or false"),
        ({"terminated": [True, None, False]}, "row 1, column terminated: None must be"),
        (
            {"state": [[0.0, 1.0], [0.0], [0.0, 0.0]]},
            r"row 1, column state: \[0\.0\] has another l",
        ),
        ({"state": [[0.0, 1.0], None, [0.0, 0.0]]}, "row 1, column state: None has another length"),
        (
            {"next_state": [[0.0, 1.0], [0.0, 1.0], [0.0, np.inf]]},
            r"row 2, column next_state: \[0\.0, inf\] must be finite",
        ),
        ({"reward": ["a", "b", "c"]}, "row 0, column reward: 'a' is not a number"),
        ({"state": [["a"], ["b"], ["c"]]}, "column state: List.* are no lists of numbers"),
    ],
)
def test_bad_rows_are_named_by_table_row_and_column(form, changed, message):
    with pytest.raises(DataError, match="table(.parquet)?, " + message):
        list(read_log(form(as_columns(some_log(3), **changed)), actions=3))


def test_objects_that_pandas_mixes_are_named_too():
    table = pd.DataFrame(as_columns(some_log(3), reward=np.array([0.0, "x", 1.0], object)))
    with pytest.raises(DataError, match="table, row 1, column reward: 'x' is a word"):
        read_log(table)


def test_columns_that_are_missing_or_twice_or_do_not_match_are_named(form):
    columns = as_columns(some_log(3))
    for name, other in (("reward", Columns()), ("cut", Columns(truncated="cut"))):
        some = form({key: values for key, values in columns.items() if key != name})
        with pytest.raises(DataError, match=f"has no column '{name}' for the .*, only state"):
            read_log(some, other)
    with pytest.raises(DataError, match=r"the state has 2 columns .* but the next state 1"):
        read_log(form(columns | {"x": [0.0] * 3}), Columns(("reward", "x"), next_state="reward"))
    frame = pd.DataFrame(columns)
    table = pa.table(columns)
    for twice in (
        table.append_column("reward", table["reward"]),
        pd.concat([frame, frame[["reward"]]], axis=1),
    ):
        with pytest.raises(DataError, match="table has several columns called 'reward'"):
            read_log(twice)


def test_other_things_are_not_tables():
    with pytest.raises(TypeError, match="is neither a file nor a table"):
        read_log([1, 2])


def test_bad_rows_are_left_out_and_counted(form):
    state = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0], [0.0, np.nan], [1.0, 1.0]]
    bad = as_columns(some_log(5), state=state, reward=[0.0, None, 0.0, 0.0, 1.0])
    data = read_log(form(bad), skip_bad=True)
    for _ in range(2):  # every pass counts anew
        (chunk,) = data
        np.testing.assert_array_equal(chunk.observations, [[0.0, 0.0], [1.0, 1.0]])
        assert data.bad.count == 3
        assert data.bad.by_column == {"state": 2, "reward": 1}
        assert "3 bad rows left out (state 2, reward 1); the first: " in str(data.bad)


def test_a_log_of_nothing_but_bad_rows(tmp_path):
    table = pa.table(as_columns(some_log(3), reward=[None, None, None]))
    with pytest.raises(DataError, match=r"no transitions: 3 bad rows left out \(reward 3\)"):
        read_log(table, skip_bad=True)
    pq.write_table(table, tmp_path / "log.parquet")
    data = read_log(tmp_path / "log.parquet", skip_bad=True)
    for basis in (Polynomial(2), BASIS):
        with pytest.raises(ValueError, match=r"no chunks: .*3 bad rows left out \(reward 3\)"):
            LSPI(basis, 3).fit(data)


def test_a_skipped_row_interrupts_its_episode(tmp_path):
    (log,) = random_episodes(1, 30, seed=0)
    vectors = [np.stack([c, np.arange(30) + i], 1) for i, c in enumerate(arrays(log, 4)[::3])]
    log = replace(log, observations=vectors[0], next_observations=vectors[1])
    log.rewards[10] = np.nan
    read = joined(read_log(write_parquet(tmp_path / "log.parquet", log), skip_bad=True))
    assert read.size == 29
    np.testing.assert_array_equal(np.flatnonzero(read.truncated), [9, 28])


# Parquet files ----------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path):
    log = replace(some_log(), truncated=np.arange(200) % 7 == 0)
    data = read_log(write_parquet(tmp_path / "log.parquet", log, 3, {"environment": "Some-v0"}))
    assert data.size == 200
    assert data.facts.metadata == {"environment": "Some-v0"}
    assert len(data.partitions()) == 3
    for _ in range(2):
        assert_same(joined(data), log)
    assert_same(joined(chunk for partition in data.partitions() for chunk in partition), log)


def test_a_file_need_not_say_where_episodes_were_cut_short(tmp_path):
    (log,) = random_episodes(1, 60, seed=0)
    whole = replace(log, truncated=np.zeros(log.size, bool)).with_inferred_truncation()
    cut = whole.select(np.delete(np.arange(log.size), [20, 40])).with_inferred_truncation()
    assert cut.truncated[[19, 38]].any()
    pq.write_table(pa.table(as_columns(cut)), tmp_path / "log.parquet", row_group_size=25)
    chunks = list(read_log(tmp_path))
    assert [chunk.size for chunk in chunks] == [25, 25, 8]
    starts = [chunk.starts(before) for before, chunk in pairwise([None, *chunks])]
    np.testing.assert_array_equal(np.concatenate(starts), cut.starts())


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
def test_fits_are_those_of_arrays(tmp_path):
    log = some_log(2000)
    data = read_log(write_parquet(tmp_path / "log.parquet", log, 4), actions=3)
    for basis in (BASIS, RBFGrid(3)):  # of which the latter needs the range of the data
        whole, read = (LSPI(basis, 3, discount=0.5).fit(given) for given in (log, data))
        assert read.n_iter_ == whole.n_iter_
        np.testing.assert_allclose(read.weights_, whole.weights_, rtol=1e-10)
        np.testing.assert_array_equal(read.features_.parameters, whole.features_.parameters)


def test_memory_is_that_of_a_chunk(tmp_path):
    path = write_parquet(tmp_path / "log.parquet", some_log(400_000), 8)
    LSPI(BASIS, 3, discount=0.5, tolerance=1e9).fit(some_log(100))  # compiles
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        LSPI(BASIS, 3, discount=0.5, tolerance=1e9).fit(read_log(path))
        peak = tracemalloc.get_traced_memory()[1] + max(pool.max_memory() - before, 0)
    finally:
        tracemalloc.stop()
    assert peak < 400_000 * 49  # what all rows would take


def test_files_of_a_folder_follow_one_another_by_name(tmp_path):
    log = some_log()
    (tmp_path / "b").mkdir()
    write_parquet(tmp_path / "b" / "log.parquet", log.rows(50, 200), 2)
    write_parquet(tmp_path / "a.parquet", log.rows(0, 50))
    assert_same(joined(read_log(tmp_path)), log)
    assert_same(joined(read_log([tmp_path / "a.parquet", str(tmp_path / "b")])), log)
    log.rewards[57] = np.nan
    write_parquet(tmp_path / "b" / "log.parquet", log.rows(50, 200), 2)
    with pytest.raises(DataError, match=r"b/log\.parquet, row 7, column reward: nan must be"):
        LSPI(BASIS, 3, discount=0.5).fit(read_log(tmp_path))
    data = read_log(tmp_path, skip_bad=True)
    assert LSPI(BASIS, 3, discount=0.5).fit(data).statistics_.count.sum() == 199
    assert data.bad.count == 1


def test_lists_in_other_row_groups_have_to_have_the_same_length(tmp_path):
    good, other = (pa.table(as_columns(some_log(3), **c)) for c in ({}, {"state": [[0.0]] * 3}))
    with pq.ParquetWriter(tmp_path / "log.parquet", good.schema) as writer:
        writer.write_table(good)
        writer.write_table(other)
    with pytest.raises(DataError, match=r"row 3, column state: \[0\.0\] has another length than 2"):
        list(read_log(tmp_path / "log.parquet"))


def test_files_with_other_columns_are_named(tmp_path):
    log = replace(some_log(5), truncated=np.ones(5, bool))
    frame = pl.read_parquet(write_parquet(tmp_path / "a.parquet", log))
    wrong = {
        r"b\.parquet has no column": pl.DataFrame({"state_0": [1.0]}),
        r"b\.parquet has a column 'state_2' for the state, unlike .*a\.parquet": frame.with_columns(
            state_2="state_0"
        ),
        r"b\.parquet, row 0, column reward: 'a' is a word, but other": frame.with_columns(
            reward=pl.Series([*"abcde"])
        ),
    }
    for message, other in wrong.items():
        other.write_parquet(tmp_path / "b.parquet")
        with pytest.raises(DataError, match=message):
            read_log(tmp_path)
    frame.with_columns(reward=pl.Series(range(5), dtype=pl.Int8)).write_parquet(
        tmp_path / "b.parquet"
    )
    assert joined(read_log(tmp_path)).rewards[5:].tolist() == [0, 1, 2, 3, 4]
    frame.drop("truncated").write_parquet(tmp_path / "b.parquet")  # which is then inferred
    assert joined(read_log(tmp_path)).size == 10
    with pytest.raises(DataError, match=r"b\.parquet has no column 'truncated'"):
        read_log(tmp_path, Columns(truncated="truncated"))


def test_files_that_are_no_parquet_are_named(tmp_path):
    with pytest.raises(DataError, match="there is no file or folder"):
        read_log(tmp_path / "nothing.parquet")
    with pytest.raises(DataError, match=r"there is no \.parquet, .* file"):
        read_log(tmp_path)
    (tmp_path / "a.parquet").write_text("state,action")
    with pytest.raises(DataError, match=r"a\.parquet is not a Parquet file"):
        read_log(tmp_path)
    pq.write_table(pa.table(as_columns(some_log(1))).slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="there are no rows"):
        read_log(tmp_path)
    (tmp_path / "b.parquet").symlink_to(write_parquet(tmp_path / "a.parquet", some_log(5)))
    assert read_log(tmp_path).size == 10
    (tmp_path / "c.parquet").symlink_to(tmp_path / "nothing")
    (tmp_path / "d.parquet").symlink_to(tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"links lead nowhere: .*c\.parquet, .*d\.parquet; repair"):
        read_log(tmp_path)


def test_a_flipped_bit_of_a_page_is_noticed_or_changes_nothing(tmp_path):
    log = some_log()
    path = write_parquet(tmp_path / "log.parquet", log)
    whole, noticed = path.read_bytes(), 0
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    size = column.total_compressed_size
    for place in range(column.data_page_offset, column.data_page_offset + size, 13):
        content = bytearray(whole)
        content[place] ^= 4
        path.write_bytes(content)
        try:
            assert_same(joined(read_log(path)), log)
        except DataError:
            noticed += 1
    assert noticed > size / 13 / 2  # all but the statistics in the header of the page
