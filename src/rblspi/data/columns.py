"""Which columns of a table hold which field of a transition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

Names = str | Sequence[str]

#: the fields of a transition, and the names that are tried if none is given
_USUAL = {
    "state": ("state", "observation", "obs"),
    "action": ("action",),
    "reward": ("reward",),
    "next_state": ("next_state", "next_observation", "next_obs"),
    "terminated": ("terminated", "terminal"),
    "truncated": ("truncated",),
}


class DataError(ValueError):
    """Logged data that cannot be used. The message names the file, the row and the column."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold a transition.

    A state is one column of numbers or of lists, or several columns of numbers. If there is no
    column called ``name``, a state is read from the columns ``name_0``, ``name_1``, ...

    Parameters
    ----------
    state, next_state : str or sequence of str, optional
        By default: state, observation or obs; next_state, next_observation or next_obs.
    action, reward : str, optional
        By default: action; reward.
    terminated : str, optional
        Whether the next state is terminal; reaching a time limit does not make it terminal. By
        default: terminated or terminal.
    truncated : str, optional
        Whether the episode was cut short after this row. By default: truncated, if there is such
        a column. If not, an episode was cut short wherever the next row does not continue it.
    """

    state: Names | None = None
    action: Names | None = None
    reward: Names | None = None
    next_state: Names | None = None
    terminated: Names | None = None
    truncated: Names | None = None

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``state=x+y,action=a,...``, where + joins the columns of a state."""
        found = {}
        for assignment in text.split(","):
            field, equals, names = (word.strip() for word in assignment.partition("="))
            if not equals or field not in _USUAL or not names:
                raise ValueError(
                    f"columns {assignment!r} must say FIELD=NAME, where FIELD is one of "
                    f"{', '.join(_USUAL)}"
                )
            found[field] = tuple(names.split("+")) if "+" in names else names
        return cls(**found)

    def found_in(self, names: Iterable[str], source: str) -> dict[str, tuple[str, ...]]:
        """Find the columns of every field of a transition among those of a table."""
        present = list(names)
        twice = [name for name in present if present.count(name) > 1]
        if twice:
            raise DataError(f"{source} has several columns called {twice[0]!r}: keep one of them")
        found = {field: self._find(field, present, source) for field in _USUAL}
        return {field: columns for field, columns in found.items() if columns}

    def _find(self, field: str, present: list[str], source: str) -> tuple[str, ...]:
        wanted = getattr(self, field)
        if wanted is None or isinstance(wanted, str):
            candidates = _USUAL[field] if wanted is None else (wanted,)
            for name in candidates:
                if name in present:
                    return (name,)
                numbered = _numbered(name, present)
                if numbered and "state" in field:
                    return numbered
            if wanted is None and field == "truncated":
                return ()
            missing = candidates[:1]
        else:
            missing = tuple(name for name in wanted if name not in present)
            if not missing:
                return tuple(wanted)
        what = f"{field} flag" if field in ("terminated", "truncated") else field.replace("_", " ")
        raise DataError(
            f"{source} has no column {missing[0]!r} for the {what}, only {', '.join(present)}: say "
            f"which one it is with {field}="
        )


def _numbered(name: str, present: list[str]) -> tuple[str, ...]:
    """The columns name_0, name_1, ..., if they are numbered without gaps."""
    pattern = re.compile(re.escape(name) + r"_(\d+)")
    numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, present) if match)
    complete = numbers == list(range(len(numbers)))
    return tuple(f"{name}_{number}" for number in numbers) if complete else ()
