"""Which columns of a table hold what: the roles of columns, named or guessed from usual names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from rblspi.data.periods import Period, PeriodLike

Names = str | Sequence[str]

#: the fields of a transition, and the names that are tried if none is given
_USUAL = {
    "state": ("state", "observation", "obs"),
    "action": ("action", "act"),
    "reward": ("reward", "rew"),
    "next_state": ("next_state", "next_observation", "next_obs"),
    "terminated": ("terminated", "terminal"),
    "truncated": ("truncated",),
    "next_allowed": ("next_allowed", "next_action_mask"),
    "done": ("done", "dones"),
    "episode": ("episode", "episode_id", "trajectory", "trajectory_id", "session", "session_id"),
    "time": ("time", "timestamp", "step", "timestep", "time_step", "t", "date", "datetime"),
    "elapsed": (),  # which may as well be the time since the last row, so that it is not guessed
}
#: names of the index of a frame that are those of columns: of times and episodes
OF_INDEX = (*_USUAL["episode"], *_USUAL["time"])
#: the fields that a table may lack
_OPTIONAL = ("truncated", "next_allowed", "done", "episode", "time", "elapsed")
#: columns that are neither states nor anything else, as far as their names tell
_NO_STATE = re.compile(r"(|id|index|row|level_\d+|unnamed.*|propensity|probability|comment|note)")
#: what may be said of the reading in `Columns.from_text`, beside the names of columns
_CHOICES = ("ends", "missing", "categorical", "discount_per")
#: `Columns.episode` where every file is one episode
FILE = "file"


class DataError(ValueError):
    """Logged data that cannot be used. The message names the file, the row and the column."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what, and how they are read.

    A table has rows of transitions, with columns for the next state, or rows of episodes, in which
    the next state is the state in the next row of the episode. A state is one column of numbers,
    words or lists, or several columns of numbers or words. If there is no column called ``name``, a
    state is read from the columns ``name_0``, ``name_1``, ..., or from those that begin with
    ``name.``, as nested JSON is read. Names that are not given are guessed whatever
    their case; in a log (`rblspi.data.read_log`), columns without a usual name and without
    another role are the state.

    Parameters
    ----------
    state, next_state : str or sequence of str, optional
        By default: state, observation or obs; next_state, next_observation or next_obs.
    action, reward : str, optional
        By default: action or act; reward or rew. Actions are numbers from 0 on, or words.
    terminated : str, optional
        Whether the next state is terminal; reaching a time limit does not make it terminal. By
        default: terminated or terminal.
    truncated : str, optional
        Whether the episode was cut short after this row. By default: truncated, if there is such
        a column. If not, an episode was cut short wherever the next row does not continue it.
    next_allowed : str or sequence of str, optional
        Which actions are allowed in the next state: a column for every action, or one of lists. By
        default: next_allowed or next_action_mask, if there are such columns; without them, all are.
    done : str, optional
        Whether the episode ended after this row, for whichever reason. By default: done.
    episode : str, optional
        Which episode a row belongs to. By default: episode, trajectory, session, or one of these
        with _id. Without such a column, episodes end where one of the flags above is true; if it
        is ``"file"``, every file is an episode.
    time : str, optional
        The order of the rows of an episode: numbers or dates. By default: time, timestamp, step,
        t, date or a similar name. Without such a column, rows are in order.
    elapsed : str, optional
        The time until the next state, above 0: numbers or durations. It is for ``discount_per``, if
        the time of the next row does not tell, and is not guessed.
    categorical : str or sequence of str, optional
        Columns whose values are names, also if they look like numbers.
    ends : "terminated", "truncated" or int, optional
        What the end of an episode means where no column tells: a terminal state, a cut, or a cut
        in episodes of this many rows (a time limit) and a terminal state in shorter ones.
    missing : "error" or "indicator"
        What is done about a state without a value: an error, or the middle of its range together
        with a further number, which is 1 where the value is missing and 0 elsewhere.
    discount_per : float, str or timedelta, optional
        T, the time over which the discount gamma applies once: what comes after a transition that
        takes the time t is discounted by gamma^(t / T), as in a semi-Markov decision problem. A
        number in the units of the time, or, if times are dates, a duration such as ``"1h"``,
        ``"30min"`` or ``"1.5 days"``. By default, every transition counts as one step.
    """

    state: Names | None = None
    action: Names | None = None
    reward: Names | None = None
    next_state: Names | None = None
    terminated: Names | None = None
    truncated: Names | None = None
    next_allowed: Names | None = None
    done: Names | None = None
    episode: Names | None = None
    time: Names | None = None
    elapsed: Names | None = None
    categorical: Names = ()
    ends: Literal["terminated", "truncated"] | int | None = None
    missing: Literal["error", "indicator"] = "error"
    discount_per: PeriodLike | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.ends, int) and not isinstance(self.ends, bool) and self.ends > 0
        if self.ends not in (None, "terminated", "truncated") and not whole:
            raise ValueError(
                f"ends={self.ends!r} must be terminated, truncated, or the number of rows after "
                "which a time limit cuts an episode short"
            )
        if self.missing not in ("error", "indicator"):
            raise ValueError(f"missing={self.missing!r} must be error or indicator")
        if self.elapsed is not None and self.discount_per is None:
            raise ValueError(
                f"elapsed={self.elapsed!r} is of no use without discount_per, the time over which "
                "the discount applies once"
            )
        if self.period is not None and not isinstance(self.elapsed, str | None):
            raise ValueError(f"elapsed={self.elapsed!r} must be one column")

    @property
    def period(self) -> Period | None:
        """The time over which the discount applies once; None: a step, however long it takes."""
        return None if self.discount_per is None else Period.of(self.discount_per)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``state=x+y,action=a,...``, where + joins the columns of a state."""
        found: dict[str, Any] = {}
        for assignment in text.split(","):
            field, equals, names = (word.strip() for word in assignment.partition("="))
            if not equals or field not in (*_USUAL, *_CHOICES) or not names:
                raise ValueError(
                    f"columns {assignment!r} must say FIELD=NAME, where FIELD is one of "
                    f"{', '.join((*_USUAL, *_CHOICES))}"
                )
            found[field] = tuple(names.split("+")) if "+" in names else names
        if str(found.get("ends")).isdigit():
            found["ends"] = int(found["ends"])
        return cls(**found)

    def roles_in(self, names: Iterable[str], source: str) -> Roles:
        """Find the role of every column of a log, which may have rows of episodes."""
        present = list(names)
        require_unique(present, source)
        by_file = self.episode == FILE and FILE not in present
        fields = [f for f in _USUAL if "state" not in f and not (by_file and f == "episode")]
        found = {
            field: self.find(field, present, source, required=field in ("action", "reward"))
            for field in fields
        }
        taken = {name for columns in found.values() for name in columns}
        left = [name for name in present if name not in taken]
        states = self._states(left, present, source)
        return Roles(_in_order(found | states), self, tuple(present), by_file)

    def _states(
        self, left: list[str], present: list[str], source: str
    ) -> dict[str, tuple[str, ...]]:
        """The columns of the state and of the next state, if there are any of the latter."""
        required = self.next_state is not None
        after = self.find("next_state", present, source, required=required)
        state = self.find("state", present, source, required=self.state is not None)
        if not state:
            partner = {name: _partner(name, left) for name in left}
            paired = tuple(name for name, other in partner.items() if other is not None)
            if paired and not after:
                return {"state": paired, "next_state": tuple(str(partner[n]) for n in paired)}
            state = tuple(n for n in left if n not in after and not _is_no_state(n))
        if not state:
            self.find("state", present, source)  # says that there is none
        return {"state": state, "next_state": after}

    def find(
        self, field: str, present: list[str], source: str, required: bool | None = None
    ) -> tuple[str, ...]:
        """The columns of a field; () if there are none, and none is needed."""
        wanted = getattr(self, field)
        if wanted is None or isinstance(wanted, str):
            candidates = _USUAL[field] if wanted is None else (wanted,)
            for name in candidates:
                if name in present:
                    return (name,)
                alike = [other for other in present if other.strip().lower() == name]
                if wanted is None and len(alike) == 1:
                    return (alike[0],)
                parts = _numbered(name, present) or _parts(name, present)
                if parts and field in ("state", "next_state", "next_allowed"):
                    return parts
            needed = field not in _OPTIONAL if required is None else required
            if wanted is None and not needed:
                return ()
            missing = candidates[:1]
        else:
            missing = tuple(name for name in wanted if name not in present)
            if not missing:
                return tuple(wanted)
        flags = ("terminated", "truncated", "done")
        what = f"{field} flag" if field in flags else field.replace("_", " ")
        raise DataError(
            f"{source} has no column {missing[0]!r} for the {what}, only {', '.join(present)}: say "
            f"which one it is, {field}=NAME in --columns or Columns"
        )


@dataclass(frozen=True)
class Roles:
    """The columns of a log by role, as they were found in a table."""

    columns: dict[str, tuple[str, ...]]  # by field; without those that are absent
    choices: Columns
    present: tuple[str, ...]  # all columns of the table
    by_file: bool = False  # whether every file is an episode

    @property
    def of_episodes(self) -> bool:
        """Whether the next state is in the next row."""
        return "next_state" not in self.columns

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns whose values are names in any case."""
        given = self.choices.categorical
        names = (given,) if isinstance(given, str) else tuple(given)
        unknown = [name for name in names if name not in self.present]
        if unknown:
            raise DataError(
                f"categorical={unknown[0]}: there is no such column, only {', '.join(self.present)}"
            )
        return names

    def names(self, field: str) -> tuple[str, ...]:
        """The columns of a field; () if there are none."""
        return self.columns.get(field, ())

    def name(self, field: str) -> str | None:
        """The one column of a field; None if there is none."""
        return next(iter(self.names(field)), None)

    def without(self, field: str) -> Roles:
        """The same roles without a field."""
        left = {name: columns for name, columns in self.columns.items() if name != field}
        return replace(self, columns=left)

    @property
    def used(self) -> list[str]:
        """All columns with a role, each once."""
        return list(dict.fromkeys(name for names in self.columns.values() for name in names))

    def guessed(self, field: str) -> bool:
        """Whether the columns of a field were not named by the user."""
        return getattr(self.choices, field) is None

    def require_pairs(self, source: str) -> None:
        """Raise an error if the state and the next state have not as many columns."""
        state, after = self.names("state"), self.names("next_state")
        if after and len(state) != len(after):
            raise DataError(
                f"{source}: the state has {len(state)} columns ({', '.join(state)}), but the next "
                f"state {len(after)} ({', '.join(after)}): name them with state= and next_state="
            )

    def table(self, values: Callable[[str, str], str]) -> str:
        """All roles and their columns in a table, whose last column is that of the values."""
        rows = [("role", "column", "values")]
        for role, names in self.columns.items():
            guess = " (guessed)" if self.guessed(role) else ""
            rows += [(f"{role}{guess}", name, values(role, name)) for name in names]
        if self.by_file:
            rows.append(("episode", "every file", values("episode", "")))
        if self.choices.discount_per is not None:
            rows.append(("discount_per", str(self.choices.discount_per), ""))
        because = {True: "because of its name; state=NAMES can name it", False: ""}
        rows += [("not used", n, because[self.left_out(n)]) for n in self.unused]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(
            f"{role:<{widths[0]}}  {name:<{widths[1]}}  {value}".rstrip()
            for role, name, value in rows
        )

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns without a role."""
        return tuple(name for name in self.present if name not in self.used)

    def left_out(self, name: str) -> bool:
        """Whether a column is not part of the state because of what it is called."""
        return self.guessed("state") and _is_no_state(name)


def _is_no_state(name: str) -> bool:
    return _NO_STATE.fullmatch(name.lower().strip()) is not None


def require_unique(names: Iterable[str], source: str) -> None:
    """Raise an error if several columns of a table have the same name."""
    present = list(names)
    twice = [name for name in present if present.count(name) > 1 and name.strip()]
    if twice:
        raise DataError(f"{source} has several columns called {twice[0]!r}: keep one of them")


def _in_order(found: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    order = [field.name for field in fields(Columns)]
    return {field: found[field] for field in sorted(found, key=order.index) if found[field]}


def _partner(name: str, present: list[str]) -> str | None:
    """The column of the same part of the next state, such as next_speed or speed_next."""
    for other in (f"next_{name}", f"{name}_next", f"new_{name}"):
        if other in present:
            return other
    return None


def _numbered(name: str, present: list[str]) -> tuple[str, ...]:
    """The columns name_0, name_1, ..., if they are numbered without gaps."""
    pattern = re.compile(re.escape(name) + r"_(\d+)")
    numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, present) if match)
    complete = numbers == list(range(len(numbers)))
    return tuple(f"{name}_{number}" for number in numbers) if complete else ()


def _parts(name: str, present: list[str]) -> tuple[str, ...]:
    """The columns name.x, name.y, ..., as nested JSON is written in a table."""
    return tuple(other for other in present if other.startswith(f"{name}."))
