"""Checks of what the user passes in: each names the argument, the value and what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: the largest count that anything here reaches; also stands for "no limit"
LARGEST_COUNT = 2**62


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = _number(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name}={value!r} must be a positive number")
    return number


def not_negative(name: str, value: Any) -> float:
    """A finite number, zero or above."""
    number = _number(name, value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{name}={value!r} must be zero or a positive number")
    return number


def finite(name: str, value: Any) -> float:
    """A finite number."""
    number = _number(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={value!r} must be a finite number")
    return number


def fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    number = _number(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name}={value!r} must lie between 0 and 1")
    return number


def boolean(name: str, value: Any) -> bool:
    """True or False, of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} must be True or False")
    return bool(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """A whole number, at least ``least`` and small enough for compiled code."""
    if (number := _whole(name, value, least)) > LARGEST_COUNT:
        raise ValueError(f"{name}={number} must be at most {LARGEST_COUNT:,}")
    return number


def seed(name: str, value: Any) -> int:
    """A whole number of any size, not negative."""
    return _whole(name, value, least=0)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not (isinstance(value, int) or hasattr(value, "__index__")):
        raise TypeError(f"{name}={value!r} must be a whole number")
    if int(value) < least:
        raise ValueError(f"{name}={value!r} must be at least {least}")
    return int(value)


def period(name: str, value: Any) -> int:
    """Transitions between two events; 0 stands for the end of the episode."""
    if value == "episode":
        return 0
    if isinstance(value, str):
        raise ValueError(f"{name}={value!r} must be a number of transitions, or 'episode'")
    return count(name, value)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}={value!r} must be a number") from None
