"""The results file: one SQLite database in which each finished run is committed once.

A run is found by the digest of its settings, its seed and the version of the code that made it.
Arrays are stored as compressed bytes with their type and shape, so reading a file runs no code.
Every run has a checksum, so that a damaged file is refused and never gives other numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rblspi.experiments.definitions import Curve, Run, canonical
from rblspi.experiments.tasks import RunResult

_APPLICATION = 0x52424C53  # "RBLS"
_FORMAT = 3

_SCHEMA = f"""
BEGIN;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
CREATE TABLE curves (digest TEXT PRIMARY KEY, settings TEXT NOT NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    curve TEXT NOT NULL REFERENCES curves (digest),
    seed INTEGER NOT NULL,
    code TEXT NOT NULL,
    seconds REAL NOT NULL,
    steps INTEGER NOT NULL,
    warnings TEXT NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL,
    checksum TEXT NOT NULL,
    UNIQUE (curve, seed, code)
);
CREATE TABLE arrays (
    run INTEGER NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    shape TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run, name)
);
COMMIT;
"""
_COLUMNS = "curve, seed, code, seconds, steps, warnings, versions, finished"

#: what to do about a file that cannot be used
ADVICE = "move the file away, or choose another --out, and run again"


class StoreError(ValueError):
    """A file that is not a complete results file, or cannot be used as one."""


class Record(NamedTuple):
    """What is stored about one run apart from its arrays."""

    seed: int
    code: str
    seconds: float
    steps: int
    warnings: tuple[str, ...]
    versions: dict[str, str]
    finished: str


#: the arrays of a run, or of several, by name
Arrays = dict[str, NDArray[Any]]
#: all that is stored of a run
StoredRun = tuple[Curve, Record, Arrays]


class Store:
    """A results file.

    Parameters
    ----------
    path : path
        The file, which is created if it does not exist, along with its folder.

    Raises
    ------
    StoreError
        If the file exists but is not a complete results file of this format. It is not changed.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        try:
            if not self.path.exists():
                _create(self.path)
        except (OSError, sqlite3.Error) as error:
            message = f"{self.path} cannot be made ({error}): choose another --out"
            raise StoreError(message) from error
        _inspect(self.path)
        self._connection = _connect(self.path)
        self._connection.execute("PRAGMA synchronous = FULL")
        # Damaged text is told by its checksum.
        self._connection.text_factory = lambda text: text.decode(errors="surrogateescape")
        self._versions = versions()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, run: Run, result: RunResult) -> None:
        """Commit a run that has just finished; one that is stored already stays as it is."""
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        record = Record(
            *(run.seed, result.code, float(result.seconds), result.steps, result.warnings),
            *(self._versions, finished),
        )
        self.add_all([(run.curve, record, result.arrays)])

    def add_all(self, runs: Iterable[StoredRun]) -> int:
        """Commit several runs, all or none.

        A run that is stored already stays as it is, unless only means of its episodes are stored
        and now come episodes, or means that make these.

        Returns
        -------
        int
            The number of runs of which less was stored before, or nothing.
        """
        try:
            with self.transaction():
                return sum(self._insert(*run) for run in runs)
        except (sqlite3.Error, ValueError) as error:  # a damaged file may hold anything
            raise StoreError(f"{self.path} cannot be written: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all that is added within, or nothing after an error."""
        if self._connection.in_transaction:
            yield
            return
        with self._connection:  # commits, or rolls back after an error
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _insert(self, curve: Curve, record: Record, found: Arrays) -> bool:
        """Insert a run; False if as much of it is there already."""
        execute = self._connection.execute
        seed, code, seconds, steps, warnings, versions, finished = record
        row = (
            *(curve.digest, seed, code, seconds, steps),
            *(json.dumps(warnings), canonical(versions), finished),
        )
        wanted = "SELECT id FROM runs WHERE curve = ? AND seed = ? AND code = ?"
        if stored := execute(wanted, (curve.digest, seed, code)).fetchone():
            old, new = self.entries(curve).get((seed, code)), found.get("length")
            if old is None or new is None or not _is_finer(len(new), old):
                return False
            execute("DELETE FROM arrays WHERE run = ?", stored)
            execute("DELETE FROM runs WHERE id = ?", stored)
        arrays = [(name, *_encode(array)) for name, array in sorted(found.items())]
        settings = (curve.digest, canonical(curve.plain))
        execute("INSERT OR IGNORE INTO curves VALUES (?, ?)", settings)
        added = execute(
            f"INSERT INTO runs ({_COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, _checksum(row, arrays)),
        )
        for array in arrays:
            execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", (added.lastrowid, *array))
        return True

    def seeds(self, curve: Curve, code: str) -> set[int]:
        """Seeds with which this version of the code has run a curve."""
        wanted = "SELECT seed FROM runs WHERE curve = ? AND code = ?"
        return {seed for (seed,) in self._query(wanted, curve.digest, code)}

    def codes(self, curve: Curve) -> dict[str, int]:
        """Number of runs of a curve by version of the code; the version that ran last is last."""
        wanted = (
            "SELECT code, COUNT(*) FROM runs WHERE curve = ? GROUP BY code"
            " ORDER BY MAX(finished), MAX(id)"
        )
        return dict(self._query(wanted, curve.digest))

    def entries(self, curve: Curve) -> dict[tuple[int, str], int]:
        """How many episodes, or means of them, are stored of an online run, by seed and code."""
        wanted = (
            "SELECT seed, code, shape FROM arrays JOIN runs ON run = runs.id"
            " WHERE curve = ? AND name = 'length'"
        )
        found = {}
        for seed, code, shape in self._query(wanted, curve.digest):
            try:
                (number,) = json.loads(shape)
                whole = curve.episodes % number == 0
            except (ValueError, TypeError, ZeroDivisionError):
                whole = False
            if not whole:
                raise StoreError(
                    f"{self.path} is damaged: of {curve.name}, the run with seed {seed} has arrays "
                    f"of shape {shape}. Restore a copy of the file, or {ADVICE}"
                )
            found[seed, code] = number
        return found

    def seconds(self) -> dict[str, float]:
        """Mean processor time of a run, by digest of the curve."""
        return dict(self._query("SELECT curve, AVG(seconds) FROM runs GROUP BY curve"))

    def runs(self, curve: Curve, code: str) -> Iterator[tuple[Record, Arrays]]:
        """Runs of a curve by this version of the code with their arrays, in the order of seeds.

        Raises
        ------
        StoreError
            If a run does not have the checksum that it was stored with.
        """
        wanted = f"SELECT id, checksum, {_COLUMNS} FROM runs WHERE curve = ? AND code = ?"
        for number, checksum, *row in self._query(f"{wanted} ORDER BY seed", curve.digest, code):
            wanted = "SELECT name, type, shape, data FROM arrays WHERE run = ? ORDER BY name"
            arrays = self._query(wanted, number)
            _, seed, code, seconds, steps, warnings, versions, finished = row
            try:
                if checksum != _checksum(row, arrays):
                    raise ValueError("its checksum is wrong")
                found = {name: _decode(*array) for name, *array in arrays}
            except (ValueError, TypeError, zlib.error) as error:
                raise StoreError(
                    f"{self.path} is damaged: of {curve.name}, the run with seed {seed} cannot be "
                    f"used ({error}). Restore a copy of the file, or {ADVICE}"
                ) from error
            notes = tuple(json.loads(warnings)), json.loads(versions)
            yield Record(seed, code, seconds, steps, *notes, finished), found

    def _query(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path} cannot be read ({error}): {ADVICE}") from error


def _connect(path: Path, mode: str = "mode=rw") -> sqlite3.Connection:
    """Open a database that exists."""
    address = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(address, uri=True, timeout=60.0, isolation_level=None)


def _create(path: Path) -> None:
    """Make an empty results file, which gets its name only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.executescript(_SCHEMA)
        os.link(temporary, path)
    except FileExistsError:  # another process has just made it
        pass
    except OSError:  # a file system without links
        if not path.exists():
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _inspect(path: Path) -> None:
    """Refuse a file that is not ours or not complete, without writing to it.

    The first connection ignores journals, because applying one would change the file of another
    program. The second lets SQLite roll back a commit of ours that was interrupted.
    """
    with (
        suppress(sqlite3.Error, UnicodeDecodeError),
        closing(_connect(path, "mode=ro&immutable=1")) as connection,
    ):
        _require_ours(path, connection)
    try:
        with closing(_connect(path)) as connection:
            _require_ours(path, connection)
            size = _pragma(connection, "page_count") * _pragma(connection, "page_size")
            if path.stat().st_size < size:
                raise StoreError(f"{path} is truncated: {ADVICE}")
            verdict = _pragma(connection, "integrity_check(1)")
    except sqlite3.OperationalError as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is damaged, or not a results file ({error}): {ADVICE}") from error
    if verdict != "ok":
        raise StoreError(f"{path} is damaged ({verdict}): {ADVICE}")


def _require_ours(path: Path, connection: sqlite3.Connection) -> None:
    if _pragma(connection, "application_id") != _APPLICATION:
        raise StoreError(f"{path} is empty, or the database of another program: {ADVICE}")
    version = _pragma(connection, "user_version")
    if version != _FORMAT:
        raise StoreError(
            f"{path} has format {version}, but this version of rblspi reads format {_FORMAT}: "
            "install the version that wrote it, or choose another --out"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _checksum(row: Sequence[Any], arrays: Sequence[tuple[Any, ...]]) -> str:
    return hashlib.sha256(repr(([*row], arrays)).encode()).hexdigest()


def _is_finer(new: int, old: int) -> bool:
    """Whether so many entries of a run are parts of the ones that are stored."""
    return new > old and new % old == 0


def _encode(array: NDArray[Any]) -> tuple[str, str, bytes]:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.dtype.str, json.dumps(array.shape), zlib.compress(little.tobytes(), 6)


def _decode(kind: str, shape: str, data: bytes) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind not in "biuf":
        raise ValueError(f"type {kind!r} is not a number")
    return np.frombuffer(zlib.decompress(data), dtype).reshape(json.loads(shape)).copy()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    import platform
    from importlib.metadata import version

    packages = ("rblspi", "numpy", "scipy", "numba", "gymnasium")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
