"""What the columns of a log hold, found by reading all of it once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rblspi.core.types import Integers, Vector
from rblspi.data.columns import DataError, Roles
from rblspi.data.decoding import Decoder
from rblspi.data.encoding import NONE, ActionNames, Encoding, Input, in_order, listed, points_of
from rblspi.data.profiles import MOST_WORDS, Profile
from rblspi.data.sources import Source, TellRows
from rblspi.data.values import FLAGS
from rblspi.environments.actions import POINTS

#: different words of a column that are taken for names without being told so
NAMES = 100
#: below this, whole numbers are exact in a float
EXACT = 2.0**53
#: numbers with a decimal comma, with marks between thousands, percentages, and sums of money
_WRITTEN_NUMBER = re.compile(r"[-+]?[$€£]?\s?[-+]?\d[\d.,' ]*\s?[%$€£]?")
_NUMBERS = ("whole", "number", "flag", "nothing")


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
    action_names: ActionNames = ()

    @classmethod
    def of(cls, source: Source, roles: Roles, tell: TellRows | None = None) -> Survey:
        """Read a log, and check that every column holds values that suit its role."""
        names = [name for name in roles.used if name not in roles.names("episode")]
        found = cls(source.name, roles, {n: Profile(n, n in roles.categorical) for n in names})
        decoder, order = Decoder(roles), _Order()
        for chunk in source.chunks(roles.used, tell):
            found.rows += chunk.rows.height
            for profile in found.profiles.values():
                profile.add(chunk)
            if roles.of_episodes:
                order.add(decoder.episodes(chunk), decoder.times(chunk))
        found.episodes = decoder.known_episodes
        found.in_order = order.holds or not found.episodes  # only episodes with names are sorted
        found._require_values()
        found.action_names = _action_names(found.profiles[roles.names("action")[0]])
        found.encoding = _encoding(found)
        return found

    def _require_values(self) -> None:
        for role in ("reward", "time", "elapsed", "terminated", "truncated", "done"):
            for profile in map(self.profiles.__getitem__, self.roles.names(role)):
                profile.require_one_kind(names=False)
                if role in ("terminated", "truncated", "done"):
                    _require_flags(profile)
                elif role != "time" and profile.kind not in _NUMBERS:
                    profile.refuse(profile.kind, "is not a number")

    def __str__(self) -> str:
        """The roles of the columns as a table."""
        return self.roles.table(self._values)

    def _values(self, role: str, name: str) -> str:
        if role == "episode":
            return f"{len(self.episodes):,} episodes" if self.roles.of_episodes else "not needed"
        if role == "time" and not self.roles.of_episodes:
            return "not needed"
        if role == "action" and self.action_names:
            kind = "words" if not points_of(self.action_names) else "points for the numbers"
            return f"{len(self.action_names)} {kind}: {', '.join(map(str, self.action_names))}"
        return str(self.profiles[name])


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
        known = listed(sorted(profile.words))
        profile.refuse("word", f"must be true or false, but the column has the words {known}")


def _action_names(profile: Profile) -> ActionNames:
    """The names of actions that are words, or points for numbers; () if they count from 0.

    Numbers are rounded to points between the least and the greatest one if most of them are not
    whole.
    """
    profile.require_one_kind()
    if 2 * profile.fractions > profile.kinds["number"] + profile.kinds["whole"]:
        return tuple(np.linspace(profile.low, profile.high, POINTS[1]).tolist())
    if profile.kind in _NUMBERS:
        return ()
    if profile.kind != "word":
        profile.refuse(
            profile.kind,
            f"is neither a number nor a word: say categorical={profile.name} if such values are "
            "the names of actions",
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
    profiles = found.profiles
    pairs = [(profiles[one], profiles[other]) for one, other in zip(states, after, strict=True)]
    alone = len(pairs) == 1
    if alone and pairs[0][0].kind == "list":
        return None
    return Encoding(tuple(_input(one, other, found, alone) for one, other in pairs))


def _input(one: Profile, other: Profile, found: Survey, alone: bool) -> Input:
    """How a column of the state, and that of the next state, become numbers."""
    for profile in (one, other):
        _require_numbers_or_words(profile)
    kinds = {one.kind, other.kind} - {"nothing"}
    if not kinds:
        raise DataError(
            f"{found.name}, column {one.name} is empty: leave it out by naming the others with "
            "state="
        )
    words = "word" in kinds
    if words and kinds != {"word"}:
        raise DataError(
            f"{found.name}, column {one.name}: {one}, but in column {other.name}: {other}; a "
            "state and the next one must be of the same kind"
        )
    low, high = min(one.low, other.low), max(one.high, other.high)
    fill = 0.0 if words else 0.5 * (low + high)
    absent = one.missing + other.missing > 0 and found.roles.choices.missing == "indicator"
    return Input(
        one.name,
        _names(one.name, [one, other]) if words else (),
        kinds == {"whole"} and alone and low > -EXACT and high < EXACT,
        fill if absent else None,
    )


def _require_numbers_or_words(profile: Profile) -> None:
    """Raise an error if a column of the state holds anything else, or numbers such as 0,5."""
    profile.require_one_kind()
    if profile.kind in ("date", "list", "other"):
        profile.refuse(
            profile.kind,
            "is neither a number nor a word: make a number of it, such as the hours since the "
            "start, or leave the column out by naming the others with state=",
        )
    if profile.kind != "word" or profile.as_words:
        return
    if all(_WRITTEN_NUMBER.fullmatch(word) for word in profile.words):
        profile.refuse(
            "word",
            "looks like a number: write it with a point and without other marks, such as 1234.5, "
            f"or say categorical={profile.name} if such values are names",
        )
