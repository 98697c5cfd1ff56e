"""The time over which a discount applies once, where the rows of a log take different times."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

#: `rblspi.data.Columns.discount_per`
PeriodLike: TypeAlias = float | str | timedelta | np.timedelta64
#: what a column of times holds: numbers, dates (in microseconds) or durations (in seconds)
TimeKind: TypeAlias = Literal["numbers", "dates", "durations"]

#: seconds in the units of a duration, by the names that pandas has for them
_SECONDS = {
    ("w", "week", "weeks"): 604_800.0,
    ("d", "day", "days"): 86_400.0,
    ("h", "hr", "hour", "hours"): 3_600.0,
    ("min", "m", "minute", "minutes"): 60.0,
    ("s", "sec", "second", "seconds"): 1.0,
    ("ms", "millisecond", "milliseconds"): 1e-3,
    ("us", "microsecond", "microseconds"): 1e-6,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names}
_PART = re.compile(r"\s*(\d+\.?\d*|\.\d+)?\s*([A-Za-z]+)\s*")


class Period(NamedTuple):
    """A time: a number in the units of a log, or a duration."""

    amount: float  # a duration is in seconds
    is_duration: bool
    text: str  # as it was given

    @classmethod
    def of(cls, given: PeriodLike) -> Period:
        """Read ``3600``, ``"1h"``, ``"1 day 12 hours"`` or a time difference."""
        amount: float | None
        if isinstance(given, timedelta | np.timedelta64):
            amount, is_duration = _seconds_of_difference(given), True
        elif isinstance(given, str):
            number = _number(given)
            amount, is_duration = (_seconds(given), True) if number is None else (number, False)
        else:
            amount, is_duration = _number(given), False
        if amount is None or not (math.isfinite(amount) and amount > 0.0):
            raise ValueError(
                f"discount_per={given!r} must be a number above 0, or a duration such as 1h, "
                "30min or 1.5 days"
            )
        return cls(amount, is_duration, str(given))

    def units(self, kind: TimeKind, column: str) -> float:
        """The same time in the units of a column."""
        if self.is_duration and kind == "numbers":
            raise ValueError(
                f"discount_per={self.text} is a duration, but column {column} holds numbers: give "
                "a number in their units"
            )
        if not self.is_duration and kind != "numbers":
            raise ValueError(
                f"discount_per={self.text} is a number, but column {column} holds {kind}: give a "
                "duration such as 1h, 30min or 1.5 days"
            )
        return self.amount * 1e6 if kind == "dates" else self.amount


def _number(given: Any) -> float | None:
    """A number, also as text; None if it is something else."""
    if isinstance(given, bool):
        return None
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _seconds(text: str) -> float | None:
    """A duration in seconds; None if the text is none. M may be months, which differ."""
    total, place = 0.0, 0
    while place < len(text):
        part = _PART.match(text, place)
        unit = None if part is None or part[2] == "M" else _UNITS.get(part[2].lower())
        if part is None or unit is None:
            return None
        total, place = total + float(part[1] or 1.0) * unit, part.end()
    return total


def _seconds_of_difference(given: timedelta | np.timedelta64) -> float | None:
    if isinstance(given, timedelta):
        return given.total_seconds()
    try:
        return float(given / np.timedelta64(1, "ns")) / 1e9
    except TypeError:  # months and years differ in length
        return None
