"""A file of records that only grows, and that survives whatever ends the process that writes it.

A record is one line of JSON whose last field, ``crc``, is the CRC-32 of everything before it. A
record counts once its line is whole. If the process or the machine stops in the middle of one, the
end of the file is no record; it is noticed, said and removed when the file is opened again.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from rblspi.core.files import lock
from rblspi.core.progress import say

_END = re.compile(rb', "crc": "([0-9a-f]{8})"}')
_CRC = re.compile(_END.pattern + rb"\n")
_CRC_SIZE = len(', "crc": "00000000"}\n')


class DamageError(ValueError):
    """A record in the middle of a file is not what was written there."""


class Line(NamedTuple):
    """A whole record in a file."""

    number: int  # of the line, from 1
    start: int  # where it begins, in bytes
    content: bytes  # JSON, without the checksum


def line_of(record: dict[str, Any]) -> bytes:
    """A record as a line with its checksum."""
    body = json.dumps(record, ensure_ascii=False, allow_nan=False)[:-1].encode()
    return b'%s, "crc": "%08x"}\n' % (body, zlib.crc32(body))


def whole_lines(path: str | PathLike[str]) -> Iterator[Line]:
    """The records of a file; what is left at its end is none, and is not an error.

    Raises
    ------
    DamageError
        If there are records after something that is none.
    """
    with open(path, "rb") as file:
        yield from _whole_lines(file, str(path))


def _whole_lines(file: BinaryIO, name: str) -> Iterator[Line]:
    start, wrong = 0, 0
    for number, line in enumerate(file, 1):
        body = line[:-_CRC_SIZE]
        found = _CRC.fullmatch(line, len(body))
        whole = found is not None and int(found[1], 16) == zlib.crc32(body)
        if not whole:
            wrong = wrong or number
        if wrong and (whole or _goes_on_after_a_record(line)):
            raise DamageError(
                f"{name}, line {wrong}: the record is damaged, and others follow it: restore the "
                "file, or delete the line to go on without it"
            )
        if whole:
            yield Line(number, start, body + b"}")
        start += len(line)


def _goes_on_after_a_record(line: bytes) -> bool:
    """Whether a whole record is in a line whose newline is something else now.

    Nothing, or zeros, in place of the newline is how a write ends that was cut short.
    """
    for end in _END.finditer(line):
        if int(end[1], 16) == zlib.crc32(line[: end.start()]):
            return bool(line[end.end() :].strip(b"\0"))
    return False


class Journal:
    """Appends records to a file, which one process at a time may do.

    Parameters
    ----------
    path : path
        The file is made if there is none.

    Attributes
    ----------
    size : int
        Bytes of whole records in the file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        binary = getattr(os, "O_BINARY", 0)  # of Windows
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | binary, 0o644)
        try:
            lock(self._file, self.path)
            self.size = self._kept()
            os.lseek(self._file, self.size, os.SEEK_SET)
        except BaseException:
            os.close(self._file)
            raise

    def _kept(self) -> int:
        """Remove what is no record from the end of the file; returns the size of the rest."""
        size = 0
        for line in whole_lines(self.path):
            size = line.start + len(line.content) - 1 + _CRC_SIZE
        torn = os.fstat(self._file).st_size - size
        if torn and not size:
            raise ValueError(
                f"{self.path} has no whole record, and may be something else: choose another name"
            )
        if torn:
            say(
                f"{self.path}: the last {torn:,} bytes are no whole record and were removed; "
                "nobody was told that they were written"
            )
            os.ftruncate(self._file, size)
        return size

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records; they survive the process. `sync` makes them survive the machine.

        If that fails, as on a full disk, the file is as it was before.
        """
        data = memoryview(b"".join(map(line_of, records)))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self.size += len(data)

    def sync(self) -> None:
        """Wait until everything that was appended before is on the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Bring everything to the disk, and let other processes write."""
        try:
            self.sync()
        finally:
            os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
