"""Plain values as TOML; Python itself only reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def key(name: str) -> str:
    """The name of a field, in quotes where it needs them."""
    bare = name.replace("_", "").replace("-", "").isalnum()
    return name if bare and name.isascii() else json.dumps(name, ensure_ascii=False)


def value(given: Any) -> str:
    """A number, a text, a list or a table in one line."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, list | tuple):
        return f"[{', '.join(map(value, given))}]"
    if isinstance(given, Mapping):
        return f"{{ {', '.join(assignments(given))} }}" if given else "{}"
    return json.dumps(str(given), ensure_ascii=False)


def assignments(table: Mapping[str, Any]) -> list[str]:
    """A line for every field; None is left out."""
    return [f"{key(name)} = {value(given)}" for name, given in table.items() if given is not None]
