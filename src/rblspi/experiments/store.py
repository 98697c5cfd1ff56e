"""Results in one SQLite file: every finished run is committed at once, and never twice.

A run is found by the digest of its settings, its seed and the version of the code that made it.
Arrays are stored as compressed bytes with their type and shape: reading a file runs nothing.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
import zlib
from contextlib import closing
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rblspi.experiments.definitions import Curve, Run, canonical
from rblspi.experiments.tasks import Outcome

_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x52424C53  # "RBLS"
_FORMAT = 1

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
    concerns TEXT NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL,
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


class StoreError(ValueError):
    """A file that does not hold results, or not all of them."""


class Record(NamedTuple):
    """What is known of one run, apart from its arrays."""

    id: int
    seed: int
    code: str
    seconds: float
    steps: int
    concerns: tuple[str, ...]
    versions: dict[str, str]
    finished: str


class Store:
    """A results file.

    Parameters
    ----------
    path : path
        Made if it is not there; its folder as well.

    Raises
    ------
    StoreError
        If the file is there and is not a whole results file of this format. It is left as it is.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            try:
                _create(self.path)
            except (OSError, sqlite3.Error) as error:
                raise StoreError(
                    f"{self.path} cannot be made ({error}): choose another --out"
                ) from error
        _inspect(self.path)
        self._connection = sqlite3.connect(self.path, timeout=60.0, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._versions = canonical(versions())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def add(self, run: Run, outcome: Outcome) -> None:
        """Commit a finished run; one that is there already stays as it is."""
        try:
            self._add(run, outcome)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error

    def _add(self, run: Run, outcome: Outcome) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            curve = run.curve
            execute(
                "INSERT OR IGNORE INTO curves VALUES (?, ?)", (curve.digest, canonical(curve.plain))
            )
            row = (
                curve.digest,
                run.seed,
                outcome.code,
                outcome.seconds,
                outcome.steps,
                json.dumps(outcome.concerns),
                self._versions,
                datetime.now(UTC).isoformat(timespec="seconds"),
            )
            added = execute(
                "INSERT OR IGNORE INTO runs (curve, seed, code, seconds, steps, concerns, versions,"
                " finished) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            if added.rowcount:
                for name, array in outcome.arrays.items():
                    execute(
                        "INSERT INTO arrays VALUES (?, ?, ?, ?, ?)",
                        (added.lastrowid, name, *_encode(array)),
                    )
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # Ctrl-C may come when all is committed
                execute("ROLLBACK")
            raise

    def seeds(self, curve: Curve, code: str) -> set[int]:
        """Seeds with which this code has run a curve."""
        rows = self._connection.execute(
            "SELECT seed FROM runs WHERE curve = ? AND code = ?", (curve.digest, code)
        )
        return {seed for (seed,) in rows}

    def codes(self, curve: Curve) -> dict[str, int]:
        """How many runs of a curve there are, by version of the code; the newest one last."""
        rows = self._connection.execute(
            "SELECT code, COUNT(*) FROM runs WHERE curve = ? GROUP BY code ORDER BY MAX(id)",
            (curve.digest,),
        )
        return dict(rows)

    def records(self, curve: Curve, code: str) -> list[Record]:
        """Runs of a curve by this code, in the order of their seeds."""
        rows = self._connection.execute(
            "SELECT id, seed, code, seconds, steps, concerns, versions, finished FROM runs"
            " WHERE curve = ? AND code = ? ORDER BY seed",
            (curve.digest, code),
        )
        return [
            Record(*row)._replace(concerns=tuple(json.loads(row[5])), versions=json.loads(row[6]))
            for row in rows
        ]

    def array(self, record: Record, name: str) -> NDArray[Any]:
        """One array of a run."""
        row = self._connection.execute(
            "SELECT type, shape, data FROM arrays WHERE run = ? AND name = ?", (record.id, name)
        ).fetchone()
        if row is None:
            raise StoreError(f"{self.path}: run {record.id} has no array {name!r}: {_ADVICE}")
        try:
            return _decode(*row)
        except (ValueError, TypeError, zlib.error) as error:
            raise StoreError(
                f"{self.path}: the array {name!r} of run {record.id} is damaged ({error}): "
                f"{_ADVICE}"
            ) from error

    def seconds(self) -> dict[str, float]:
        """Mean time of a run, by digest of the curve."""
        return dict(self._connection.execute("SELECT curve, AVG(seconds) FROM runs GROUP BY curve"))


_ADVICE = "move the file away, or choose another --out, and run again"


def _create(path: Path) -> None:
    """Make an empty results file that appears under its name only once it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.executescript(_SCHEMA)
        _name(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _name(temporary: Path, path: Path) -> None:
    """Give a file its name, unless somebody else was faster: theirs is as good."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not path.exists():
            os.replace(temporary, path)


def _inspect(path: Path) -> None:
    """Refuse a file that is not ours, or not whole, before anything can write to it."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise StoreError(f"{path} is not a file of results, or only the start of one: {_ADVICE}")
    if _number(head, 68) != _APPLICATION:
        raise StoreError(f"{path} is a SQLite file of another program: {_ADVICE}")
    if _number(head, 60) != _FORMAT:
        raise StoreError(
            f"{path} has format {_number(head, 60)}, this rblspi knows format {_FORMAT}: install "
            f"the version of rblspi that wrote it, or choose another --out"
        )
    # A journal beside the file is an interrupted commit: SQLite undoes it when it opens the file.
    interrupted = path.with_name(path.name + "-journal").exists()
    size = int.from_bytes(head[16:18], "big")
    if not interrupted and path.stat().st_size < _number(head, 28) * (65536 if size == 1 else size):
        raise StoreError(f"{path} is truncated: {_ADVICE}")
    try:
        with closing(sqlite3.connect(path, timeout=60.0)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StoreError(f"{path} cannot be read: {error}") from error
        verdict = str(error)
    if verdict != "ok":
        raise StoreError(f"{path} is damaged ({verdict}): {_ADVICE}")


def _number(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 4], "big")


def _encode(array: NDArray[Any]) -> tuple[str, str, bytes]:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.dtype.str, json.dumps(array.shape), zlib.compress(little.tobytes(), 6)


def _decode(kind: str, shape: str, data: bytes) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind not in "biuf":
        raise ValueError(f"type {kind!r} is not a number")
    return np.frombuffer(zlib.decompress(data), dtype).reshape(json.loads(shape)).copy()


def versions() -> dict[str, str]:
    """Versions of everything that numbers depend on."""
    import platform
    from importlib.metadata import version

    packages = ("rblspi", "numpy", "scipy", "numba", "gymnasium")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
