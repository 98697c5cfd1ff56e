"""SQLite databases of this library: files of results and logs of decisions.

A file gets its name when it is complete. A damaged database, or one of another program, is refused
and left unchanged. Every row ends with a checksum, so that damaged values are detected.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of database."""

    name: str
    application: int
    version: int
    schema: str
    error: Callable[[str], Exception]  # from a message about a file that cannot be used
    advice: str  # what to do about such a file


def checksum(*values: Any) -> int:
    """CRC-32 of the values of a row; also a function in SQL."""
    return zlib.crc32(repr(values).encode(errors="surrogateescape"))


def insert(connection: sqlite3.Connection, table: str, row: Sequence[Any]) -> None:
    """Insert a row, followed by its checksum."""
    places = ", ".join("?" * (len(row) + 1))
    connection.execute(f"INSERT INTO {table} VALUES ({places})", (*row, checksum(*row)))


def opened(path: str | PathLike[str], kind: Kind, mode: str = "rw") -> sqlite3.Connection:
    """Open a database that exists, to read and write it (``rw``) or only to read it (``ro``).

    The first connection ignores journals, because applying one would change the file of another
    program. The second lets SQLite roll back a commit of ours that was interrupted.
    """
    with explained(path, kind):
        with (
            suppress(sqlite3.Error, UnicodeDecodeError),
            closing(_connected(path, "ro&immutable=1")) as connection,
        ):
            _require(path, kind, connection)
        connection = _connected(path, mode)
        try:
            _require(path, kind, connection)
            verdict = _pragma(connection, "integrity_check(1)")
            size = _pragma(connection, "page_count") * _pragma(connection, "page_size")
            if Path(path).stat().st_size < size and _pragma(connection, "journal_mode") != "wal":
                verdict = "it is truncated"
            if verdict != "ok":
                raise kind.error(f"{path} is damaged ({verdict}): {kind.advice}")
            if mode == "rw":
                connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def create(
    path: Path, kind: Kind, fill: Callable[[sqlite3.Connection], object] = lambda connection: None
) -> None:
    """Create a database with the rows that ``fill`` inserts, unless it exists."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with closing(sqlite3.connect(temporary)) as connection:
            connection.executescript(
                f"PRAGMA application_id = {kind.application};"
                f"PRAGMA user_version = {kind.version}; {kind.schema}"
            )
            with connection:
                fill(connection)
        os.link(temporary, path)
    except FileExistsError:  # another process has just made it
        pass
    except OSError:  # a file system without links
        if not path.exists():
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def explained(path: str | PathLike[str], kind: Kind) -> Iterator[None]:
    """Turn errors of SQLite into messages that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise kind.error(f"{path} cannot be read ({error}): {kind.advice}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise kind.error(
            f"{path} is damaged, or no {kind.name} ({error}): {kind.advice}"
        ) from error


def _connected(path: str | PathLike[str], mode: str) -> sqlite3.Connection:
    address = f"{Path(path).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address, uri=True, timeout=60.0, isolation_level=None, check_same_thread=False
    )
    connection.create_function("checksum", -1, checksum, deterministic=True)
    return connection


def _require(path: str | PathLike[str], kind: Kind, connection: sqlite3.Connection) -> None:
    if _pragma(connection, "application_id") != kind.application:
        raise kind.error(f"{path} is empty, or the database of another program: {kind.advice}")
    version = _pragma(connection, "user_version")
    if version != kind.version:
        raise kind.error(
            f"{path} is a {kind.name} of format {version}, this rblspi reads format "
            f"{kind.version}: install the version that wrote it, or choose another name"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
