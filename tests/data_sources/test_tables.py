from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rblspi.data import Columns, DataError, read_log
from rblspi.features import Polynomial
from rblspi.offline import LSPI
from tests.support.logs import as_columns, assert_same, joined, some_log


def wide(log, first="x", second="y"):
    """One column for every number of a state."""
    return {
        first: log.observations[:, 0],
        second: log.observations[:, 1],
        "a": log.actions,
        "r": log.rewards,
        f"{first}_next": log.next_observations[:, 0],
        f"{second}_next": log.next_observations[:, 1],
        "end": log.terminated,
    }


OWN_NAMES = Columns(
    state=("x", "y"), action="a", reward="r", next_state=("x_next", "y_next"), terminated="end"
)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame])
def test_lists_and_single_columns_mean_the_same(make):
    log = some_log()
    assert_same(joined(read_log(make(as_columns(log)))), log)
    assert_same(joined(read_log(make(wide(log)), OWN_NAMES)), log)
    numbered = {
        **{f"observation_{i}": log.observations[:, i] for i in range(2)},
        **{f"next_observation_{i}": log.next_observations[:, i] for i in range(2)},
        "action": log.actions.astype(np.int8),
        "reward": log.rewards,
        "terminal": log.terminated.astype(float),
    }
    assert_same(joined(read_log(make(numbered))), log)


@pytest.mark.parametrize("name", ["truncated", "timeout"])
def test_tables_may_say_where_episodes_were_cut_short(name):
    log = replace(some_log(), truncated=np.arange(200) % 5 == 0)
    table = pa.table(as_columns(log) | {name: log.truncated.astype(np.int8)})
    columns = Columns() if name == "truncated" else Columns(truncated=name)
    assert_same(joined(read_log(table, columns)), log)


def test_faults_in_that_column_are_named():
    table = pa.table(as_columns(some_log(3)) | {"truncated": [0, 1, 3]})
    with pytest.raises(DataError, match="table, row 2, column truncated: 3 must be true or false"):
        list(read_log(table))
    with pytest.raises(DataError, match="table has no column 'cut' for the truncated flag, only"):
        list(read_log(table, Columns(truncated="cut")))


def test_states_and_next_states_need_the_same_length():
    table = pa.table(wide(some_log(3)))
    columns = Columns(("x", "y"), "a", "r", "x_next", "end")
    with pytest.raises(ValueError, match=r"the state has 2 columns .* but the next state 1"):
        list(read_log(table, columns))


def test_whole_numbers_stay_states():
    table = pa.table(
        {
            "state": [0, 1],
            "action": [0, 1],
            "reward": [0, 1],
            "next_state": [1, 2],
            "terminal": [0, 1],
        }
    )
    chunk = joined(read_log(table))
    assert chunk.observations.dtype == np.int64
    assert chunk.observations.shape == (2,)
    assert chunk.rewards.dtype == np.float64


def test_tables_are_read_again_and_again_by_estimators():
    log = some_log()
    basis = Polynomial(2, low=-1, high=1)
    whole = LSPI(basis, 3, discount=0.5).fit(log)
    table = LSPI(basis, 3, discount=0.5).fit(read_log(pd.DataFrame(as_columns(log)), actions=3))
    np.testing.assert_array_equal(table.weights_, whole.weights_)


def bad_table():
    """Five rows, of which the first and the last are good."""
    log = some_log(5)
    return as_columns(
        log,
        state=[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0], [0.0, np.nan], [1.0, 1.0]],
        reward=[0.0, None, 0.0, 0.0, 1.0],
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"reward": [0.0, 0.0, np.nan]},
            "table, row 2, column reward: nan must be a finite number",
        ),
        ({"reward": [0.0, None, 0.0]}, "table, row 1, column reward: None must be a finite number"),
        ({"action": [0, 3, 1]}, "table, row 1, column action: 3 is not an action: .* 0 to 2"),
        ({"action": [0, 1, -1]}, "table, row 2, column action: -1 is not an action"),
        ({"action": [0.0, 0.5, 1.0]}, r"table, row 1, column action: 0\.5 is not an action"),
        ({"terminated": [0, 1, 2]}, r"table, row 2, column terminated: 2 must be true or false"),
        ({"terminated": [True, None, False]}, "table, row 1, column terminated: None must be"),
        (
            {"state": [[0.0, 1.0], [0.0], [0.0, 0.0]]},
            r"table, row 1, column state: \[0\.0\] has another length than 2",
        ),
        ({"state": [[0.0, 1.0], None, [0.0, 0.0]]}, "table, row 1, column state: None has another"),
        (
            {"next_state": [[0.0, 1.0], [0.0, 1.0], [0.0, np.inf]]},
            r"table, row 2, column next_state: \[0\.0, inf\] must be finite",
        ),
        ({"reward": ["a", "b", "c"]}, "table, row 0, column reward: 'a' is not a number"),
        ({"state": [["a"], ["b"], ["c"]]}, "table, column state: List.* are no lists of"),
    ],
)
def test_bad_rows_are_named_by_table_row_and_column(changed, message):
    columns = as_columns(some_log(3), **changed)
    with pytest.raises(DataError, match=message):
        list(read_log(pa.table(columns), actions=3))


def test_objects_that_pandas_mixes_are_named_too():
    table = pd.DataFrame(as_columns(some_log(3), reward=np.array([0.0, "x", 1.0], object)))
    with pytest.raises(DataError, match="table, row 1, column reward: 'x' is a word"):
        list(read_log(table))


def test_a_missing_column_is_named():
    columns = as_columns(some_log(3))
    del columns["reward"]
    with pytest.raises(DataError, match="table has no column 'reward' for the reward, only state"):
        list(read_log(pa.table(columns)))
    with pytest.raises(DataError, match="table has no column 'z' for the state"):
        list(read_log(pa.table(as_columns(some_log(3))), Columns(state=("z",))))


def test_bad_rows_are_left_out_and_counted():
    data = read_log(pa.table(bad_table()), skip_bad=True)
    for _ in range(2):  # every pass counts anew
        (chunk,) = data
        np.testing.assert_array_equal(chunk.observations, [[0.0, 0.0], [1.0, 1.0]])
        assert data.bad.count == 3
        assert data.bad.by_column == {"state": 2, "reward": 1}
        assert "3 bad rows left out (state 2, reward 1); the first: table, row 2" in str(data.bad)


def test_a_table_of_nothing_but_bad_rows_has_no_chunks(tmp_path):
    columns = as_columns(some_log(3), reward=[None, None, None])
    with pytest.raises(DataError, match=r"no transitions: 3 bad rows left out \(reward 3\)"):
        read_log(pa.table(columns), skip_bad=True)
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")  # which are read in every pass
    data = read_log(tmp_path / "log.parquet", skip_bad=True)
    assert list(data) == []
    for basis in (Polynomial(2), Polynomial(2, low=-1, high=1)):
        with pytest.raises(ValueError, match=r"no chunks: .*3 bad rows left out \(reward 3\)"):
            LSPI(basis, 3).fit(data)


def test_columns_that_are_there_twice_are_named():
    table = pa.table(as_columns(some_log(3)))
    frame = pd.DataFrame(as_columns(some_log(3)))
    for twice in (
        table.append_column("reward", table["reward"]),
        pd.concat([frame, frame[["reward"]]], axis=1),
    ):
        with pytest.raises(DataError, match="table has several columns called 'reward'"):
            read_log(twice)
    with pytest.raises(DataError, match="table has several columns called '1'"):
        read_log(frame.assign(**{"1": 0}).assign(x=0).rename(columns={"x": 1}))


def test_actions_beyond_64_bits_are_bad():
    for actions in (np.array([0, 1, 2**63], np.uint64), [0.0, 1.0, 1e300]):
        table = pa.table(as_columns(some_log(3), action=actions))
        with pytest.raises(DataError, match=r"table, row 2, column action: .* is not an action"):
            list(read_log(table))


def test_columns_are_read_from_text():
    text = "state=x+y, action=a,reward=r,next_state=x_next+y_next,terminated=end"
    assert Columns.from_text(text) == OWN_NAMES
    with pytest.raises(ValueError, match="columns 'gamma=3' must say FIELD=NAME"):
        Columns.from_text("gamma=3")


def test_other_things_are_not_tables():
    with pytest.raises(TypeError, match="is neither a file nor a table"):
        read_log([1, 2])
