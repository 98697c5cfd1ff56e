import csv
import gzip
import sys

import numpy as np
import pytest

from rblspi.experiments.export import COLUMNS, ExportError, export
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from tests.support.experiments import CURVES, FIGURE, one_thread


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        run_all(missing(store, CURVES, 2), store, one_thread, 1)
        return read(store, FIGURE)


def test_a_csv_holds_every_episode(result, tmp_path):
    path = tmp_path / "all.csv"
    assert export([result, result], path) == 3 * 2 * 12
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    first = [row for row in rows if "0.001" in row["settings"] and row["seed"] == "1"]
    assert [int(row["episode"]) for row in first] == list(range(1, 13))
    lengths = result[CURVES[0]].arrays["length"][1]
    assert [float(row["length"]) for row in first] == lengths.tolist()


def test_block_means_are_means_of_blocks(result, tmp_path):
    path = tmp_path / "blocks.csv.gz"
    assert export([result], path, blocks=True) == 3 * 2 * 3
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["episode"]) for row in rows[:3]] == [4, 8, 12]
    expected = result[CURVES[0]].arrays["length"][0].reshape(3, 4).mean(axis=1)
    np.testing.assert_array_equal([float(row["length"]) for row in rows[:3]], expected)


def test_equal_tables_give_equal_files(result, tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        export([result], tmp_path / name, blocks=True)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_parquet_holds_the_same_to_the_last_bit(result, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "all.parquet"
    export([result], path)
    table = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    returns = np.concatenate([result[curve].arrays["return"].ravel() for curve in CURVES])
    assert table["return"].to_numpy().tobytes() == returns.tobytes()


def test_parquet_without_pyarrow_says_what_to_install(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match=r"rblspi\[data\]"):
        export([result], tmp_path / "all.parquet")
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_refused(result, tmp_path):
    with pytest.raises(ExportError, match=r"\.csv, \.csv\.gz or \.parquet"):
        export([result], tmp_path / "all.xlsx")
