"""Parse the texts of options; each function reads one kind of option.

No text is ever evaluated: a value is a literal or a text.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, NamedTuple

from typer import BadParameter

from rblspi.core.archive import short

_WORDS = {"true": True, "false": False, "none": None, "null": None}


class Assignment(NamedTuple):
    """A setting that was typed as ``name=value``; several of them make a dict."""

    name: str
    value: Any


def value(text: str) -> Any:
    """Read a literal of Python or JSON that a file can hold; anything else is a text."""
    try:
        found = ast.literal_eval(text)
        json.dumps(found)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _WORDS.get(text.lower(), text)
    return found


def assignment(text: str) -> Assignment:
    """Read ``name=value``."""
    name, equals, given = text.partition("=")
    if not equals or not name.strip():
        raise BadParameter(f"{text!r} is not of the form name=value: put = between them")
    read = value(given.strip())
    if isinstance(read, int) and not -(2**63) <= read < 2**63:
        raise BadParameter(f"{short(text)} is too large a number: 64 bits must do")
    return Assignment(name.strip().replace("-", "_"), read)


def numbers(text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadParameter(f"{text} must be numbers with commas between them") from None


def words(text: str) -> list[str]:
    """Read names with commas between them."""
    return [part.strip() for part in text.split(",")]


def grid(text: str) -> tuple[int, int]:
    """Read the number of rows and of columns."""
    found = re.fullmatch(r"(\d+)[x×](\d+)", text.strip())
    if found is None:
        raise BadParameter(f"{text} must be rows and columns: 4x12")
    return int(found[1]), int(found[2])
