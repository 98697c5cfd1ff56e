import io
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rblspi.core import database
from rblspi.experiments import results_store
from rblspi.experiments.code_version import code_version
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store, StoreError
from rblspi.experiments.tables import export
from rblspi.experiments.tasks import SERIES, FinishedRun, Record
from tests.support.experiments import CURVES, FIGURE


def finished(curve=CURVES[0], seed=0, code="abc", value=1.0, **arrays):
    record = Record(seed, code, 0.5, 10, ("careful",), {"numpy": "2.x"}, "2026-01-01T00:00+00:00")
    arrays = arrays or {name: np.full(curve.episodes, value) for name in SERIES}
    return FinishedRun(curve, record, arrays)


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        store.add(finished(seed=seed) for seed in range(40))
    return path


def test_what_is_stored_is_read_back_to_the_last_bit(tmp_path):
    values = np.array([0.1, -0.0, 1e-310, np.pi])
    run = finished(values=values, table=np.arange(24.0).reshape(2, 3, 4))
    with Store(tmp_path / "new" / "r.sqlite") as store:
        store.add([run])
    with Store(tmp_path / "new" / "r.sqlite") as store:
        ((record, arrays),) = store.runs(CURVES[0], "abc")
    assert record == run.record
    assert arrays["values"].tobytes() == values.tobytes()
    np.testing.assert_array_equal(arrays["table"], run.arrays["table"])


def test_a_run_is_known_by_settings_seed_and_code_and_stays_as_it_is(tmp_path):
    first, second = CURVES[:2]
    with Store(tmp_path / "r.sqlite") as store:
        for curve, seed, code in ((first, 0, "old"), (first, 1, "old"), (second, 0, "new")):
            store.add([finished(curve, seed, code)])
        assert store.add([finished(first, 0, "new", value=v) for v in (1.0, 2.0)]) == 1
        assert store.seeds(first, "old") == {0, 1}
        assert store.seeds(first, "new") == {0}
        assert list(store.codes(first).items()) == [("old", 2), ("new", 1)]
        ((_, arrays),) = store.runs(first, "new")
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
    with pytest.raises(StoreError, match=r"(?s)results\.sqlite.*move the file away"):
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


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda whole, s=s: whole[: int(len(whole) * s)] for s in (0.001, 0.3, 0.999)),
        lambda whole: whole[: 4096 * 3] + b"\xff" * 4096 * 5 + whole[4096 * 8 :],
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(filled, damage):
    content = damage(filled.read_bytes())
    filled.write_bytes(content)
    with pytest.raises(StoreError, match=r"(?s)results\.sqlite.*move the file away"):
        Store(filled)
    assert filled.read_bytes() == content


def test_a_file_of_another_format_is_refused(filled):
    with sqlite3.connect(filled) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="format 99"):
        Store(filled)


@pytest.mark.parametrize("change", ["arrays = x'00'", "block = 4", "record = '{}'"])
def test_a_changed_run_is_told_by_its_settings_and_seed(filled, change):
    changed(filled, f"UPDATE runs SET {change} WHERE id = 3")
    with Store(filled) as store:
        runs = store.runs(CURVES[0], "abc")
        assert [next(runs)[0].seed, next(runs)[0].seed] == [0, 1]
        with pytest.raises(StoreError, match="its checksum is wrong") as caught:
            next(runs)
    assert "results.sqlite is damaged" in str(caught.value)
    assert f"{CURVES[0].name}, the run with seed 2" in str(caught.value)
    assert "Restore a copy of the file, or move the file away" in str(caught.value)


def changed(path, sql, *values):
    with sqlite3.connect(path) as connection:
        connection.create_function("checksum", -1, database.checksum)
        connection.execute(sql, values)
    connection.close()


def test_a_stored_array_can_only_be_numbers(filled):
    """Not even in a file that somebody made with the right checksums."""
    packed = io.BytesIO()
    np.savez(packed, length=np.array([{}], object))
    changed(filled, "UPDATE runs SET arrays = ? WHERE seed = 0", packed.getvalue())
    columns = results_store._COLUMNS
    changed(filled, f"UPDATE runs SET crc = checksum({columns})")
    with Store(filled) as store, pytest.raises(StoreError, match="Object arrays cannot be loaded"):
        next(store.runs(CURVES[0], "abc"))


def exported(path, folder):
    """Everything that is read from a file, as a table and as records."""
    with Store(path) as store:
        result = read(store, FIGURE)
    export([result], folder / "export.jsonl")
    records = [result[curve].records for curve in CURVES]
    return (folder / "export.jsonl").read_bytes(), records


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    path, damaged = tmp_path / "results.sqlite", tmp_path / "damaged.sqlite"
    rng = np.random.default_rng(13)
    with Store(path) as store:
        for curve in CURVES:
            lengths = rng.integers(1, 500, (3, curve.episodes))
            store.add(
                finished(curve, seed, code_version(curve), **dict.fromkeys(SERIES, lengths[seed]))
                for seed in range(3)
            )
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
            store.add([finished(seed=999)])


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
        store.add([finished()])
    with Store(path) as store:
        assert store.codes(CURVES[0])
    assert list(tmp_path.iterdir()) == [path]
