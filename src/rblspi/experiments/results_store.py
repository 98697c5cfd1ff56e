"""The results file: one SQLite database in which each finished run is committed once.

A run is found by the digest of its settings, its seed and the version of the code that made it. Its
record is JSON, and its arrays are an archive of NumPy's without pickled objects, so reading a file
runs no code.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from rblspi.core import database
from rblspi.core.database import checksum
from rblspi.experiments.definitions import Curve, canonical
from rblspi.experiments.tasks import Arrays, FinishedRun, Record

#: what to do about a file that cannot be used
ADVICE = "move the file away, or choose another --out, and run again"


class StoreError(ValueError):
    """A file is not a complete results file, or cannot be used."""


_KIND = database.Kind(
    "results file",
    application=0x52424C53,  # "RBLS"
    version=5,
    schema="""
    CREATE TABLE curves (digest TEXT PRIMARY KEY, settings TEXT NOT NULL);
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        curve TEXT NOT NULL REFERENCES curves (digest),
        seed INTEGER NOT NULL,
        code TEXT NOT NULL,
        block INTEGER NOT NULL,
        record TEXT NOT NULL,
        arrays BLOB NOT NULL,
        crc INTEGER NOT NULL,
        UNIQUE (curve, seed, code)
    );
    """,
    error=StoreError,
    advice=ADVICE,
)
_COLUMNS = "curve, seed, code, block, record, arrays"

# Episodes replace means of blocks; means of smaller blocks that divide the old blocks do, too.
_INSERT = f"""
INSERT INTO runs ({_COLUMNS}, crc) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (curve, seed, code) DO UPDATE SET
    block = excluded.block, record = excluded.record, arrays = excluded.arrays, crc = excluded.crc
WHERE block > excluded.block AND block % excluded.block = 0
"""


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
                self.path.parent.mkdir(parents=True, exist_ok=True)
                database.create(self.path, _KIND)
        except (OSError, sqlite3.Error) as error:
            message = f"{self.path} cannot be made ({error}): choose another --out"
            raise StoreError(message) from error
        self._connection = database.opened(self.path, _KIND)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, runs: Iterable[FinishedRun]) -> int:
        """Commit finished runs, all or none; returns how many of them changed the file.

        A run that is stored already stays as it is, unless only means over blocks of episodes are
        stored, and the new run has its episodes or means over parts of these blocks.
        """
        try:
            with self.transaction():
                return sum(self._insert(*run) for run in runs)
        except (sqlite3.Error, ValueError) as error:  # a damaged file may hold anything
            raise StoreError(f"{self.path} cannot be written: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: commit everything that is added within, or nothing after an error."""
        if self._connection.in_transaction:
            yield
            return
        with self._connection:  # commits, or rolls back after an error
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _insert(self, curve: Curve, record: Record, arrays: dict[str, Any]) -> int:
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        found = (curve.digest, record.seed, record.code, record.block)
        row = (*found, canonical(record._asdict()), packed.getvalue())
        execute = self._connection.execute
        settings = (curve.digest, canonical(curve.plain))
        execute("INSERT OR IGNORE INTO curves VALUES (?, ?)", settings)
        return max(execute(_INSERT, (*row, checksum(*row))).rowcount, 0)

    def seeds(self, curve: Curve, code: str) -> set[int]:
        """Seeds with which this version of the code has run a curve."""
        return {seed for seed, by in self.blocks(curve) if by == code}

    def codes(self, curve: Curve) -> dict[str, int]:
        """Number of runs of a curve by version of the code; the version that ran last is last."""
        wanted = (
            "SELECT code, COUNT(*) FROM runs WHERE curve = ? GROUP BY code"
            " ORDER BY MAX(record ->> 'finished'), MAX(id)"
        )
        return dict(self._query(wanted, curve.digest))

    def blocks(self, curve: Curve) -> dict[tuple[int, str], int]:
        """The number of episodes in a block of every run, by seed and version of the code."""
        wanted = "SELECT seed, code, block FROM runs WHERE curve = ?"
        return {(seed, code): n for seed, code, n in self._query(wanted, curve.digest)}

    def seconds(self) -> dict[str, float]:
        """Mean processor time of a run, by digest of the curve."""
        wanted = "SELECT curve, AVG(record ->> 'seconds') FROM runs GROUP BY curve"
        return dict(self._query(wanted))

    def runs(self, curve: Curve, code: str) -> Iterator[tuple[Record, Arrays]]:
        """Runs of a curve by this version of the code with their arrays, in the order of seeds.

        Raises
        ------
        StoreError
            If a run does not have the checksum that it was stored with.
        """
        wanted = f"SELECT crc, {_COLUMNS} FROM runs WHERE curve = ? AND code = ? ORDER BY seed"
        for crc, *row in self._query(wanted, curve.digest, code):
            _, seed, _, _, record, packed = row
            try:
                if crc != checksum(*row):
                    raise ValueError("its checksum is wrong")
                found = Record(**json.loads(record))
                with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive}
            except (ValueError, TypeError) as error:
                raise StoreError(
                    f"{self.path} is damaged: of {curve.name}, the run with seed {seed} cannot be "
                    f"used ({error}). Restore a copy of the file, or {ADVICE}"
                ) from error
            yield found._replace(warnings=tuple(found.warnings)), arrays

    def _query(self, sql: str, *values: Any) -> list[Any]:
        with database.explained(self.path, _KIND):
            return self._connection.execute(sql, values).fetchall()
