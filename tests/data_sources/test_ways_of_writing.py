"""Logs as spreadsheets, other programs and other countries write them."""

import gc

import numpy as np
import pandas as pd
import pytest

from rblspi import FQI, Polynomial
from rblspi.data import Columns, DataError, read_log
from rblspi.data.transitions import concatenated

COLUMNS = Columns(ends="truncated")
HEAD = "episode,time,x,action,reward\n"
BODY = "1,0,0.5,go left,1\n1,1,0.6,stay,0\n1,2,0.7,go left,2\n2,0,0.1,stay,1\n2,1,0.2,stay,1\n"
FRAME = pd.DataFrame(
    {
        "episode": [1, 1, 1, 2, 2],
        "time": [0, 1, 2, 0, 1],
        "x": [0.5, 0.6, 0.7, 0.1, 0.2],
        "action": ["go left", "stay", "go left", "stay", "stay"],
        "reward": [1, 0, 2, 1, 1],
    }
)


def assert_read(log):
    found = concatenated(list(log))
    assert log.action_names == ("go left", "stay")
    np.testing.assert_array_equal(found.observations.ravel(), [0.5, 0.6, 0.1])
    np.testing.assert_array_equal(found.actions, [0, 1, 1])
    np.testing.assert_array_equal(found.rewards, [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEAD + BODY,
        (HEAD + BODY).replace(",", ";"),
        (HEAD + BODY).replace(",", "\t"),
        (HEAD + BODY).replace("\n", "\r\n"),
        (HEAD + BODY).replace(",", ", "),
        HEAD.upper() + BODY,
        (HEAD + BODY).replace("go left", '"go left"'),
        HEAD.strip() + ",,\n" + BODY.replace("\n", ",,\n"),
        HEAD + BODY.replace("1,2,0.7", "1.0,2,0.7"),
    ],
    ids=["bom", "semicolons", "tabs", "crlf", "spaces", "capitals", "quotes", "trailing", "1.0"],
)
def test_ways_of_writing_csv(text, tmp_path):
    (tmp_path / "log.csv").write_bytes(text.encode())
    assert_read(read_log(tmp_path / "log.csv", COLUMNS))


def test_episodes_are_the_same_in_files_of_whole_numbers_and_of_others(tmp_path):
    FRAME[:2].to_csv(tmp_path / "a.csv", index=False)
    FRAME[2:].astype({"episode": float}).to_csv(tmp_path / "b.csv", index=False)
    assert "1.0," in (tmp_path / "b.csv").read_text()
    assert_read(read_log([tmp_path / "a.csv", tmp_path / "b.csv"], COLUMNS))


def test_a_line_break_in_quotes_is_part_of_a_word(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEAD + BODY.replace("go left", '"go\nleft, ""now"""'))
    assert read_log(path, COLUMNS).action_names == ('go\nleft, "now"', "stay")


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_objects_is_read_like_lines(indent, tmp_path):
    path = tmp_path / "log.json"
    FRAME.to_json(path, orient="records", indent=indent)
    assert_read(read_log(path, COLUMNS))
    path.write_text("[1, 2]")
    with pytest.raises(DataError, match="row 0: a int, not an object"):
        read_log(path, COLUMNS)
    path.write_text('[{"x": 1},')
    with pytest.raises(DataError, match=r"log\.json: no JSON"):
        read_log(path, COLUMNS)


def test_objects_in_objects_are_columns(tmp_path):
    nested = FRAME.assign(state=[{"x": x, "day": "Mon"} for x in FRAME["x"]]).drop(columns="x")
    path = tmp_path / "log.jsonl.gz"
    nested.to_json(path, orient="records", lines=True)
    logs = read_log(path, COLUMNS), read_log(nested, COLUMNS)
    for log in logs:
        assert log.roles.names("state") == ("state.x", "state.day")
        np.testing.assert_array_equal(
            concatenated(list(log)).observations, [[0.5, 1], [0.6, 1], [0.1, 1]]
        )


@pytest.mark.parametrize("written", ["0,5", "1.000,5", "1 000", "50%", "$3", "3 €", "-€1,5"])
def test_numbers_that_are_written_otherwise_are_no_words(written, tmp_path):
    frame = FRAME.assign(x=[written, written, "7,1", "8,2", written])
    with pytest.raises(DataError, match=r"column x: '.*' looks like a number: write it with a"):
        read_log(frame, COLUMNS)
    named = read_log(frame, Columns(ends="truncated", categorical="x"))
    assert len(named.encoding.inputs[0].words) == 3
    sizes = FRAME.assign(x=["size 1", "size 2", "10 to 20", "size 1", "7,1"])
    assert read_log(sizes, COLUMNS).encoding.inputs[0].words


@pytest.mark.parametrize(
    ("times", "per", "expected"),
    [
        (["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"], "1h", 1.0),
        (["2026-03-29 01:30", "2026-03-29 03:30"], "1h", 2.0),
        (["2026-03-29", "2026-04-02"], "1 day", 4.0),
        (["2026-03-29 10:00:00.123456789", "2026-03-29 10:00:00.123466789"], "1us", 10.0),
        (["2026-03-29T10:00:00Z", "2026-03-29T10:00:00.000001Z"], "1us", 1.0),
    ],
)
def test_dates_and_time_zones(times, per, expected, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEAD + "".join(f"1,{t},{i},a,1\n" for i, t in enumerate(times)))
    (found,) = read_log(path, Columns(ends="truncated", discount_per=per))
    assert found.elapsed == expected


def test_time_zones_in_some_rows_are_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEAD + "1,2026-03-29T01:30:00Z,0,a,1\n1,2026-03-29T02:30:00,0,a,1\n")
    with pytest.raises(DataError, match=r"row 0, column time: .* with a time zone in all rows or"):
        read_log(path, COLUMNS)


@pytest.mark.parametrize("name", ["log.xlsx", "log.csv.zip", "log"])
def test_archives_and_workbooks_are_named(name, tmp_path):
    (tmp_path / name).write_bytes(b"PK\x03\x04\x14\x00")
    with pytest.raises(DataError, match="is a ZIP archive or a file of Excel"):
        read_log(tmp_path / name, COLUMNS)


def test_a_comment_is_no_line_of_names(tmp_path):
    (tmp_path / "log.csv").write_text("# made by hand\n" + HEAD + BODY)
    with pytest.raises(DataError, match="the first line, '# made by hand', has to be the names"):
        read_log(tmp_path / "log.csv", COLUMNS)


def test_states_of_transitions_in_parquet_files_are_guessed_like_others(tmp_path):
    table = pd.DataFrame(
        {"x": [1.0, 2.0], "next_x": [2.0, 3.0], "action": [0, 1], "reward": [0, 1]}
    )
    table = table.assign(terminated=[False, True])
    table.to_parquet(tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    np.testing.assert_array_equal(next(iter(log)).next_observations.ravel(), [2.0, 3.0])


def test_a_log_on_disk_lasts_as_long_as_somebody_reads_it():
    chunks = iter(read_log(FRAME, COLUMNS, memory=1))
    gc.collect()
    assert sum(chunk.size for chunk in chunks) == 3
    model = FQI(Polynomial(1), discount=0.5).fit(read_log(FRAME, COLUMNS, memory=1))
    assert model.act({"x": 0.5}) in ("go left", "stay")


@pytest.mark.parametrize("index", ["time", ["episode", "time"]])
def test_times_and_episodes_may_be_the_index_of_a_frame(index):
    assert_read(read_log(FRAME.set_index(index), COLUMNS))
    reordered = FRAME.iloc[::-1].set_index(index)
    assert concatenated(list(read_log(reordered, COLUMNS))).size == 3
