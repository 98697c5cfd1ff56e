"""Which columns of a table hold what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

Names = str | Sequence[str]

#: names that are tried where none is given
_USUAL = {
    "state": ("state", "observation", "obs"),
    "action": ("action",),
    "reward": ("reward",),
    "next_state": ("next_state", "next_observation", "next_obs"),
    "terminated": ("terminated", "terminal"),
}


class DataError(ValueError):
    """Logged data that cannot be used; the message names the file, the row and the column."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold a transition.

    A state is one column, of numbers or of lists, or several columns of numbers. Of a name that
    is no column itself, the columns ``name_0``, ``name_1``, ... are taken.

    Parameters
    ----------
    state, next_state : str or sequence of str, optional
        Unless given: state, observation or obs; next_state, next_observation or next_obs.
    action, reward : str
    terminated : str, optional
        Whether the next state ended the episode for good, a limit of time not counting as an
        end. Unless given: terminated or terminal.
    """

    state: Names | None = None
    action: Names | None = None
    reward: Names | None = None
    next_state: Names | None = None
    terminated: Names | None = None

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read ``state=x+y,action=a,...``, where + joins the columns of a state."""
        found = {}
        for part in text.split(","):
            field, equals, names = (piece.strip() for piece in part.partition("="))
            if not equals or field not in _USUAL or not names:
                raise ValueError(
                    f"columns {part!r} must say FIELD=NAME, FIELD one of {', '.join(_USUAL)}"
                )
            found[field] = tuple(names.split("+")) if "+" in names else names
        return cls(**found)

    def found_in(self, names: Iterable[str], source: str) -> dict[str, tuple[str, ...]]:
        """The columns of every part of a transition, among those of a table.

        Raises
        ------
        DataError
            Naming the source and the column that is missing.
        """
        present = list(names)
        return {field.name: self._find(field.name, present, source) for field in fields(self)}

    def _find(self, field: str, present: list[str], source: str) -> tuple[str, ...]:
        wanted = getattr(self, field)
        if wanted is not None and not isinstance(wanted, str):
            for name in wanted:
                _require(name in present, source, field, name, present)
            return tuple(wanted)
        candidates = _USUAL[field] if wanted is None else (wanted,)
        for name in candidates:
            if name in present:
                return (name,)
            numbered = _numbered(name, present)
            if numbered and "state" in field:
                return numbered
        _require(False, source, field, candidates[0], present)
        raise AssertionError


def _numbered(name: str, present: list[str]) -> tuple[str, ...]:
    """name_0, name_1, ... as far as they go."""
    pattern = re.compile(re.escape(name) + r"_(\d+)")
    numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, present) if match)
    complete = numbers == list(range(len(numbers)))
    return tuple(f"{name}_{number}" for number in numbers) if complete else ()


def _require(holds: bool, source: str, field: str, name: str, present: list[str]) -> None:
    if not holds:
        raise DataError(
            f"{source} has no column {name!r} for the {field.replace('_', ' ')}, only "
            f"{', '.join(present)}: say which one it is with {field}="
        )
