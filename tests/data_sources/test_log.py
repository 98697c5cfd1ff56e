"""A log gives the same transitions whichever way it is written down."""

import bz2
import csv
import gc
import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rblspi.data import Columns, DataError, read_log
from rblspi.features import Polynomial
from rblspi.offline import BLSPI, LSPI
from tests.support.logs import (
    ACTIONS,
    WORDS,
    assert_same,
    episode_rows,
    joined,
    some_log,
    transitions_of_rows,
)

ROWS = episode_rows()
EXPECTED = transitions_of_rows(ROWS)
BASIS = Polynomial(1, low=-1, high=1)


def csv_text(rows, delimiter=","):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def write_csv(path, rows):
    path.write_text(csv_text(rows))
    return path


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_parquet(path, rows):
    pl.DataFrame(rows).write_parquet(path)
    return path


def write_arrow(path, rows):
    pl.DataFrame(rows).write_ipc(path)
    return path


def split(folder, rows, pieces, write=write_csv, ending="csv"):
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(rows)), pieces)):
        if len(part):
            write(folder / f"{i:03}.{ending}", [rows[j] for j in part])
    return folder


class OfAnotherPackage:
    """A table that only has what Polars and DuckDB have: Arrow's C stream."""

    def __init__(self, rows):
        self.table = pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def with_views(table):
    views = pa.array([row["weekday"] for row in ROWS], pa.string_view())
    words = pa.array([row["action"] for row in ROWS]).dictionary_encode()
    names = words.dictionary.cast(pa.string_view())
    table = table.set_column(3, "weekday", views)
    return table.set_column(4, "action", pa.DictionaryArray.from_arrays(words.indices, names))


TEXT = csv_text(ROWS)
HEAD, _, BODY = TEXT.partition("\n")
FRAME = pd.DataFrame(ROWS)
#: the names of files, and what is in them
FILES = {
    "CSV": ("log.csv", TEXT),
    "CSV, compressed": ("log.csv.gz", gzip.compress(TEXT.encode())),
    "CSV, compressed otherwise": ("log.csv.bz2", bz2.compress(TEXT.encode())),
    "CSV with semicolons": ("log.csv", csv_text(ROWS, ";")),
    "CSV with spaces": ("log.csv", TEXT.replace(",", ", ")),
    "CSV with capitals": ("log.csv", f"{HEAD.upper()}\n{BODY}"),
    "CSV with quotes": ("log.csv", TEXT.replace("Mon", '"Mon"')),
    "CSV with other ends of lines": ("log.csv", TEXT.replace("\n", "\r\n")),
    "CSV with empty lines": ("log.csv", TEXT.replace("\n", "\n\n")),
    "CSV with empty columns": ("log.csv", TEXT.replace("\n", ",,\n")),
    "CSV with a mark of the byte order": ("log.csv", TEXT.encode("utf-8-sig")),
    "CSV in UTF-16": ("log.csv", TEXT.encode("utf-16")),
    "TSV": ("log.tsv", csv_text(ROWS, "\t")),
    "a file with no ending": ("log", TEXT),
    "JSON Lines": ("log.jsonl", "\n".join(map(json.dumps, ROWS))),
    "a list of JSON": ("log.json", json.dumps(ROWS, indent=1)),
    "times as dates in text": (
        "log.csv",
        csv_text([row | {"time": f"2026-01-31 1{row['time']}:00:00"} for row in ROWS]),
    ),
}
OTHERS = {
    "Parquet": lambda d: write_parquet(d / "log.parquet", ROWS),
    "Arrow": lambda d: write_arrow(d / "log.arrow", ROWS),
    "100 files of CSV": lambda d: split(d / "log", ROWS, 100),
    "7 Parquet files": lambda d: split(d / "log", ROWS, 7, write_parquet, "parquet"),
    "rows in another order": lambda _: pd.DataFrame(
        [row for part in (1, 0) for row in ROWS[part::2]]
    ),
    "pandas": lambda _: FRAME,
    "pandas with an index": lambda _: FRAME.set_index(["episode", "time"]),
    "pandas, categorical": lambda _: FRAME.astype({"action": "category"}),
    "Polars": lambda _: pl.DataFrame(ROWS),
    "Polars, lazy": lambda _: pl.LazyFrame(ROWS),
    "a dictionary": lambda _: FRAME.to_dict("list"),
    "a table of Arrow": lambda _: pa.Table.from_pylist(ROWS),
    "text as Polars has it": lambda _: with_views(pa.Table.from_pylist(ROWS)),
    "another package": lambda _: OfAnotherPackage(ROWS),
    "flags as words": lambda _: FRAME.astype({"terminated": object, "truncated": str}),
    "times as dates": lambda _: FRAME.assign(
        time=lambda f: pd.Timestamp("2026-01-31") + pd.to_timedelta(f.time, "h")
    ),
}


def written(form, folder):
    """The log in one of the forms."""
    if form in OTHERS:
        return OTHERS[form](folder)
    name, content = FILES[form]
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


def of_episodes(transitions):
    """The transitions of each episode, sorted, because episodes may come in any order."""
    ends = np.flatnonzero(transitions.terminated | transitions.truncated) + 1
    parts = np.split(np.arange(transitions.size), ends[:-1])
    firsts = transitions.observations[[part[0] for part in parts], 0]
    return transitions.select(np.concatenate([parts[i] for i in np.argsort(firsts)]))


@pytest.mark.parametrize("form", [*FILES, *OTHERS])
def test_every_form_of_a_log_gives_the_same_transitions(form, tmp_path):
    log = read_log(written(form, tmp_path))
    assert log.action_names == ACTIONS
    assert log.size == EXPECTED.size
    assert log.facts.left_out == len(ROWS) - EXPECTED.size
    if form == "rows in another order":
        assert_same(of_episodes(joined(log)), of_episodes(EXPECTED))
    else:
        assert_same(joined(log), EXPECTED)


def test_names_of_episodes_may_have_a_point_in_some_files(tmp_path):
    frame = FRAME.assign(episode=FRAME["episode"].str[1:].astype(int))
    half = len(frame) // 2  # within an episode
    frame[:half].to_csv(tmp_path / "a.csv", index=False)
    frame[half:].astype({"episode": float}).to_csv(tmp_path / "b.csv", index=False)
    assert "1.0," in (tmp_path / "b.csv").read_text()
    assert_same(joined(read_log([tmp_path / "a.csv", tmp_path / "b.csv"])), EXPECTED)


def test_a_line_break_in_quotes_is_part_of_a_word(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TEXT.replace("large", '"go\nleft, ""now"""'))
    assert read_log(path).action_names == ('go\nleft, "now"', "none", "small")


def test_objects_in_objects_are_columns(tmp_path):
    states = FRAME[["stock", "weekday"]].to_dict("records")
    nested = FRAME.assign(state=states).drop(columns=["stock", "weekday"])
    path = tmp_path / "log.jsonl.gz"
    lines = map(json.dumps, nested.to_dict("records"))
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    for log in (read_log(path), read_log(nested)):
        assert log.roles.names("state") == ("state.stock", "state.weekday")
        assert_same(joined(log), EXPECTED)


def test_a_log_on_disk_lasts_as_long_as_somebody_reads_it():
    chunks = iter(read_log(FRAME, memory=1))
    gc.collect()
    assert sum(chunk.size for chunk in chunks) == EXPECTED.size
    fitted = LSPI(BASIS, discount=0.5).fit(read_log(FRAME, memory=1))
    assert fitted.act({"stock": 0.5, "weekday": "Mon"}) in ACTIONS


def test_weights_are_the_same_to_the_last_bit(tmp_path):
    rows = episode_rows(300)
    forms = [
        pd.DataFrame(rows),
        write_csv(tmp_path / "log.csv", rows),
        write_lines(tmp_path / "log.jsonl", rows),
        write_parquet(tmp_path / "log.parquet", rows),
        split(tmp_path / "many", rows, 100),
    ]
    fits = [LSPI(BASIS, discount=0.8).fit(form).weights_ for form in forms]
    fits.append(LSPI(BASIS, discount=0.8).fit(read_log(forms[1], memory=1)).weights_)
    for weights in fits[1:]:
        np.testing.assert_array_equal(weights, fits[0])


def test_larger_than_the_memory_and_out_of_order(tmp_path):
    rows = episode_rows(200, seed=3)
    path = write_csv(tmp_path / "log.csv", rows)
    rows.sort(key=lambda row: row["time"])  # every episode all over the file
    mixed = write_csv(tmp_path / "mixed.csv", rows)
    # Few bytes of memory: rows are sorted in parts, and transitions are read from a file.
    small, large = (read_log(mixed, memory=memory) for memory in (5000, 2**30))
    assert_same(joined(small), joined(large))
    assert_same(joined(small), joined(read_log(path)))
    assert sum(part.size for part in small.partitions()) == small.size


def test_columns_of_next_states_may_be_there_too(tmp_path):
    log = some_log(50)
    table = pd.DataFrame(
        {
            "x": log.observations[:, 0],
            "y": log.observations[:, 1],
            "next_x": log.next_observations[:, 0],
            "next_y": log.next_observations[:, 1],
            "Action": log.actions,
            "reward": log.rewards,
            "done": log.terminated,
        }
    )
    found = read_log(table, Columns(ends="terminated"))
    assert found.roles.columns["next_state"] == ("next_x", "next_y")
    assert_same(joined(found), log, 5)
    table.loc[log.terminated, "next_x"] = np.nan  # what follows a terminal state does not matter
    again = joined(read_log(table, Columns(ends="terminated")))
    assert_same(again, log, 3)
    table.loc[~log.terminated, "next_x"] = np.nan
    with pytest.raises(DataError, match=r"row 0, column next_x: None must be a finite number"):
        read_log(table, Columns(ends="terminated"))


# The ends of episodes --------------------------------------------------------------------------


def table(**changed):
    """Three episodes with 3, 2 and 3 rows, of which the second ends before the others."""
    columns = {
        "episode": [0, 0, 0, 1, 1, 2, 2, 2],
        "x": np.arange(8.0),
        "y": np.zeros(8),
        "action": [0, 1, 0, 1, 0, 1, 0, 1],
        "reward": np.arange(8.0),
    }
    return pa.table({name: c for name, c in (columns | changed).items() if c is not None})


DONE = [False, False, True, False, True, False, False, True]


@pytest.mark.parametrize(
    ("ends", "terminated", "rows"),
    [
        ("terminated", [2, 4, 7], [0, 1, 2, 3, 4, 5, 6, 7]),
        ("truncated", [], [0, 1, 3, 5, 6]),
        (3, [4], [0, 1, 3, 4, 5, 6]),
    ],
)
@pytest.mark.parametrize("done", [DONE, None])
def test_what_the_end_of_an_episode_means_is_asked_and_not_guessed(ends, terminated, rows, done):
    with pytest.raises(DataError, match=r"(may mark terminal states|nothing in table).*ends=N"):
        read_log(table(done=done))
    found = joined(read_log(table(done=done), Columns(ends=ends)))
    np.testing.assert_array_equal(found.rewards, rows)
    np.testing.assert_array_equal(found.rewards[found.terminated], terminated)
    last = [row for row in rows if row not in terminated and row + 1 not in rows]
    np.testing.assert_array_equal(found.rewards[found.truncated], last)
    follows = ~found.terminated
    np.testing.assert_array_equal(
        found.next_observations[follows, 0], found.observations[follows, 0] + 1
    )


def test_done_is_told_apart_by_another_flag():
    cut = np.array(DONE) & (np.arange(8) != 4)
    by_cuts = read_log(table(done=DONE, truncated=cut))
    by_ends = read_log(table(done=DONE, terminated=np.array(DONE) & ~cut))
    assert_same(joined(by_cuts), joined(by_ends))
    assert joined(by_cuts).rewards[joined(by_cuts).terminated] == 4


def test_episodes_without_a_column_end_with_the_flags():
    with_column = read_log(table(done=DONE), Columns(ends="terminated"))
    without = read_log(table(done=DONE, episode=None), Columns(ends="terminated"))
    assert_same(joined(with_column), joined(without))
    with pytest.raises(DataError, match="neither columns of next states nor a column of episodes"):
        read_log(table(episode=None))


def test_a_file_that_ends_within_an_episode(tmp_path):
    rows = table(done=[*DONE[:-1], False], episode=None).to_pylist()
    folder = split(tmp_path / "log", rows, 2)
    columns = {"ends": "terminated"}
    with pytest.raises(DataError, match=r"000\.csv, row 3: the file ends in the middle .*episode="):
        read_log(folder, Columns(**columns))
    found = joined(read_log(folder, Columns(state=("x", "y"), done="y", episode="file", **columns)))
    np.testing.assert_array_equal(found.rewards, [0, 1, 2, 4, 5, 6])
    np.testing.assert_array_equal(found.rewards[found.truncated], [2, 6])


def test_a_last_row_may_have_only_a_state():
    closed = table(
        action=[0, 1, None, 1, 0, 1, 0, None],
        reward=[0.0, 1, None, 3, 4, 5, 6, None],
        terminated=[False, False, True, False, True, False, False, False],
    )
    log = read_log(closed)
    found = joined(log)
    np.testing.assert_array_equal(found.rewards, [0, 1, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.rewards[found.terminated], [1, 4])
    np.testing.assert_array_equal(found.rewards[found.truncated], [6])
    assert found.next_observations[1, 0] == 2
    assert log.facts.left_out == 0


def test_an_episode_does_not_go_on_after_its_end():
    wrong = [False, True, False, False, True, False, False, True]
    message = r"table, row 1, column terminated: the episode ends here, but goes on in table, row 2"
    with pytest.raises(DataError, match=message):
        read_log(table(terminated=wrong))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, 1, 1, 0, 1, 0, 1, 2], r"row 2, column time: the time 1 is there twice .* row 1"),
        (["a", "b", "c", "d", "e", "f", "g", "h"], r"row 0, column time: 'a' must be a number or"),
    ],
)
def test_times_that_give_no_order_are_named(times, message):
    with pytest.raises(DataError, match=message):
        read_log(table(time=times), Columns(ends="truncated"))


def test_time_that_runs_backwards_in_an_episode_without_a_name():
    times = [0, 2, 1, 0, 1, 0, 1, 2]
    message = r"table, row 2, column time: the time 1 runs backwards in an episode, after .*row 1"
    with pytest.raises(DataError, match=message):
        read_log(table(time=times, done=DONE, episode=None), Columns(ends="terminated"))


def test_a_bad_row_is_no_next_state():
    broken = table(x=[0.0, 1, 2, 3, 4, 5, np.nan, 7], done=DONE)
    columns = Columns(ends="terminated")
    with pytest.raises(
        DataError, match=r"table, row 6, column x: None must be a finite number|nan"
    ):
        read_log(broken, columns)
    log = read_log(broken, columns, skip_bad=True)
    found = joined(log)
    np.testing.assert_array_equal(found.rewards, [0, 1, 2, 3, 4, 7])
    assert log.bad.count == 1
    assert log.facts.left_out == 1
    assert "1 bad rows left out (x 1)" in str(log)


# Names, words, missing values ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")  # rewards are noise
def test_actions_and_states_keep_their_names(tmp_path):
    fitted = BLSPI(BASIS, discount=0.8).fit(pd.DataFrame(ROWS))
    state = {"stock": 0.3, "weekday": "Tue"}
    action = fitted.act(state)
    assert action in ACTIONS
    assert fitted.act(["0.3", "Tue"]) == action
    assert fitted.act(np.array([0.3, 0.0, 1.0, 0.0])) == action
    frame = pd.DataFrame([state, state | {"stock": -0.9}])
    assert fitted.act(frame)[0] == action
    fitted.save(tmp_path / "policy.npz")
    policy = type(fitted.policy()).load(tmp_path / "policy.npz")
    assert policy.action_names == ACTIONS
    assert policy.act(state) == action
    assert list(policy.act(frame)) == list(fitted.act(frame))
    np.testing.assert_array_equal(policy.values(state), fitted.policy().values([0.3, "Tue"]))
    for wrong, message in [
        ({"stock": 0.3, "weekday": "Sun"}, "weekday='Sun' is not in the log, which has Mon, Tue"),
        ({"stock": 0.3}, "state has no 'weekday', only stock"),
        ({"stock": "much", "weekday": "Tue"}, "stock='much' must be a number"),
        ({"stock": None, "weekday": "Tue"}, "stock is missing: give a value"),
        ([0.3], "state in row 0 has 1 values, but needs 2: stock, weekday"),
    ]:
        with pytest.raises(ValueError, match=message):
            policy.act(wrong)


def test_words_alone_are_states():
    rows = [{name: row[name] for name in row if name != "stock"} for row in ROWS]
    log = joined(read_log(pd.DataFrame(rows)))
    assert log.observations.dtype == np.int64
    np.testing.assert_array_equal(log.observations, EXPECTED.observations[:, 1:].argmax(axis=1))
    fitted = LSPI(discount=0.5).fit(pd.DataFrame(rows))
    assert fitted.act({"weekday": "Mon"}) in ACTIONS
    assert fitted.features_.size == len(WORDS)


def test_numbers_may_be_names():
    log = read_log(
        table(action=[10, 20, 10, 20, 30, 20, 10, 30]),
        Columns(categorical="action", ends="truncated"),
    )
    assert log.action_names == ("10", "20", "30")
    np.testing.assert_array_equal(joined(log).actions, [0, 1, 1, 1, 0])
    with pytest.raises(DataError, match="categorical=order: there is no such column"):
        read_log(table(), Columns(categorical="order", ends="truncated"))


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_a_missing_value_is_an_error_or_gets_an_indicator(absent):
    x = [0.0, 1, absent, 3, 4, 5, 6, 7]
    with pytest.raises(DataError, match=r"table, row 2, column x: (None|nan) must be a finite num"):
        read_log(table(x=x), Columns(ends="truncated"))
    log = read_log(table(x=x), Columns(ends="truncated", missing="indicator"))
    assert log.encoding.names == ["x", "x is missing", "y"]
    found = joined(log)
    np.testing.assert_array_equal(found.observations[:, 1], 0)
    np.testing.assert_array_equal(found.next_observations[1], [3.5, 1, 0])
    np.testing.assert_array_equal(log.encoding({"x": None, "y": 2}), [3.5, 1, 2])


def test_flags_in_states_are_numbers_in_text_too(tmp_path):
    columns = Columns(ends="truncated", missing="indicator")
    flags = [True, False, None, True, True, False, True, False]
    typed = read_log(table(x=flags), columns)
    text = read_log(write_csv(tmp_path / "log.csv", table(x=flags).to_pylist()), columns)
    assert_same(joined(typed), joined(text))
    np.testing.assert_array_equal(joined(typed).next_observations[1], [0.5, 1, 0])


# What is wrong is named ------------------------------------------------------------------------

NAMES = list(ROWS[0])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("stock", "abc", r"column stock: 'abc' is a word, but other values are numbers"),
        ("stock", "", r"column stock: None must be a finite number.*, and missing=indicator keeps"),
        ("stock", "NA", r"column stock: 'NA' must be a finite number"),
        ("stock", "inf", r"column stock: 'inf' must be a finite number"),
        ("stock", "2026-01-31", r"column stock: '2026-01-31' is a date, but other values are"),
        ("reward", "1,5", r"column reward: '1,5' is a word"),
        ("reward", "1e999", r"column reward: '1e999' must be a finite number"),
        ("action", "", r"column action: None is not an action"),
        ("action", "3", r"column action: '3' is a number, but other values are words"),
        ("weekday", "", r"column weekday: None is none of Mon, Tue, Wed"),
        ("weekday", "NA", r"column weekday: 'NA' is none of Mon, Tue, Wed"),
        (
            "terminated",
            "maybe",
            r"column terminated: 'maybe' is a word, but other values are true or",
        ),
        ("episode", "", r"column episode: None must name an episode"),
        ("time", "noon", r"column time: 'noon' must be a number or a date like 2026"),
    ],
)
def test_a_bad_value_is_named_by_file_row_and_column(column, value, message, tmp_path):
    rows = [dict(row) for row in ROWS]
    rows[7][column] = value
    path = write_csv(tmp_path / "log.csv", rows)
    with pytest.raises(DataError, match=r"log\.csv, row 7, " + message):
        read_log(path)


LINE = json.dumps(ROWS[0]).encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.csv", b"", r"there are no rows in .*log\.csv"),
        ("log.csv", b"state,action\n", r"there are no rows in .*log\.csv"),
        ("log.csv", b"a,b\n1,2\n3\n", "row 1: it has 1 fields, but the line of names has 2"),
        ("log.csv", b"a,b\n1,2\n3,\r4\n", "row 1: it has 2 fields|row 2: it has 1 fields"),
        ("log.csv", b"a,b\n1,2\n3,\xff\n", "row 1, column b: the text is not UTF-8"),
        ("log.csv", b"a\xff,b\n1,2\n", "in the line of names: the text is not UTF-8"),
        ("log.csv", b"a,a\n1,2\n", "has several columns called 'a'"),
        ("log.csv", b"# mine\nx,y\n1,2\n", "the first line, '# mine', has to be the names"),
        ("log.csv.gz", gzip.compress(TEXT.encode())[:-20], r"log\.csv\.gz"),
        ("log.jsonl", LINE + b"[1, 2]", "row 1: a list, not an object"),
        ("log.jsonl", LINE + b'{"x": 1', "row 1: no JSON"),
        ("log.jsonl", LINE + b'{"x": 1, "x": 2}', "row 1: no JSON: a name is there twice"),
        ("log.jsonl", LINE + b'{"x": 1}', "row 1, column episode: None must name an episode"),
        ("log.json", b"[1, 2]", "row 0: a int, not an object"),
        ("log.json", b'[{"x": 1},', "no JSON"),
        ("log.arrow", b"ARROW1 and nothing else", "is not an Arrow file"),
        ("a.xlsx", b"PK\x03\x04", "is a ZIP archive or a file of Excel"),
        ("a.csv.zip", b"PK\x03\x04", "is a ZIP archive or a file of Excel"),
        ("log", b"PK\x03\x04", "is a ZIP archive or a file of Excel"),
    ],
)
def test_files_that_are_no_tables_are_named(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_log(path)
    assert str(path) in str(caught.value)


def test_columns_that_only_some_files_have_do_not_matter_if_others_are_named(tmp_path):
    folder = split(tmp_path / "log", ROWS, 2)
    write_csv(folder / "002.csv", [row | {"price": 1.0, "episode": "z"} for row in ROWS[:1]])
    assert read_log(folder, Columns(state=("stock", "weekday"))).size == EXPECTED.size


def test_too_many_words_are_no_names(tmp_path):
    rows = [row | {"weekday": f"note {i}"} for i, row in enumerate(episode_rows(40))]
    with pytest.raises(DataError, match=r"column weekday: there are more than 100 different words"):
        read_log(pd.DataFrame(rows))
    assert read_log(pd.DataFrame(rows), Columns(state="stock")).encoding.names == ["stock"]


def test_without_polars_the_reader_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.delitem(sys.modules, "rblspi.data.log")
    with pytest.raises(ImportError, match=r"pip install 'rblspi\[data\]'"):
        from rblspi.data import read_log  # noqa: F401


def test_folders_with_files_of_several_kinds_are_refused(tmp_path):
    write_csv(tmp_path / "a.csv", ROWS)
    write_lines(tmp_path / "b.jsonl", ROWS)
    with pytest.raises(DataError, match=r"files of several kinds, \.csv and \.jsonl"):
        read_log(tmp_path)


@pytest.mark.parametrize("written", ["0,5", "1.000,5", "1 000", "50%", "$3", "3 €", "-€1,5"])
def test_numbers_that_are_written_otherwise_are_no_words(written):
    frame = FRAME.assign(stock=[written, "7,1", "8,2", *[written] * (len(FRAME) - 3)])
    with pytest.raises(DataError, match=r"column stock: '.*' looks like a number: write it with a"):
        read_log(frame)
    named = read_log(frame, Columns(categorical="stock"))
    assert len(named.encoding.inputs[0].words) == 3
    sizes = frame.assign(stock=["10 to 20", "7,1", *["size 1"] * (len(FRAME) - 2)])
    assert read_log(sizes).encoding.inputs[0].words


@pytest.mark.parametrize(
    ("times", "per", "expected"),
    [
        (["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"], "1h", 1.0),
        (["2026-03-29 01:30", "2026-03-29 03:30"], "1h", 2.0),
        (["2026-03-29", "2026-04-02"], "1 day", 4.0),
        (["2026-03-29 10:00:00.123456789", "2026-03-29 10:00:00.123466789"], "1us", 10.0),
        (["2026-03-29T10:00:00Z", "2026-03-29T10:00:00.000001Z"], "1us", 1.0),
        (["2026-03-29T01:30:00Z", "2026-03-29T02:30:00"], "1h", None),  # a zone in some rows
    ],
)
def test_dates_and_time_zones(times, per, expected, tmp_path):
    path = write_csv(tmp_path / "log.csv", [ROWS[i] | {"time": t} for i, t in enumerate(times)])
    path.write_text(path.read_text().replace(ROWS[1]["episode"], ROWS[0]["episode"]))
    columns = Columns(terminated="truncated", truncated="truncated", discount_per=per)
    if expected is None:
        with pytest.raises(DataError, match=r"row 0, column time: .* a time zone in all rows or"):
            read_log(path, columns)
    else:
        assert next(iter(read_log(path, columns))).elapsed[0] == expected
