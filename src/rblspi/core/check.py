"""Checks of user input: each error names the argument, the value and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

#: the largest count that is accepted; also stands for "no limit"
LARGEST_COUNT = 2**62


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    return _number(name, value, lambda x: 0.0 < x < math.inf, "be a positive number")


def not_negative(name: str, value: Any) -> float:
    """A finite number, zero or above."""
    return _number(name, value, lambda x: 0.0 <= x < math.inf, "be zero or a positive number")


def finite(name: str, value: Any) -> float:
    """A finite number."""
    return _number(name, value, math.isfinite, "be a finite number")


def fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    return _number(name, value, lambda x: 0.0 <= x <= 1.0, "lie between 0 and 1")


def discount_of_plans(name: str, value: Any) -> float:
    """A number in [0, 1), because episodes in a model may never end."""
    if (number := fraction(name, value)) == 1.0:
        raise ValueError(
            f"{name}={value!r}: a model may go on for ever, so that plans in it need a discount "
            "below 1, such as 0.99"
        )
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


def _number(name: str, value: Any, holds: Callable[[float], bool], words: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}={value!r} must be a number") from None
    if not holds(number):
        raise ValueError(f"{name}={value!r} must {words}")
    return number
