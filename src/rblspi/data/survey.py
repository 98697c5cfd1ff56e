"""What the columns of a log hold, found by reading all of it once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rblspi.core.types import Integers, Vector
from rblspi.data.arrow_values import FLAGS
from rblspi.data.columns import DataError, Roles
from rblspi.data.decoding import Rows
from rblspi.data.encoding import Encoding, Input, in_order
from rblspi.data.log_rows import LogDecoder
from rblspi.data.log_source import LogSource, TellRows
from rblspi.data.profiles import MOST_WORDS, NONE, Profile, listed

#: different words of a column that are taken for names without being told so
NAMES = 100
#: below this, whole numbers are exact in a float
EXACT = 2.0**53
#: numbers with a decimal comma, with marks between thousands, percentages, and sums of money
_WRITTEN_NUMBER = re.compile(r"[-+]?[$€£]?\s?[-+]?\d[\d.,' ]*\s?[%$€£]?")


@dataclass
class Survey:
    """The columns of a log and their values, and whether rows of episodes are in order."""

    name: str  # of the log
    roles: Roles
    profiles: dict[str, Profile]
    rows: int = 0
    episodes: dict[Any, int] = field(default_factory=dict)  # their numbers, by name
    in_order: bool = True
    encoding: Encoding | None = None
    action_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The roles of the columns as a table."""
        rows = [("role", "column", "values")]
        for role, names in self.roles.columns.items():
            guess = " (guessed)" if self.roles.guessed(role) else ""
            rows += [(f"{role}{guess}", name, self._values(role, name)) for name in names]
        if self.roles.by_file:
            rows.append(("episode", "every file", f"{len(self.episodes):,} episodes"))
        if self.roles.choices.discount_per is not None:
            rows.append(("discount_per", str(self.roles.choices.discount_per), ""))
        because = {True: "because of its name; state=NAMES can name it", False: ""}
        rows += [("not used", n, because[self.roles.left_out(n)]) for n in self.roles.unused]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(
            f"{role:<{widths[0]}}  {name:<{widths[1]}}  {values}".rstrip()
            for role, name, values in rows
        )

    def _values(self, role: str, name: str) -> str:
        if role == "episode":
            return f"{len(self.episodes):,} episodes" if self.roles.of_episodes else "not needed"
        if role == "time" and not self.roles.of_episodes:
            return "not needed"
        if role == "action" and self.action_names:
            return f"{len(self.action_names)} words: {', '.join(self.action_names)}"
        return str(self.profiles[name])


def survey(source: LogSource, roles: Roles, tell: TellRows | None = None) -> Survey:
    """Read a log, and say what its columns hold."""
    names = [name for name in roles.used if name not in roles.names("episode")]
    found = Survey(source.name, roles, {n: Profile(n, n in roles.categorical) for n in names})
    episodes = LogDecoder(
        roles.columns, None, None, False, roles=roles, encoding=None, action_names=()
    )
    order = _Order()
    for chunk in source.chunks(roles.used, tell):
        found.rows += chunk.rows.num_rows
        for profile in found.profiles.values():
            profile.add(chunk)
        if roles.of_episodes:
            rows = Rows(chunk, None)
            order.add(episodes.episodes(chunk, rows), episodes.times(chunk, rows))
    found.episodes = episodes.known_episodes
    found.in_order = order.holds or not found.episodes  # only episodes with names can be sorted
    for role in ("reward", "time", "elapsed", "terminated", "truncated", "done"):
        for name in roles.names(role):
            found.profiles[name].require_one_kind(names=False)
            if role in ("terminated", "truncated", "done"):
                _require_flags(found.profiles[name])
    for name in (*roles.names("reward"), *roles.names("elapsed")):
        _require_numbers(found.profiles[name])
    found.action_names = _action_names(found.profiles[roles.names("action")[0]])
    found.encoding = _encoding(found)
    return found


class _Order:
    """Whether every episode is in one piece, and its time increases."""

    def __init__(self) -> None:
        self.holds = True
        self._last: tuple[int, float] | None = None

    def add(self, episodes: Integers, times: Vector) -> None:
        """Look at the next rows."""
        if self._last is not None:
            episodes = np.append(self._last[0], episodes)
            times = np.append(self._last[1], times)
        step = np.diff(episodes)  # episodes have numbers in the order of their first rows
        self.holds &= not ((step < 0) | ((step == 0) & (np.diff(times) < 0))).any()
        self._last = int(episodes[-1]), float(times[-1])


def _require_flags(profile: Profile) -> None:
    """Raise an error if flags are words of several pairs, such as yes and F."""
    words = {word.lower() for word in profile.words} - {NONE}
    if not any(words <= {*pair} for pair in FLAGS):
        place = profile.first["word"]
        raise DataError(
            f"{place}, column {profile.name}: {place.value!r} must be true or false, but the "
            f"column has the words {listed(sorted(profile.words))}"
        )


def _require_numbers(profile: Profile) -> None:
    kind = profile.kind
    if kind not in ("whole", "number", "flag", "nothing"):
        place = profile.first[kind]
        raise DataError(f"{place}, column {profile.name}: {place.value!r} is not a number")


def _action_names(profile: Profile) -> tuple[str, ...]:
    """The names of actions that are words; () if they are numbers."""
    profile.require_one_kind()
    if profile.kind in ("whole", "number", "flag", "nothing"):
        return ()
    if profile.kind != "word":
        place = profile.first[profile.kind]
        raise DataError(
            f"{place}, column {profile.name}: {place.value!r} is neither a number nor a word: say "
            f"categorical={profile.name} if such values are the names of actions"
        )
    return _names(profile.name, [profile])


def _names(name: str, profiles: list[Profile]) -> tuple[str, ...]:
    words = {word for profile in profiles for word in profile.words}
    many = MOST_WORDS if any(profile.as_words for profile in profiles) else NAMES
    if len(words) > many:
        raise DataError(
            f"{profiles[0].first['word']}, column {name}: there are more than {many} different "
            f"words, which can hardly be names: leave the column out, or say categorical={name} if "
            f"they are (at most {MOST_WORDS:,})"
        )
    return in_order(words)


def _encoding(found: Survey) -> Encoding | None:
    """How states become observations; None if they are lists."""
    roles = found.roles
    states = roles.names("state")
    after = roles.names("next_state") or states
    if len(after) != len(states):
        raise DataError(
            f"{found.name}: the state has {len(states)} columns ({', '.join(states)}), but the "
            f"next state {len(after)} ({', '.join(after)}): name them with state= and next_state="
        )
    pairs = [
        (found.profiles[one], found.profiles[other])
        for one, other in zip(states, after, strict=True)
    ]
    if len(pairs) == 1 and pairs[0][0].kind == "list":
        return None
    alone = len(pairs) == 1
    return Encoding(tuple(_input(one, other, found, alone) for one, other in pairs))


def _require_no_number(profile: Profile) -> None:
    """Raise an error if all words of a column are numbers as people write them, such as 0,5."""
    odd = profile.kind == "word" and not profile.as_words
    if odd and all(_WRITTEN_NUMBER.fullmatch(word) for word in profile.words):
        place = profile.first["word"]
        raise DataError(
            f"{place}, column {profile.name}: {place.value!r} looks like a number: write it with a "
            "point and without other marks, such as 1234.5, or say "
            f"categorical={profile.name} if such values are names"
        )


def _input(one: Profile, other: Profile, found: Survey, alone: bool) -> Input:
    """How a column of the state, and that of the next state, become numbers."""
    for profile in (one, other):
        profile.require_one_kind()
        if profile.kind in ("date", "list", "other"):
            place = profile.first[profile.kind]
            raise DataError(
                f"{place}, column {profile.name}: {place.value!r} is neither a number nor a word: "
                "make a number of it, such as the hours since the start, or leave the column out "
                "by naming the others with state="
            )
    kinds = {one.kind, other.kind} - {"nothing"}
    if not kinds:
        raise DataError(
            f"{found.name}, column {one.name} is empty: leave it out by naming the others with "
            "state="
        )
    words = "word" in kinds
    for profile in (one, other):
        _require_no_number(profile)
    if words and kinds != {"word"}:
        raise DataError(
            f"{found.name}, column {one.name}: {one}, but in column {other.name}: {other}; a "
            "state and the next one must be of the same kind"
        )
    low, high = min(one.low, other.low), max(one.high, other.high)
    absent = one.missing + other.missing
    fill = 0.0 if words else 0.5 * (low + high)
    return Input(
        one.name,
        _names(one.name, [one, other]) if words else (),
        kinds == {"whole"} and alone and low > -EXACT and high < EXACT,
        fill if absent and found.roles.choices.missing == "indicator" else None,
    )
