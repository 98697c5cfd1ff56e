"""The log of a policy at work: an SQLite database of decisions and their outcomes.

A decision gets its number when it is made. Its outcome, the reward and the next state, arrives
later and in any order. States are JSON, so that ``state ->> 'stock'`` is a number of one.
`transitions_in` joins both tables to a frame of transitions, which `rblspi.data.read_log` reads.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rblspi.core import database
from rblspi.data.columns import DataError
from rblspi.data.encoding import ActionNames, Encoding, Naming, points_of

if TYPE_CHECKING:
    import polars as pl

#: how the names of these files end
SUFFIX = ".db"
_KIND = database.Kind(
    "log of decisions",
    application=0x52424C44,  # "RBLD"
    version=2,
    schema="""
    CREATE TABLE log (
        id TEXT PRIMARY KEY,
        actions TEXT NOT NULL,
        inputs TEXT NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE TABLE policies (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL,
        algorithm TEXT NOT NULL,
        started REAL NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE TABLE decisions (
        id INTEGER PRIMARY KEY,
        policy INTEGER NOT NULL REFERENCES policies (id),
        made REAL NOT NULL,
        episode TEXT,
        state TEXT NOT NULL,
        action NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE TABLE outcomes (
        decision INTEGER PRIMARY KEY REFERENCES decisions (id),
        recorded REAL NOT NULL,
        reward REAL NOT NULL,
        next_state TEXT,
        terminated INTEGER NOT NULL,
        truncated INTEGER NOT NULL,
        elapsed REAL,
        crc INTEGER NOT NULL
    );
    """,
    error=DataError,
    advice="restore a copy of the file, or choose another name",
)

# Decisions of an episode follow one another in the order in which they were made. An episode was
# cut short where the next decision was not made in the next state.
_JOINED = """
SELECT ? || '-' || decisions.id, episode, state, action, reward, coalesce(next_state, state),
    terminated, NOT terminated AND (
        truncated OR next_state IS NOT lead(state) OVER (PARTITION BY episode ORDER BY decisions.id)
    ),
    elapsed
FROM decisions JOIN outcomes ON decision = decisions.id
ORDER BY episode IS NOT NULL, min(decisions.id) OVER (PARTITION BY episode), decisions.id
"""
#: rows that are converted at a time
_ROWS = 2**13


class Heading(NamedTuple):
    """What holds for all decisions in a log."""

    log: str  # the first part of every id
    actions: tuple[Any, ...]  # names or numbers; lists if an action has several numbers
    inputs: list[dict[str, Any]]  # the columns of a state; [] if it is a list of numbers

    @property
    def action_names(self) -> ActionNames:
        """The names of the actions, or their points; () if they count from a whole number."""
        kinds = {type(action) for action in self.actions}
        return self.actions if kinds in ({str}, {float}) else ()

    @property
    def naming(self) -> Naming | None:
        """How states become observations, and the names of actions; None if neither has names."""
        if not self.inputs and not self.action_names:
            return None
        return Encoding.from_plain(self.inputs) if self.inputs else None, self.action_names

    def fits(self, other: Heading) -> bool:
        """Whether states and actions are the same in both; what fills missing values may change."""
        columns = (
            [(each["name"], [*each["words"]], each["fill"] is None) for each in heading.inputs]
            for heading in (self, other)
        )
        return self.actions == other.actions and next(columns) == next(columns)


# Writing ---------------------------------------------------------------------------------------


def opened_for_writing(
    path: Path, actions: Sequence[Any], inputs: list[dict[str, Any]]
) -> tuple[sqlite3.Connection, Heading]:
    """Open a log, which is created if there is none, such that a commit survives a power cut.

    Raises
    ------
    ValueError
        If the file is damaged, of another program, or of a policy with other states or actions.
    """
    if path.suffix != SUFFIX:
        raise ValueError(
            f"{path}: a log of decisions is an SQLite database: choose a name that ends in {SUFFIX}"
        )
    plain = json.loads(json.dumps([*actions]))
    wanted = Heading(secrets.token_hex(4), tuple(plain), inputs)
    if not path.exists():
        row = wanted.log, json.dumps(wanted.actions), json.dumps(wanted.inputs)
        with database.explained(path, _KIND):
            database.create(path, _KIND, lambda connection: database.insert(connection, "log", row))
    with database.explained(path, _KIND):
        connection = database.opened(path, _KIND)
        try:
            found = _heading(connection, path)
            if not found.fits(wanted):
                raise ValueError(
                    f"{path} is the log of a policy with other states or actions: choose another "
                    "name"
                )
            connection.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            connection.close()
            raise
        return connection, found


def close(connection: sqlite3.Connection) -> None:
    """Close a log, and leave one file, which can also be read where nothing can be written."""
    with closing(connection), suppress(sqlite3.Error):  # such as another program that reads
        connection.execute("PRAGMA journal_mode = DELETE")


def last(connection: sqlite3.Connection, table: str) -> int:
    """The number of the last row of a table; 0 if there is none."""
    found: int = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
    return found


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of decisions and of outcomes."""
    count = "SELECT count(*) FROM {}"
    tables = ("decisions", "outcomes")
    return {table: connection.execute(count.format(table)).fetchone()[0] for table in tables}


# Reading ---------------------------------------------------------------------------------------


def heading_of(path: Path) -> Heading | None:
    """The heading of a log of decisions; None if the name is that of another kind of file."""
    if path.suffix != SUFFIX:
        return None
    with _opened(path) as (_, heading):
        return heading


def transitions_in(path: str | PathLike[str]) -> pl.DataFrame:
    """The decisions that have an outcome, each with that, in the order of episodes.

    A state with names is a struct. There is a column ``elapsed`` if an outcome has one.
    """
    import polars as pl

    with _opened(path) as (connection, heading):
        text, flag, real = pl.String, pl.Int64, pl.Float64
        points = points_of(heading.action_names)
        schema = {
            "id": text,
            "episode": text,
            "state": text,
            "action": text if heading.action_names and not points else pl.Int64,
            "reward": real,
            "next_state": text,
            "terminated": flag,
            "truncated": flag,
            "elapsed": real,
        }
        found = connection.execute(_JOINED, (heading.log,))
        frames = [pl.DataFrame(schema=schema)]
        while rows := found.fetchmany(_ROWS):
            frames.append(pl.DataFrame(rows, schema, orient="row"))
    parts = {each["name"]: text if each["words"] else real for each in heading.inputs}
    state = pl.Struct(parts) if parts else pl.List(real)
    frame = pl.concat(frames).with_columns(
        pl.col("state", "next_state").str.json_decode(state),
        pl.col("terminated", "truncated").cast(pl.Boolean),
    )
    if points:  # the log has indices
        frame = frame.with_columns(action=pl.Series(points).gather(frame["action"]))
    elif isinstance(heading.actions[0], int):
        frame = frame.with_columns(pl.col("action") - heading.actions[0])
    return frame if frame["elapsed"].count() else frame.drop("elapsed")


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[tuple[sqlite3.Connection, Heading]]:
    """A log to read from."""
    with (
        database.explained(path, _KIND),
        closing(database.opened(path, _KIND, "ro")) as connection,
    ):
        connection.execute("BEGIN")  # rows that arrive meanwhile are left out
        yield connection, _heading(connection, path)


def _heading(connection: sqlite3.Connection, path: str | PathLike[str]) -> Heading:
    """The heading of a log, of which every row is as it was written."""
    for table in ("log", "policies", "decisions", "outcomes"):
        names = [name for name, *_ in connection.execute(f"SELECT * FROM {table}").description]
        wrong = f"SELECT {names[0]} FROM {table} WHERE crc != checksum({', '.join(names[:-1])})"
        if row := connection.execute(wrong).fetchone():
            raise DataError(
                f"{path}, row {row[0]} of {table}: the row is damaged: restore a copy of the file, "
                "or delete the row to go on without it"
            )
    heading = connection.execute("SELECT id, actions, inputs FROM log").fetchone()
    if heading is None:
        raise DataError(f"{path} is damaged: it does not say which actions there are")
    return Heading(heading[0], tuple(json.loads(heading[1])), json.loads(heading[2]))
