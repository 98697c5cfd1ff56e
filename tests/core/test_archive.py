"""Arrays and a description come back as they were written; anything else is a FileError."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from rblspi.core import archive
from rblspi.core.archive import FileError

ARRAYS = {
    "matrix": np.random.default_rng(0).standard_normal((3, 4)),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other": np.arange(10.0)[::2],
    "counts": np.array([-1, 2**62]),
    "bytes": np.arange(256, dtype=np.uint8),
    "one number": np.array(7.5),
    "nothing": np.empty((0, 2)),
}
DESCRIPTION = {"text": "Zürich\n", "numbers": [1, 2.5, None, True], "table": {"seed": 2**70}}


@pytest.fixture
def path(tmp_path):
    archive.write(tmp_path / "some.npz", "test", 4, DESCRIPTION, ARRAYS)
    return tmp_path / "some.npz"


def test_what_is_written_is_read(path):
    description, arrays = archive.read(path, "test", 4)
    assert description == DESCRIPTION
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(arrays[name], array)
    assert archive.kind_of(path) == "test"


def test_numbers_of_numpy_are_numbers_and_other_objects_are_named(tmp_path):
    given = {"a": np.float64(0.1), "b": np.int64(3), "c": np.arange(2), "d": Path("x")}
    archive.write(tmp_path / "x", "test", 1, given, {})
    found = archive.read(tmp_path / "x", "test", 1).description
    assert found["a"] == 0.1
    assert (found["b"], found["c"]) == (3, [0, 1])
    assert found["d"].startswith("a ")


def test_another_kind_or_version_is_refused_with_a_sentence(path):
    with pytest.raises(FileError, match=r"some\.npz does not hold an agent"):
        archive.read(path, "agent", 4)
    with pytest.raises(FileError, match="has format version 4, this rblspi reads version 5: inst"):
        archive.read(path, "test", 5)


def test_a_single_flipped_bit_is_noticed(path):
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(data), size=200):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(FileError, match=r"damaged or incomplete|not a file saved by rblspi"):
            archive.read(path, "test", 4)
        with pytest.raises(FileError):
            archive.kind_of(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 64, b"x" * 1000])
def test_what_is_no_archive_is_refused(path, content):
    signed = content + hashlib.sha256(content).hexdigest().encode()
    for data in (content, signed):
        path.write_bytes(data)
        with pytest.raises(FileError, match=r"some\.npz"):
            archive.read(path, "test", 4)
        with pytest.raises(FileError, match=r"some\.npz"):
            archive.kind_of(path)


@pytest.mark.parametrize("name", ["missing.npz", "", "nul\0character"])
def test_what_is_no_file_is_refused(path, name):
    with pytest.raises(FileError):
        archive.read(str(path.parent / name), "test", 4)


@pytest.mark.parametrize(
    ("description", "array", "message"),
    [
        ({}, np.zeros(2, np.float16), "array a of float16 must be of float64"),
        ({}, np.array([True]), "array a of bool must be"),
        ({}, np.array([None]), "array a of object must be"),
        ({"long": "x" * 2**20}, np.zeros(2), "too long to be read again"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(description, array, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        archive.write(tmp_path / "x", "test", 1, description, {"a": array})
    assert not list(tmp_path.iterdir())
