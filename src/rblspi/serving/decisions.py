"""A policy at work: it decides, and logs its decisions and their outcomes."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple, Self

from rblspi.core.database import insert
from rblspi.core.files import lock
from rblspi.data import decision_log
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import ActionValues
from rblspi.serving.group_commit import GroupCommit
from rblspi.serving.states import Seen, States, each

#: characters of the name of an episode
LONGEST_NAME = 200


class NoLogError(ValueError):
    """An outcome cannot be recorded, because decisions are not."""


class Decision(NamedTuple):
    """An action, and the id with which its outcome is recorded."""

    id: str  # "" without a log
    action: Any


#: the fields of an outcome; the first two are required
_OUTCOME = ("id", "reward", "next_state", "terminated", "truncated", "elapsed")


class Decisions:
    """Makes decisions by a policy, and keeps a log from which the next policy can learn.

    When a method returns, its decisions or outcomes are on disk: they survive the end of the
    process, and a power cut. `rblspi.data.read_log` and ``rblspi fit`` read the log as transitions.
    Methods may be called from several threads; concurrent calls share one disk flush.

    Parameters
    ----------
    policy : LinearPolicy
    log : path, optional
        An SQLite database whose name ends in ``.db``; an existing one is continued. One process at
        a time may write to it. Without a log, decisions have no ids.

    Attributes
    ----------
    actions : list
        The names of the actions, or their numbers. Where an action is one to three numbers, these
        are the points of a grid, and each decision is one of them.
    taken : dict
        How often each action was decided.
    repeated : int
        The number of outcomes that arrived although they were recorded already.

    Examples
    --------
    >>> with Decisions(policy, "decisions.db") as decisions:  # doctest: +SKIP
    ...     decision = decisions.act({"stock": 1, "weekday": "Mon"})
    ...     decisions.record(decision.id, 3.5, {"stock": 0, "weekday": "Tue"})
    """

    def __init__(self, policy: LinearPolicy, log: str | PathLike[str] | None = None) -> None:
        self.policy = policy
        self.actions: list[Any] = [*policy.action_names] or policy.action_set.listed
        self.taken = dict.fromkeys(self.actions, 0)
        self.repeated = 0
        self._counts: dict[str, int] = {}
        self._states = States(policy)
        self._commits: GroupCommit | None = None
        self._resources = ExitStack()
        if log is not None:
            with self._resources:  # closes them after an error
                self._open(Path(log))
                self._resources = self._resources.pop_all()

    def _open(self, path: Path) -> None:
        encoding = self._states.encoding
        inputs = [] if encoding is None else encoding.plain()
        self._resources.enter_context(_only_writer(path))
        connection, heading = decision_log.opened_for_writing(path, self.actions, inputs)
        self._resources.callback(decision_log.close, connection)
        self._log, self._path = heading.log, path
        self._counts = decision_log.counts(connection)
        self._commits = GroupCommit(connection, path)
        self._resources.callback(self._commits.close)
        self._commits.do(self._insert_policy).result()

    def _insert_policy(self, connection: Connection) -> None:
        self._policy_number = 1 + decision_log.last(connection, "policies")
        algorithm = str(self.policy.provenance.get("algorithm", ""))
        row = (self._policy_number, _digest(self.policy), algorithm, time.time())
        insert(connection, "policies", row)

    @property
    def counts(self) -> dict[str, int] | None:
        """The number of decisions and of outcomes in the log; None without a log."""
        return dict(self._counts) or None

    @property
    def problem(self) -> str | None:
        """The reason why nothing can be written to the log any more; None if all is well."""
        return None if self._commits is None else self._commits.problem

    def close(self) -> None:
        """Close the log."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Deciding ----------------------------------------------------------------------------------

    def act(self, state: Any, episode: str | None = None) -> Decision:
        """Decide in a state.

        Parameters
        ----------
        state : mapping, sequence or number
            As `LinearPolicy.act` takes it.
        episode : str, optional
            The name of the decision's episode, such as a customer or a day. Decisions of an episode
            follow one another in the log, even if several episodes alternate.
        """
        (decision,) = self.start_acting([state], [episode]).result()
        return decision

    def start_acting(
        self, states: Sequence[Any], episodes: Sequence[str | None] | None = None
    ) -> Future[list[Decision]]:
        """Decide in several states; the future has a result once the decisions are on disk."""
        names = [None] * len(states) if episodes is None else [_episode(e) for e in episodes]
        if len(names) != len(states):
            raise ValueError(f"there are {len(states)} states, but {len(names)} episodes")
        seen = each("states", states, self._states.seen)
        actions = self._chosen(seen)
        if self._commits is None:
            made: Future[list[Decision]] = Future()
            decided = [Decision("", action) for action in actions]
            self._count_decisions(decided)
            made.set_result(decided)
            return made
        kept = [_text(self._states.plain(state)) for state in seen]
        written = [self._written(action) for action in actions]

        def write(connection: Connection) -> list[Decision]:
            first, now = 1 + decision_log.last(connection, "decisions"), time.time()
            for number, row in enumerate(zip(names, kept, written, strict=True), first):
                insert(connection, "decisions", (number, self._policy_number, now, *row))
            return [Decision(f"{self._log}-{n}", a) for n, a in enumerate(actions, first)]

        return self._commits.do(write, self._count_decisions)

    def _count_decisions(self, made: Sequence[Decision]) -> None:
        for decision in made:
            self.taken[decision.action] += 1
        if self._counts:
            self._counts["decisions"] += len(made)

    def values(self, states: Sequence[Any]) -> tuple[ActionValues, list[Any]]:
        """The value of every action in every state, and the actions that the policy takes."""
        seen = each("states", states, self._states.seen)
        return self.policy.action_values(self._states.batch(seen)[0]), self._chosen(seen)

    def _written(self, action: Any) -> Any:
        """What the log has of an action: its name or number, or the index of a point."""
        return self.actions.index(action) if self.policy.action_set.has_between else action

    def _chosen(self, seen: Sequence[Seen]) -> list[Any]:
        if not seen:
            return []
        return [self.actions[a] for a in self.policy.allowed_actions(*self._states.batch(seen))]

    # Outcomes ----------------------------------------------------------------------------------

    def record(
        self,
        id: str,
        reward: float,
        next_state: Any = None,
        terminated: bool = False,
        truncated: bool = False,
        elapsed: float | None = None,
    ) -> bool:
        """Record the outcome of a decision; returns whether it is new.

        Outcomes may arrive in any order, and the same one any number of times.

        Parameters
        ----------
        id : str
            Id of the decision.
        reward : float
        next_state : mapping, sequence or number
            The state after the action; it may be left out if it is terminal.
        terminated : bool
            Whether the next state is terminal.
        truncated : bool
            Whether the episode was cut short there.
        elapsed : float, optional
            The time until the next state, above 0. It is needed if the log is read with a
            ``discount_per``: in its units, or in seconds if that is a duration.
        """
        outcome = (id, reward, next_state, terminated, truncated, elapsed)
        return self.start_recording([dict(zip(_OUTCOME, outcome, strict=True))]).result() == 1

    def start_recording(self, outcomes: Iterable[Mapping[str, Any]]) -> Future[int]:
        """Record several outcomes, all of them or none; returns how many are new, once on disk.

        An outcome is a mapping from the names of the arguments of `record` to their values.
        """
        if self._commits is None:
            raise NoLogError("decisions are not written down: start the service with --log FILE")
        given = each("outcomes", list(outcomes), self._row)

        def write(connection: Connection) -> int:
            decided, now = decision_log.last(connection, "decisions"), time.time()
            new: dict[int, tuple[Any, ...]] = {}

            def compare(outcome: tuple[str, tuple[Any, ...]]) -> None:
                number, values = self._number(outcome[0], decided), outcome[1]
                found = connection.execute(_SELECT_OUTCOME, (number,)).fetchone()
                if values != (found or new.setdefault(number, values)):
                    raise ValueError(
                        f"the decision {outcome[0]} has another outcome already, which stays: the "
                        "outcome of a decision cannot be changed"
                    )

            each("outcomes", given, compare)
            for number, values in new.items():
                insert(connection, "outcomes", (number, now, *values))
            return len(new)

        def count(new: int) -> None:
            self.repeated += len(given) - new
            self._counts["outcomes"] += new

        return self._commits.do(write, count)

    def _number(self, identifier: str, last: int) -> int:
        """The number of the decision with an id."""
        log, _, digits = identifier.partition("-")
        if log != self._log or not re.fullmatch(r"[1-9]\d{0,14}", digits):
            raise ValueError(f"{identifier[:50]!r} is no id of a decision in {self._path.name}")
        if int(digits) > last:
            raise ValueError(f"there is no decision {identifier[:50]} in {self._path.name}")
        return int(digits)

    def _row(self, given: Any) -> tuple[str, tuple[Any, ...]]:
        """The id of an outcome, and its other values as the log keeps them."""
        names = given.keys() if isinstance(given, Mapping) else set()
        if not {*_OUTCOME[:2]} <= names <= {*_OUTCOME}:
            raise ValueError(
                f"{str(given)[:50]!r} is no outcome: it has id and reward, and may have "
                f"{', '.join(_OUTCOME[2:])}"
            )
        after, elapsed = given.get("next_state"), given.get("elapsed")
        ends = {name: given.get(name, False) for name in ("terminated", "truncated")}
        for name, flag in ends.items():
            if not isinstance(flag, bool):
                raise ValueError(f"{name}={flag!r} must be true or false")
        if after is None and not ends["terminated"]:
            raise ValueError("next_state is missing: give the state after the action")
        if after is not None:
            after = _text(self._states.plain(self._states.seen(after)))
        if elapsed is not None:
            elapsed = _number("elapsed", elapsed)
            if elapsed <= 0.0:
                raise ValueError(f"elapsed={elapsed!r} must be above 0: the time to the next state")
        reward = _number("reward", given["reward"])
        return str(given["id"]), (reward, after, *map(int, ends.values()), elapsed)


_SELECT_OUTCOME = (
    "SELECT reward, next_state, terminated, truncated, elapsed FROM outcomes WHERE decision = ?"
)


@contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a log, by a lock on a file beside it.

    Closing a second handle of the database itself would release the locks of SQLite.
    """
    name = Path(f"{path}-lock")
    with name.open("a") as file:
        lock(file.fileno(), path)
        try:
            yield
        finally:
            name.unlink(missing_ok=True)


def _text(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _number(name: str, given: Any) -> float:
    number = getattr(given, "item", lambda: given)()  # of a NumPy scalar
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{name}={number!r} must be a number")
    if not math.isfinite(number):
        raise ValueError(f"{name}={number!r} must be finite")
    return float(number) + 0.0  # -0.0 is 0.0, as it is for SQLite


def _episode(name: Any) -> str | None:
    text = isinstance(name, str) and len(name) <= LONGEST_NAME
    if name is None or (text and name == name.encode(errors="ignore").decode()):
        return None if name is None else str(name)
    raise ValueError(f"episode={str(name)[:50]!r} must be text of at most {LONGEST_NAME} letters")


def _digest(policy: LinearPolicy) -> str:
    """A short name of a policy, which distinguishes it from others."""
    numbers = [policy.action_names, str(policy.basis), policy.weights.tolist(), policy.pessimism]
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]
