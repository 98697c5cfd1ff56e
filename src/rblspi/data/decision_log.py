"""The log of a policy at work: an SQLite database of decisions and their outcomes.

A decision gets its number when it is made. Its outcome, the reward and the next state, arrives
later and in any order. States are JSON, so that ``state ->> 'stock'`` is a number of one.
`transitions_in` joins both tables to a table of transitions, which `rblspi.data.read_log` reads.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from rblspi.data.columns import DataError
from rblspi.data.encoding import Encoding, Naming

#: how the names of these files end
SUFFIX = ".db"
_APPLICATION, _VERSION = 0x52424C44, 1  # "RBLD"

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
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
    started REAL NOT NULL
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
"""

#: the columns that a checksum covers, by table; the first one names the row
_COVERED = {
    "log": "id, actions, inputs",
    "decisions": "id, policy, made, episode, state, action",
    "outcomes": "decision, recorded, reward, next_state, terminated, truncated, elapsed",
}

# Decisions of an episode follow one another in the order in which they were made. An episode was
# cut short where the next decision was not made in the next state.
_JOINED = """
SELECT decisions.id, episode, state, action, reward, coalesce(next_state, state), terminated,
    NOT terminated AND (
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
    actions: tuple[Any, ...]  # names or numbers
    inputs: list[dict[str, Any]]  # the columns of a state; [] if it is a list of numbers

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of the actions; () if they are numbers."""
        return self.actions if all(isinstance(a, str) for a in self.actions) else ()

    @property
    def naming(self) -> Naming | None:
        """How states become observations, and the names of actions; None if neither has names."""
        if not self.inputs and not self.action_names:
            return None
        return Encoding.from_plain(self.inputs) if self.inputs else None, self.action_names

    def fits(self, other: Heading) -> bool:
        """Whether states and actions are the same in both."""
        return self.actions == other.actions and _columns(self.inputs) == _columns(other.inputs)


def _columns(inputs: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Name, words, and whether values may be missing; the value put in their place may change."""
    return [(each["name"], list(each["words"]), each["fill"] is None) for each in inputs]


def checksum(*values: Any) -> int:
    """CRC-32 of the values of a row."""
    return zlib.crc32(repr(values).encode(errors="surrogateescape"))


# Opening ---------------------------------------------------------------------------------------


def opened_for_writing(
    path: str | PathLike[str], actions: Sequence[Any], inputs: list[dict[str, Any]]
) -> tuple[sqlite3.Connection, Heading]:
    """Open a log, which is created if there is none, such that a commit survives a power cut.

    Raises
    ------
    ValueError
        If the file is damaged, of another program, or of a policy with other states or actions.
    """
    if Path(path).suffix != SUFFIX:
        raise ValueError(
            f"{path}: a log of decisions is an SQLite database: choose a name that ends in {SUFFIX}"
        )
    wanted = Heading(secrets.token_hex(4), tuple(actions), inputs)
    with _explained(path):
        connection = _connect(path, "rwc")
        try:
            if _is_empty(connection):
                _create(connection, wanted)
            found = _checked(connection, path)
            if not found.fits(wanted):
                raise ValueError(
                    f"{path} is the log of a policy with other states or actions: choose another "
                    "name"
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection, found


def close(connection: sqlite3.Connection) -> None:
    """Close a log, and leave one file, which can also be read where nothing can be written."""
    with closing(connection), suppress(sqlite3.Error):  # such as another program that reads
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[tuple[sqlite3.Connection, Heading]]:
    """A log to read from."""
    with _explained(path), closing(_connect(path, "ro")) as connection:
        connection.execute("BEGIN")  # rows that arrive meanwhile are left out
        yield connection, _checked(connection, path)


@contextmanager
def _explained(path: str | PathLike[str]) -> Iterator[None]:
    """Errors of SQLite as sentences."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} is damaged, or no log of decisions ({error}): restore a copy of the file, or "
            "choose another name"
        ) from error


def _connect(path: str | PathLike[str], mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(path).absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=60.0,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.create_function("checksum", -1, checksum, deterministic=True)
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and not _pragma(connection, "application_id")


def _create(connection: sqlite3.Connection, heading: Heading) -> None:
    row = (heading.log, json.dumps(heading.actions), json.dumps(heading.inputs))
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
    connection.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (*row, checksum(*row)))
    connection.execute("COMMIT")


def _checked(connection: sqlite3.Connection, path: str | PathLike[str]) -> Heading:
    """The heading of a log of which every row is as it was written."""
    if _pragma(connection, "application_id") != _APPLICATION:
        raise DataError(f"{path} is the database of another program: choose another name")
    if _pragma(connection, "user_version") != _VERSION:
        raise DataError(f"{path} is a log of decisions of another version of rblspi")
    verdict = _pragma(connection, "integrity_check(1)")
    if verdict != "ok":
        raise DataError(f"{path} is damaged ({verdict}): restore a copy of the file")
    for table, covered in _COVERED.items():
        wrong = f"SELECT {covered.split(',')[0]} FROM {table} WHERE crc != checksum({covered})"
        if row := connection.execute(wrong).fetchone():
            raise DataError(
                f"{path}, row {row[0]} of {table}: the row is damaged: restore a copy of the file, "
                "or delete the row to go on without it"
            )
    heading = connection.execute("SELECT id, actions, inputs FROM log").fetchone()
    if heading is None:
        raise DataError(f"{path} is damaged: it does not say which actions there are")
    return Heading(heading[0], tuple(json.loads(heading[1])), json.loads(heading[2]))


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of decisions and of outcomes."""
    count = "SELECT count(*) FROM {}"
    tables = ("decisions", "outcomes")
    return {table: connection.execute(count.format(table)).fetchone()[0] for table in tables}


# A table of transitions ------------------------------------------------------------------------


def heading_of(path: str | PathLike[str]) -> Heading | None:
    """The heading of a log of decisions; None if the name is that of another kind of file."""
    if Path(path).suffix != SUFFIX:
        return None
    with _opened(path) as (_, heading):
        return heading


def transitions_in(path: str | PathLike[str]) -> Any:
    """The decisions that have an outcome, each with that, as an Arrow table in order of episodes.

    A state with names has a column for each of them (``state.stock``, ``next_state.stock``). There
    is a column ``elapsed`` if an outcome has one.
    """
    import pyarrow as pa

    with _opened(path) as (connection, heading):
        schema = _schema(heading)
        found = connection.execute(_JOINED)
        batches = []
        while rows := found.fetchmany(_ROWS):
            columns = zip(_columns_of(rows, heading), schema.types, strict=True)
            arrays = [pa.array(values, kind) for values, kind in columns]
            batches.append(pa.record_batch(arrays, schema=schema))
    table = pa.Table.from_batches(batches, schema)
    timed = table.column("elapsed").null_count < table.num_rows
    return table if timed else table.drop_columns("elapsed")


def _schema(heading: Heading) -> Any:
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    columns = [(column["name"], text if column["words"] else number) for column in heading.inputs]

    def state(name: str) -> list[tuple[str, Any]]:
        parts = [(f"{name}.{part}", kind) for part, kind in columns]
        return parts or [(name, pa.list_(number))]

    return pa.schema(
        [
            *(("id", text), ("episode", text), *state("state")),
            ("action", text if heading.action_names else pa.int64()),
            *(("reward", number), *state("next_state")),
            *(("terminated", pa.bool_()), ("truncated", pa.bool_()), ("elapsed", number)),
        ]
    )


def _columns_of(rows: list[tuple[Any, ...]], heading: Heading) -> list[Sequence[Any]]:
    """The columns of `_schema` for rows of `_JOINED`."""
    ids, episodes, states, actions, rewards, after, terminated, truncated, elapsed = zip(
        *rows, strict=True
    )
    numbers = {action: number for number, action in enumerate(heading.actions)}
    return [
        [f"{heading.log}-{number}" for number in ids],
        episodes,
        *_state_columns(states, heading),
        actions if heading.action_names else [numbers[action] for action in actions],
        rewards,
        *_state_columns(after, heading),
        list(map(bool, terminated)),
        list(map(bool, truncated)),
        elapsed,
    ]


def _state_columns(texts: Sequence[str], heading: Heading) -> list[list[Any]]:
    states = list(map(json.loads, texts))
    names = [column["name"] for column in heading.inputs]
    return [[state[name] for state in states] for name in names] or [states]
