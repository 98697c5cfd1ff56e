"""What a person with a log of episodes tries first works, or is answered with what to do."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rblspi import BLSPI, LinearPolicy, Polynomial
from rblspi.data import Columns, DataError
from tests.support.command import run
from tests.support.logs import ACTIONS, episode_rows

ROWS = pd.DataFrame(episode_rows(60))
STATE = {"stock": 0.3, "weekday": "Mon"}
BASIS = Polynomial(1, low=-1, high=1)
pytestmark = pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")


def fit(path, *more):
    return run("fit", path, "--basis", "polynomial:1", "--set", "discount=0.8", "--quiet", *more)


def test_a_csv_file_of_episodes_without_next_states(tmp_path, capsys):
    ROWS.to_csv(tmp_path / "log.csv", index=False)
    assert fit(tmp_path / "log.csv", "--save", tmp_path / "run") == 0
    assert "magic bytes" not in capsys.readouterr().err
    assert LinearPolicy.load(tmp_path / "run" / "policy.npz").act(STATE) in ACTIONS


def test_actions_as_words_of_any_type_of_text(tmp_path):
    table = pa.Table.from_pandas(ROWS, preserve_index=False)
    place = table.column_names.index("action")
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        column = pa.chunked_array([pa.array(ROWS.action.tolist(), kind)])
        path = tmp_path / "log.parquet"
        pq.write_table(table.set_column(place, "action", column), path)
        assert BLSPI(BASIS, discount=0.8).fit(path).act(STATE) in ACTIONS


def test_an_estimator_takes_a_frame_and_saves_what_it_found(tmp_path):
    fitted = BLSPI(BASIS, discount=0.8).fit(ROWS)
    fitted.save(tmp_path / "policy.npz")
    assert LinearPolicy.load(tmp_path / "policy.npz").act(STATE) == fitted.act(STATE)


def test_done_is_understood_or_asked_about():
    frame = ROWS.drop(columns=["terminated", "truncated"])
    frame["done"] = ROWS.terminated | ROWS.truncated
    with pytest.raises(DataError, match=r"column done: it may mark terminal states.* ends="):
        BLSPI(BASIS).fit(frame)
    fitted = BLSPI(BASIS, discount=0.8, columns=Columns(ends="terminated")).fit(frame)
    assert fitted.act(STATE) in ACTIONS
