"""The log of a policy at work: decisions, and what came of them.

A decision gets an id when it is made. Its outcome, the reward and the next state, arrives later and
in any order. Both are records of a journal (`rblspi.core.journal`), in JSON Lines:

    {"format": "rblspi-decisions", "version": 1, "log": "9f2c51d0", "actions": [...], ...}
    {"policy": "41d3...", "at": 1794907000.1, "algorithm": "fqi"}
    {"decision": 1, "at": ..., "episode": null, "state": {"stock": 1}, "action": "large"}
    {"outcome": 1, "at": ..., "reward": 3.5, "next_state": {"stock": 0}, "terminated": false, ...}

`transitions_in` puts outcomes to their decisions, and so makes a log of transitions, which
`rblspi.data.read_log` reads like any other.
"""

from __future__ import annotations

import json
import re
import secrets
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from rblspi.core.journal import DamageError, Journal, Line, whole_lines
from rblspi.data.columns import DataError
from rblspi.data.encoding import Encoding, Naming

FORMAT, VERSION = "rblspi-decisions", 1

_DECISION = re.compile(
    rb'\{"decision": (\d{1,15}), "at": [\d.]+, "episode": (null|"(?:[^"\\]|\\.)*"), "state": '
)
_OUTCOME = re.compile(rb'\{"outcome": (\d{1,15}), "at": [\d.]+, (?="reward": )')


class Heading(NamedTuple):
    """What the first record of a log says about all others."""

    log: str  # the first part of every id
    actions: tuple[Any, ...]  # names or numbers
    inputs: list[dict[str, Any]]  # the columns of a state; [] if it is just its numbers

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
    """Name, words, and whether values may be missing; what stands for them may change."""
    return [(each["name"], list(each["words"]), each["fill"] is None) for each in inputs]


def heading_of(path: str | PathLike[str]) -> Heading | None:
    """The heading of a log of decisions; None if the file is something else."""
    with open(path, "rb") as file:
        if not file.read(40).startswith(b'{"format": "%s"' % FORMAT.encode()):
            return None
    return _heading(next(_lines(path), None), path)


def _heading(line: Line | None, path: str | PathLike[str]) -> Heading:
    record = {} if line is None else json.loads(line.content)
    if record.get("format") != FORMAT or record.get("version") != VERSION:
        raise DataError(f"{path} is no log of decisions, or one of another version")
    return Heading(str(record["log"]), tuple(record["actions"]), record["inputs"])


def _lines(path: str | PathLike[str]) -> Iterator[Line]:
    try:
        yield from whole_lines(path)
    except DamageError as error:
        raise DataError(str(error)) from error


class Outcome(NamedTuple):
    """What came of a decision."""

    id: str
    reward: float
    next_state: Any = None  # needed unless it is terminal
    terminated: bool = False
    truncated: bool = False
    elapsed: float | None = None  # the time until the next state


class DecisionLog:
    """Writes decisions and outcomes, each once.

    Parameters
    ----------
    path : path
        A file in JSON Lines, which is gone on with if it is there.
    actions : sequence
        The names or numbers of the actions.
    inputs : list of dict
        The columns of states, see `rblspi.data.Encoding`; empty if states are just numbers.

    Attributes
    ----------
    decisions, outcomes : int
        How many there are in the file.
    """

    def __init__(
        self, path: str | PathLike[str], actions: Sequence[Any], inputs: list[dict[str, Any]]
    ) -> None:
        self.path = Path(path)
        self.decisions = self.outcomes = 0
        #: for every decision a number that tells one outcome from others; 0 if there is none yet
        self._known = array("I", [0])
        self._journal = Journal(path)
        try:
            self.heading = self._opened(Heading(secrets.token_hex(4), tuple(actions), inputs))
        except BaseException:
            self._journal.close()
            raise

    def _opened(self, wanted: Heading) -> Heading:
        """Read what is there, or write the heading."""
        if not self._journal.size:
            self._journal.append([{"format": FORMAT, "version": VERSION, **wanted._asdict()}])
            return wanted
        lines = _lines(self.path)
        found = _heading(next(lines), self.path)
        if not found.fits(wanted):
            raise ValueError(
                f"{self.path} is the log of a policy with other states or actions: choose another "
                "name"
            )
        _scan(lines, self._seen_decision, self._seen_outcome)
        return found

    def _seen_decision(self, number: int, line: Line, episode: bytes) -> None:
        self._known.extend([0] * (number + 1 - len(self._known)))
        self.decisions += 1

    def _seen_outcome(self, number: int, line: Line, said: bytes) -> None:
        if number < len(self._known):
            self._known[number] = _fingerprint(said)
            self.outcomes += 1

    def note_policy(self, digest: str, algorithm: str) -> None:
        """Write down which policy makes the decisions that follow."""
        self._journal.append([{"policy": digest, "at": time.time(), "algorithm": algorithm}])

    def decide(self, made: Sequence[tuple[Any, Any, str | None]]) -> list[str]:
        """Write down decisions, each a state, an action and an episode; returns their ids."""
        first, now = len(self._known), time.time()
        self._journal.append(
            {"decision": n, "at": now, "episode": episode, "state": state, "action": action}
            for n, (state, action, episode) in enumerate(made, first)
        )
        self._known.extend([0] * len(made))
        self.decisions += len(made)
        return [f"{self.heading.log}-{n}" for n in range(first, first + len(made))]

    def record(self, outcomes: Sequence[Outcome]) -> int:
        """Write down outcomes, all of them or none; returns how many were new.

        An outcome that is there already counts once.
        """
        new: dict[int, int] = {}
        records = []
        now = time.time()
        for i, outcome in enumerate(outcomes):
            where = f"outcomes[{i}]: " if len(outcomes) > 1 else ""
            number = self._number(outcome.id, where)
            said = outcome._asdict()
            del said["id"]
            if outcome.elapsed is None:
                del said["elapsed"]
            mark = _fingerprint(json.dumps(said, ensure_ascii=False)[1:].encode())
            before = self._known[number] or new.get(number, mark)
            if before != mark:
                raise ValueError(
                    f"{where}the decision {outcome.id} has another outcome already, which "
                    "stays: the outcome of a decision cannot be changed"
                )
            if not self._known[number] and number not in new:
                new[number] = mark
                records.append({"outcome": number, "at": now, **said})
        self._journal.append(records)
        for number, mark in new.items():
            self._known[number] = mark
        self.outcomes += len(new)
        return len(new)

    def _number(self, identifier: Any, where: str) -> int:
        log, _, digits = str(identifier).partition("-")
        short = str(identifier)[:50]
        if log != self.heading.log or not re.fullmatch(r"[1-9]\d{0,14}", digits):
            raise ValueError(f"{where}{short!r} is no id of a decision in {self.path.name}")
        if int(digits) >= len(self._known):
            raise ValueError(f"{where}there is no decision {short} in {self.path.name}")
        return int(digits)

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        self._journal.sync()

    def close(self) -> None:
        """Bring everything to the disk, and let other processes write."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _fingerprint(said: bytes) -> int:
    """A number that tells an outcome from others, and is not 0."""
    return zlib.crc32(said) or 1


def _scan(
    lines: Iterator[Line],
    decision: Callable[[int, Line, bytes], None],
    outcome: Callable[[int, Line, bytes], None],
) -> None:
    """Call functions with every decision and its episode, and with every outcome and its words."""
    for line in lines:
        if found := _DECISION.match(line.content):
            decision(int(found[1]), line, found[2])
        elif found := _OUTCOME.match(line.content):
            outcome(int(found[1]), line, line.content[found.end() :])


# A log of transitions --------------------------------------------------------------------------


def transitions_in(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """The decisions that have an outcome, each with that, in the order of their episodes.

    Decisions of an episode follow one another in the order in which they were made. An episode was
    cut short where the next decision was not made in the next state. Rows are read one by one; only
    the place of every record is kept in memory.
    """
    lines = _lines(path)
    heading = _heading(next(lines, None), path)
    decided, became, ranks = array("q", [-1]), array("q", [-1]), array("q", [0])
    episodes: dict[bytes, int] = {b"null": 0}

    def decision(number: int, line: Line, episode: bytes) -> None:
        more = number + 1 - len(decided)
        for places in (decided, became, ranks):
            places.extend([-1] * more)
        decided[number] = line.start
        ranks[number] = episodes.setdefault(episode, len(episodes))

    def outcome(number: int, line: Line, said: bytes) -> None:
        if number < len(became):
            became[number] = line.start

    _scan(lines, decision, outcome)
    whole = np.flatnonzero((np.array(decided) >= 0) & (np.array(became) >= 0))
    order = whole[np.argsort(np.array(ranks)[whole], kind="stable")]
    with open(path, "rb") as file:
        before: dict[str, Any] | None = None
        for number in order.tolist():
            row = _transition(heading, _at(file, decided[number]), _at(file, became[number]))
            if before is not None:
                yield _cut(before, row)
            before = row
        if before is not None:
            yield _cut(before, None)


def _at(file: Any, start: int) -> dict[str, Any]:
    file.seek(start)
    found: dict[str, Any] = json.loads(file.readline())
    return found


def _transition(
    heading: Heading, decision: dict[str, Any], outcome: dict[str, Any]
) -> dict[str, Any]:
    action, state = decision["action"], decision["state"]
    after = outcome["next_state"]
    return {
        "id": f"{heading.log}-{decision['decision']}",
        "episode": decision["episode"],
        "state": state,
        "action": action if heading.action_names else heading.actions.index(action),
        "reward": outcome["reward"],
        "next_state": state if after is None else after,  # which is terminal
        "terminated": outcome["terminated"],
        "truncated": outcome["truncated"],
        **({"elapsed": outcome["elapsed"]} if "elapsed" in outcome else {}),
    }


def _cut(row: dict[str, Any], following: dict[str, Any] | None) -> dict[str, Any]:
    """A row, whose episode was cut short if the next one does not go on with it."""
    goes_on = following is not None and (
        (following["episode"], following["state"]) == (row["episode"], row["next_state"])
    )
    row["truncated"] = not row["terminated"] and (row["truncated"] or not goes_on)
    return flat(row)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with one column for each part of an object: state.stock, next_state.stock."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        parts = value.items() if isinstance(value, dict) else ()
        found |= {f"{name}.{part}": v for part, v in parts} if parts else {name: value}
    return found
