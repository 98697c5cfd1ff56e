"""Named arrays and a JSON description in one file; files from strangers are read safely.

The file is a NumPy archive that `numpy.load` reads as well. Its last 64 bytes, the comment of the
zip archive, are the SHA-256 digest of everything before them, so that damage is noticed before
anything is read. The digest is no signature: a malicious file can have a valid one. Therefore
nothing is unpickled, members are not compressed, and no array is made that is larger than the
member it comes from.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.files import replacing

_DIGEST_SIZE = 64
_LARGEST_DESCRIPTION = 2**20  # bytes
_TYPES = ("<f8", "<f4", "<i8", "|u1")


class FileError(ValueError):
    """A file is damaged, was not written by rblspi, or has another version."""


class Archive(NamedTuple):
    """The contents of a file."""

    description: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write(
    path: str | PathLike[str],
    kind: str,
    version: int,
    description: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write arrays and a description; the file appears under its name once it is whole."""
    text = json.dumps({"format": kind, "version": version, **description}, default=_plain).encode()
    if len(text) > _LARGEST_DESCRIPTION:
        raise ValueError(f"a description of {len(text)} bytes is too long to be read again")
    members = {**arrays, "metadata": np.frombuffer(text, np.uint8)}
    for name, array in members.items():
        if array.dtype.str not in _TYPES:
            raise TypeError(
                f"array {name} of {array.dtype} must be of float64, float32, int64 or uint8"
            )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b" " * _DIGEST_SIZE
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
    body = buffer.getbuffer()[:-_DIGEST_SIZE]
    with replacing(path) as temporary, open(temporary, "xb") as file:
        file.write(body)
        file.write(hashlib.sha256(body).hexdigest().encode())


def read(path: str | PathLike[str], kind: str, version: int) -> Archive:
    """Read a file of this kind and version; raise `FileError` if it is invalid."""
    archive = _read(path)
    if archive.description.pop("format", None) != kind:
        raise FileError(f"{path} does not hold an {kind}")
    found = archive.description.pop("version", None)
    if type(found) is not int or found != version:
        raise FileError(
            f"{path} has format version {short(found)}, this rblspi reads version {version}: "
            "install the version of rblspi that wrote it, or save it again"
        )
    return archive


def kind_of(path: str | PathLike[str]) -> str:
    """The kind of file, as it was given to `write`."""
    return str(_read(path).description.get("format"))


def short(value: Any) -> str:
    """A stranger's value for a message: escaped, and not long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def printable(text: str) -> str:
    """A stranger's text for the terminal: characters that would control it are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _read(path: str | PathLike[str]) -> Archive:
    arrays = _arrays(path)
    try:
        text = arrays.pop("metadata").tobytes()
        description = json.loads(text.decode()) if len(text) <= _LARGEST_DESCRIPTION else None
        if not isinstance(description, dict):
            raise FileError("it has no description")
    except (LookupError, ValueError, RecursionError) as error:
        raise FileError(f"{path} was not saved by rblspi: {error}") from error
    return Archive(description, arrays)


def _arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    try:
        if not Path(path).exists():
            raise FileError(f"there is no file {path}: correct the name, or save one first")
        if not Path(path).is_file():
            raise FileError(f"{path} is not a file: name the .npz itself")
        data = Path(path).read_bytes()
    except FileError:
        raise
    except (OSError, MemoryError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    digest = hashlib.sha256(data[:-_DIGEST_SIZE]).hexdigest().encode()
    if data[-_DIGEST_SIZE:] != digest:
        what = "damaged or incomplete" if data[:2] == b"PK" else "not a file saved by rblspi"
        raise FileError(f"{path} is {what}: save it again")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len({member.filename for member in members}) < len(members):
                raise FileError("a member is there twice")
            if any(m.compress_type or m.compress_size != m.file_size for m in members):
                raise FileError("it is compressed")
            return {
                member.filename.removesuffix(".npy"): _array(archive.read(member))
                for member in members
            }
    except Exception as error:  # invalid bytes can make zipfile and NumPy raise any error
        raise FileError(f"{path} was not saved by rblspi: {error}") from error


def _array(data: bytes) -> NDArray[Any]:
    """Read an array in NumPy's format; its size must match its header."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise FileError("an array has another version of NumPy's format")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if dtype.str not in _TYPES or by_columns:
        raise FileError("a member is not an array of float64, float32, int64 or bytes")
    if min(shape, default=0) < 0 or start + math.prod(shape) * dtype.itemsize != len(data):
        raise FileError(f"an array of shape {short(shape)} has another size")
    return np.frombuffer(data, dtype, offset=start).reshape(shape)


def _plain(value: Any) -> Any:
    """Numbers and lists of NumPy as plain ones, and any other object as the name of its type."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return f"a {type(value).__name__}"
