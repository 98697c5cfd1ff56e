import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rblspi.experiments import results_store
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Run
from rblspi.experiments.export import export
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store, StoreError
from rblspi.experiments.tasks import RunResult
from tests.support.experiments import CURVES, FIGURE


def result(code="abc", value=1.0):
    episodes = CURVES[0].episodes
    arrays = {"length": np.arange(episodes, dtype=np.int32), "return": np.full(episodes, value)}
    return RunResult(arrays, 10, 0.5, ("careful",), code)


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        for seed in range(40):
            store.add(Run(CURVES[0], seed), result())
    return path


def test_what_is_stored_is_read_back_to_the_last_bit(tmp_path):
    values = np.array([0.1, -0.0, 1e-310, np.pi])
    table = np.arange(24.0).reshape(2, 3, 4)
    with Store(tmp_path / "new" / "r.sqlite") as store:
        store.add(
            Run(CURVES[0], 3), RunResult({"return": values, "table": table}, 7, 1.5, ("a",), "c")
        )
    with Store(tmp_path / "new" / "r.sqlite") as store:
        ((record, arrays),) = store.runs(CURVES[0], "c")
        assert (record.seed, record.steps, record.seconds) == (3, 7, 1.5)
        assert record.warnings == ("a",)
        assert record.versions["numpy"] == np.__version__
        assert arrays["return"].tobytes() == values.tobytes()
        np.testing.assert_array_equal(arrays["table"], table)


def test_a_run_is_known_by_settings_seed_and_code(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store.add(Run(CURVES[0], 0), result("old"))
        store.add(Run(CURVES[0], 1), result("old"))
        store.add(Run(CURVES[0], 0), result("new"))
        store.add(Run(CURVES[1], 0), result("new"))
        assert store.seeds(CURVES[0], "old") == {0, 1}
        assert store.seeds(CURVES[0], "new") == {0}
        assert store.codes(CURVES[0]) == {"old": 2, "new": 1}
        assert list(store.codes(CURVES[0])) == ["old", "new"]


def test_a_run_that_is_there_stays_as_it_is(tmp_path):
    with Store(tmp_path / "r.sqlite") as store:
        store.add(Run(CURVES[0], 0), result(value=1.0))
        store.add(Run(CURVES[0], 0), result(value=2.0))
        ((_, arrays),) = store.runs(CURVES[0], "abc")
        assert arrays["return"][0] == 1.0


def foreign_text(path):
    path.write_text("my diary\n" * 100)


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE addresses (name TEXT)")
    connection.close()


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("make", [foreign_text, foreign_database, empty])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path, make):
    path = tmp_path / "results.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"results\.sqlite.*move the file away"):
        Store(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def interrupted_copy(path, copy):
    """Copy a database, and the journal beside it, in the middle of a commit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE more (data BLOB)")
        for _ in range(100):
            connection.execute("INSERT INTO more VALUES (randomblob(4000))")
        for end in ("", "-journal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        connection.execute("ROLLBACK")


def test_the_journal_of_another_program_is_not_applied(tmp_path):
    copy = tmp_path / "results.sqlite"
    foreign_database(tmp_path / "original")
    interrupted_copy(tmp_path / "original", copy)
    before = [Path(f"{copy}{end}").read_bytes() for end in ("", "-journal")]
    with pytest.raises(StoreError, match="another program"):
        Store(copy)
    assert [Path(f"{copy}{end}").read_bytes() for end in ("", "-journal")] == before


def test_an_interrupted_commit_is_rolled_back(filled, tmp_path):
    copy = tmp_path / "copy.sqlite"
    interrupted_copy(filled, copy)
    assert copy.stat().st_size > filled.stat().st_size
    with Store(copy) as store:
        assert store.seeds(CURVES[0], "abc") == set(range(40))
    assert copy.stat().st_size == filled.stat().st_size
    assert not Path(f"{copy}-journal").exists()


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused_and_left_alone(filled, share):
    whole = filled.read_bytes()
    part = whole[: int(len(whole) * share)]
    filled.write_bytes(part)
    with pytest.raises(StoreError, match=r"results\.sqlite.*move the file away"):
        Store(filled)
    assert filled.read_bytes() == part


def test_a_file_with_pages_overwritten_is_refused_and_left_alone(filled):
    content = bytearray(filled.read_bytes())
    content[4096 * 3 : 4096 * 8] = b"\xff" * 4096 * 5
    filled.write_bytes(content)
    with pytest.raises(StoreError, match=r"results\.sqlite is damaged"):
        Store(filled)
    assert filled.read_bytes() == content


def test_a_file_of_another_format_is_refused(filled):
    with sqlite3.connect(filled) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="format 99"):
        Store(filled)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE arrays SET data = x'00' WHERE run = 3 AND name = 'return'",
        "UPDATE arrays SET shape = '[1, 5]' WHERE run = 3",
        "DELETE FROM arrays WHERE run = 3 AND name = 'length'",
        "UPDATE runs SET steps = 11 WHERE id = 3",
        "UPDATE runs SET warnings = '[]' WHERE id = 3",
    ],
)
def test_a_changed_run_is_told_by_its_settings_and_seed(filled, change):
    changed(filled, change)
    with Store(filled) as store:
        runs = store.runs(CURVES[0], "abc")
        assert [next(runs)[0].seed, next(runs)[0].seed] == [0, 1]
        with pytest.raises(StoreError, match="its checksum is wrong") as caught:
            next(runs)
    assert "results.sqlite is damaged" in str(caught.value)
    assert f"{CURVES[0].name}, the run with seed 2" in str(caught.value)
    assert "Restore a copy of the file, or move the file away" in str(caught.value)


@pytest.mark.parametrize("shape", ["[0]", "[9500]", "[5, 2]", "[]", "x"])
def test_a_number_of_episodes_that_cannot_be_is_told_by_its_settings_and_seed(filled, shape):
    changed(filled, "UPDATE arrays SET shape = ? WHERE run = 3", shape)
    message = f"{CURVES[0].name}, the run with seed 2 has arrays of shape"
    with Store(filled) as store, pytest.raises(StoreError, match=re.escape(message)):
        store.entries(CURVES[0])


def changed(path, sql, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(sql, values)
    connection.close()


def test_a_stored_array_can_only_be_numbers(filled, monkeypatch):
    """Not even in a file that somebody made with the right checksums."""
    monkeypatch.setattr(results_store, "_checksum", lambda row, arrays: "right")
    changed(filled, "UPDATE arrays SET type = '|O' WHERE run = 1")
    changed(filled, "UPDATE runs SET checksum = 'right'")
    with Store(filled) as store, pytest.raises(StoreError, match="not a number"):
        next(store.runs(CURVES[0], "abc"))


def exported(path, folder):
    """Everything that is read from a file, as a table and as records."""
    with Store(path) as store:
        result = read(store, FIGURE)
    export([result], folder / "export.csv")
    records = [result[curve].records for curve in CURVES]
    return (folder / "export.csv").read_bytes(), records


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    path, damaged = tmp_path / "results.sqlite", tmp_path / "damaged.sqlite"
    rng = np.random.default_rng(13)
    with Store(path) as store:
        for curve in CURVES:
            for seed in range(3):
                lengths = rng.integers(1, 500, curve.episodes).astype(np.int32)
                arrays = {"length": lengths, "return": rng.normal(size=curve.episodes)}
                outcome = RunResult(arrays, 10, 0.5, ("careful",), code_version(curve))
                store.add(Run(curve, seed), outcome)
    whole, expected = path.read_bytes(), exported(path, tmp_path)
    refused = 0
    for bit in rng.integers(8 * len(whole), size=60):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(content)
        try:
            assert exported(damaged, tmp_path) == expected
        except StoreError:
            refused += 1
    assert refused


def test_a_file_that_cannot_be_written_is_named(filled):
    with Store(filled) as store:
        store._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError, match=r"results\.sqlite cannot be written"):
            store.add(Run(CURVES[0], 999), result())


def test_a_place_where_nothing_can_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match=r"results\.sqlite cannot be made .*another --out"):
        Store(tmp_path / "file" / "results.sqlite")


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        store.add(Run(CURVES[0], 0), result())
    with Store(path) as store:
        assert store.codes(CURVES[0])
    assert list(tmp_path.iterdir()) == [path]
