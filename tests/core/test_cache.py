"""Compiled code is cached where it can be, and never beside the source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rblspi
from rblspi.core.code_cache import _CheckedFiles

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from rblspi.core import kernels
print(repr(kernels.dot(np.arange(40.0), np.full(40, 0.1))))
"""


def compute(cache):
    """What a fresh process computes and says, with this directory for the cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_a_directory_that_cannot_be_written_is_replaced_with_a_notice(tmp_path):
    (tmp_path / "file").write_text("in the way")
    expected, silent = compute(tmp_path / "cache")
    assert "cannot be cached" not in silent
    found, notice = compute(tmp_path / "file" / "cache")
    assert found == expected
    assert "compiled code cannot be cached in" in notice
    source = Path(rblspi.__file__).parent
    assert not list(source.rglob("*.nbi"))


DAMAGE = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "other text": lambda content: b"not compiled code",
    "a bit in the middle": lambda content: flipped(content, len(content) // 2),
    "the last bit": lambda content: flipped(content, len(content) - 1),
}


def flipped(content, place):
    """The content with another bit."""
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"], ids=["index", "code"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_counts_as_missing(damage, suffix, tmp_path):
    files = _CheckedFiles(tmp_path, "f", 1)
    files.save("int64", "code")
    (file,) = tmp_path.glob(f"*.{suffix}")
    file.write_bytes(damage(file.read_bytes()))
    assert files.load("int64") is None
    files.save("int64", "code")
    assert files.load("int64") == "code"


def test_what_is_damaged_is_compiled_again(tmp_path):
    expected, _ = compute(tmp_path)
    files = list(tmp_path.rglob("*.nb?"))
    assert files
    for file in files:
        file.write_bytes(DAMAGE["cut off"](file.read_bytes()))
    assert compute(tmp_path)[0] == expected
    times = {file: file.stat().st_mtime_ns for file in files}
    assert compute(tmp_path)[0] == expected
    assert times == {file: file.stat().st_mtime_ns for file in files}, "the cache is not used"


def test_code_of_an_older_source_is_not_found_after_a_crash_between_two_files(tmp_path):
    older, newer = (_CheckedFiles(tmp_path, "f", stamp) for stamp in (1, 2))
    older.save("int64", "old code")
    assert older.load("int64") == "old code"
    newer._save_index({"int64": newer._data_name(1)})  # and then it is killed
    assert newer.load("int64") is None


def test_two_processes_that_choose_one_name_do_not_take_the_code_of_each_other(tmp_path):
    one, other = (_CheckedFiles(tmp_path, "f", 1) for _ in range(2))
    one.save("int64", "code for int64")
    other._save_data(other._data_name(1), ("float64", "code for float64"))
    assert one.load("int64") is None
