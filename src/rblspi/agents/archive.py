"""Named arrays of numbers in one file, which may come from a stranger.

The file is a NumPy archive that `numpy.load` reads as well. Its last 64 bytes, the comment of
the zip archive, are the SHA-256 digest of all bytes before them: whatever happened to the file
on its way shows before anything in it is looked at. The digest is no signature. A file that
was made to do harm has the right one, so

- members are not compressed: no file unfolds to more than its own size,
- the description of an array is matched against one pattern, never evaluated,
- arrays hold float64, int64 or bytes, no objects.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import secrets
import struct
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGEST = 64
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(<f8|<i8|\|u1)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,15}, ?)*(?:\d{1,15})?)\), \} *\n"
)
_MEMBER = re.compile(r"[a-z_][a-z_.]{0,99}\.npy")
_MOST_MEMBERS = 1000


class FileError(ValueError):
    """A file that is not an agent, not a whole one, or one of another version."""


def write(path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays; the file appears under its name only once it is whole."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b" " * _DIGEST
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    body = buffer.getbuffer()[:-_DIGEST]
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(body)
            file.write(hashlib.sha256(body).hexdigest().encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """All arrays of a file.

    Raises
    ------
    FileError
        Whatever is wrong with it.
    """
    data = _bytes(path)
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        kind = "damaged or not complete" if data[:2] == b"PK" else "not an agent saved by rblspi"
        raise FileError(f"{path} is {kind}: save the agent again")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {
                name.removesuffix(".npy"): _array(archive.read(name))
                for name in _members(archive, len(data))
            }
    except FileError as error:
        raise FileError(f"{path} is not an agent saved by rblspi: {error}") from None
    except (
        *(OSError, ValueError, EOFError, RuntimeError, MemoryError, OverflowError, LookupError),
        *(zipfile.BadZipFile, zipfile.LargeZipFile, struct.error),
    ) as error:
        raise FileError(f"{path} is not an agent saved by rblspi: {error}") from error


def _bytes(path: str | PathLike[str]) -> bytes:
    file = Path(path)
    try:
        if not file.exists():
            raise FileError(f"there is no file {path}: save an agent first, or correct the name")
        if not file.is_file():
            raise FileError(f"{path} is not a file: name the agent's .npz")
        return file.read_bytes()
    except (OSError, MemoryError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read: {error}") from error


def _members(archive: zipfile.ZipFile, size: int) -> list[str]:
    """Names of the members, none of them compressed, encrypted or there twice."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise FileError("it has too many members, or one of them twice")
    for member in members:
        if not _MEMBER.fullmatch(member.filename):
            raise FileError(f"it has a member called {member.filename[:40]!r}")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise FileError("it is compressed or encrypted")
        if member.compress_size != member.file_size:
            raise FileError("a member has two sizes")
    if sum(member.file_size for member in members) > size:
        raise FileError("its members are larger than the file")
    return names


def _array(data: bytes) -> NDArray[Any]:
    """An array in NumPy's format, read-only."""
    start = len(_MAGIC) + 2
    if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
        raise FileError("a member is not an array")
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(data, start, min(end, start + 1000))
    if header is None:
        raise FileError("a member is not an array of float64, int64 or bytes")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(part) for part in header[2].replace(b" ", b"").split(b",") if part)
    if len(shape) > 8 or end + math.prod(shape) * dtype.itemsize != len(data):
        raise FileError(f"an array of shape {shape} has another size")
    return np.frombuffer(data, dtype, offset=end).reshape(shape)
