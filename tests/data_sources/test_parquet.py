import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rblspi.data import Columns, DataError, ParquetWriter, read_log
from rblspi.features import Polynomial, RBFGrid
from rblspi.offline import BLSPI, LSPI
from tests.support.chain import random_episodes
from tests.support.logs import arrays, as_columns, assert_same, joined, some_log

BASIS = Polynomial(2, low=-1, high=1)


def write(path, log, chunks=1, metadata=None):
    with ParquetWriter(path, metadata) as writer:
        for rows in np.array_split(np.arange(log.size), chunks):
            writer.write(log.rows(rows[0], rows[-1] + 1))
    return path


def test_what_is_written_is_read(tmp_path):
    log = some_log()
    path = write(tmp_path / "log.parquet", log, 3, {"environment": "Some-v0"})
    data = read_log(path)
    assert data.size == 200
    assert data.facts.metadata == {"environment": "Some-v0"}
    assert len(data.partitions()) == 3
    assert_same(joined(data), log)
    assert_same(joined(data), log)
    assert_same(joined(chunk for partition in data.partitions() for chunk in partition), log)


def test_where_episodes_were_cut_short_is_written_and_read(tmp_path):
    log = replace(some_log(), truncated=np.arange(200) % 7 == 0)
    path = write(tmp_path / "log.parquet", log, 3)
    assert "truncated" in pq.read_schema(path).names
    assert_same(joined(read_log(path)), log)


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


def test_files_with_and_without_that_column_can_be_mixed(tmp_path):
    log = some_log(20)
    path = write(tmp_path / "a.parquet", replace(log, truncated=np.ones(20, bool)))
    pq.write_table(pq.read_table(path).drop_columns("truncated"), tmp_path / "b.parquet")
    assert_same(joined(read_log(tmp_path)), joined([log, log]))
    with pytest.raises(DataError, match=r"b\.parquet has no column 'truncated'"):
        list(read_log(tmp_path, Columns(truncated="truncated")))


def test_a_skipped_row_interrupts_its_episode(tmp_path):
    (log,) = random_episodes(1, 30, seed=0)
    vectors = [np.stack([c, np.arange(30) + i], 1) for i, c in enumerate(arrays(log, 4)[::3])]
    log = replace(log, observations=vectors[0], next_observations=vectors[1])
    log.rewards[10] = np.nan
    data = read_log(write(tmp_path / "log.parquet", log), skip_bad=True)
    read = joined(data)
    assert read.size == 29
    np.testing.assert_array_equal(np.flatnonzero(read.truncated), [9, 28])


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    log = some_log()
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "log.parquet", log.rows(50, 200), 2)
    write(tmp_path / "a.parquet", log.rows(0, 50))
    assert_same(joined(read_log(tmp_path)), log)
    files = [tmp_path / "a.parquet", str(tmp_path / "b")]
    assert_same(joined(read_log(files)), log)


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [(LSPI, {}), (BLSPI, {"prior_precision": 0.01, "noise_precision": 1})],
)
def test_fits_are_those_of_arrays(tmp_path, estimator, settings):
    log = some_log(2000)
    data = read_log(write(tmp_path / "log.parquet", log, 4), actions=3)
    whole = estimator(BASIS, 3, discount=0.5, **settings).fit(log)
    read = estimator(BASIS, 3, discount=0.5, **settings).fit(data)
    assert read.n_iter_ == whole.n_iter_
    np.testing.assert_allclose(read.weights_, whole.weights_, rtol=1e-10)
    np.testing.assert_array_equal(read.act(log.observations), whole.act(log.observations))


def test_the_range_of_the_data_is_found(tmp_path):
    log = some_log(500)
    data = read_log(write(tmp_path / "log.parquet", log, 4))
    whole = LSPI(RBFGrid(3), 3, discount=0.5).fit(log)
    read = LSPI(RBFGrid(3), 3, discount=0.5).fit(data)
    np.testing.assert_array_equal(read.features_.parameters, whole.features_.parameters)


def test_memory_is_that_of_a_chunk(tmp_path):
    log = some_log(400_000)
    path = write(tmp_path / "log.parquet", log, 8)
    del log
    data = read_log(path)
    LSPI(BASIS, 3, discount=0.5, tolerance=1e9).fit(some_log(100))  # compiles
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        LSPI(BASIS, 3, discount=0.5, tolerance=1e9).fit(data)
        peak = tracemalloc.get_traced_memory()[1] + max(pool.max_memory() - before, 0)
    finally:
        tracemalloc.stop()
    assert peak < 400_000 * 49  # what all rows would take


def test_bad_rows_are_named_by_file_and_row_in_it(tmp_path):
    log = some_log(10)
    write(tmp_path / "a.parquet", log)
    log.rewards[7] = np.nan
    write(tmp_path / "b.parquet", log, 2)
    with pytest.raises(DataError, match=r"b\.parquet, row 7, column reward: nan must be"):
        LSPI(BASIS, 3, discount=0.5).fit(read_log(tmp_path))
    data = read_log(tmp_path, skip_bad=True)
    fitted = LSPI(BASIS, 3, discount=0.5).fit(data)
    assert data.bad.count == 1
    assert fitted.statistics_.count.sum() == 19


def test_lists_in_other_row_groups_have_to_have_the_same_length(tmp_path):
    path = tmp_path / "log.parquet"
    good = as_columns(some_log(3))
    other = as_columns(some_log(3), state=[[0.0]] * 3)
    with pq.ParquetWriter(path, pa.table(good).schema) as writer:
        writer.write_table(pa.table(good))
        writer.write_table(pa.table(other))
    with pytest.raises(DataError, match=r"row 3, column state: \[0\.0\] has another length than 2"):
        LSPI(BASIS, 3, discount=0.5).fit(read_log(path))


def test_files_have_to_have_the_same_columns(tmp_path):
    write(tmp_path / "a.parquet", some_log(5))
    pq.write_table(pa.table({"state_0": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet has no column"):
        list(read_log(tmp_path))


def test_a_later_file_with_more_or_other_columns_is_named(tmp_path):
    table = pq.read_table(write(tmp_path / "a.parquet", some_log(5)))
    one_more = table.append_column("state_2", table["state_0"])
    pq.write_table(one_more, tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet has a column 'state_2' for .*a\.parquet"):
        read_log(tmp_path)
    as_text = table.set_column(3, "reward", pa.array(list("abcde")))
    pq.write_table(as_text, tmp_path / "b.parquet")
    message = r"b\.parquet, row 0, column reward: 'a' is a word, but other values are numbers"
    with pytest.raises(DataError, match=message):
        read_log(tmp_path)
    whole = table.set_column(3, "reward", pa.array(range(5), pa.int8()))
    pq.write_table(whole, tmp_path / "b.parquet")
    assert joined(read_log(tmp_path)).rewards[5:].tolist() == [0, 1, 2, 3, 4]


def test_columns_that_are_there_twice_are_named(tmp_path):
    table = pq.read_table(write(tmp_path / "a.parquet", some_log(5)))
    pq.write_table(table.append_column("reward", table["reward"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet has several columns called 'reward'"):
        read_log(tmp_path)


def test_links_that_lead_nowhere_are_named(tmp_path):
    write(tmp_path / "a.parquet", some_log(5))
    (tmp_path / "b.parquet").symlink_to(tmp_path / "a.parquet")
    assert read_log(tmp_path).size == 10
    (tmp_path / "c.parquet").symlink_to(tmp_path / "nothing")
    (tmp_path / "d.parquet").symlink_to(tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"links lead nowhere: .*c\.parquet, .*d\.parquet; repair"):
        read_log(tmp_path)


def test_what_is_no_parquet_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no file or folder"):
        read_log(tmp_path / "nothing.parquet")
    with pytest.raises(DataError, match=r"there is no \.parquet, .* file"):
        read_log(tmp_path)
    (tmp_path / "text.parquet").write_text("state,action")
    with pytest.raises(DataError, match=r"text\.parquet is not a Parquet file"):
        read_log(tmp_path)
    pq.write_table(pa.table(as_columns(some_log(1))).slice(0, 0), tmp_path / "text.parquet")
    with pytest.raises(DataError, match="there are no rows"):
        read_log(tmp_path)


def test_an_error_leaves_no_file(tmp_path):
    def interrupted():
        with ParquetWriter(tmp_path / "log.parquet") as writer:
            writer.write(some_log())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_bit_of_a_page_is_noticed_or_changes_nothing(tmp_path):
    log = some_log()
    path = write(tmp_path / "log.parquet", log)
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
