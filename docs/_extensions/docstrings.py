"""What docstrings and comments say, as Sphinx wants it said.

- Absolute values, |x|, and names that end in an underscore are plain text.
- A formula that stands indented below a sentence is shown as it is written.
- The shape of an array is not the name of something.
- A field of a named tuple or a dataclass is described by the comment behind it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

#: an absolute value, or a name with an underscore behind it, outside of code
_MARKUP = re.compile(r"(``.+?``|`.+?`)|(\||(?<=\w)_(?!\w))")
_SHAPE = re.compile(r"^(\s*:(?:type|vartype) [^:]+:) (.*shape.*)$")
_FIELD = re.compile(r"^    (\w+): .*?# (.+)$")


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place."""
    if what in ("attribute", "property") and _is_undescribed(lines):
        lines[:] = [_comment(name), ""]
    lines[:] = [_SHAPE.sub(r"\1 *\2*", line) for line in _with_literal_blocks(lines)]


def _is_undescribed(lines: list[str]) -> bool:
    text = " ".join(lines).strip()
    return not text or text.startswith("Alias for field number")


def _comment(name: str) -> str:
    """The comment behind a field, as a sentence."""
    owner, _, field = name.rpartition(".")
    module, _, kind = owner.rpartition(".")
    found = getattr(sys.modules.get(module), kind, None)
    for base in getattr(found, "__mro__", ()):
        if field in (comments := _comments(base)):
            text = comments[field]
            return text[0].upper() + text[1:].rstrip(".") + "."
    return ""


@cache
def _comments(kind: type) -> dict[str, str]:
    """The comments behind the fields of a class."""
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    found = map(_FIELD.match, source.splitlines())
    return {match[1]: re.sub(r"\s{2,}", ", ", match[2]) for match in found if match}


def _with_literal_blocks(lines: list[str]) -> Iterator[str]:
    """The lines, with formulas as literal blocks and markup in sentences escaped."""
    literal = ""
    for i, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if literal and line.strip() and not line.startswith(literal):
            literal = ""
        if not literal and _begins_formula(lines, i, indent):
            literal = indent
            yield from (_outer(lines, i) + "::", "")
        yield line if literal else _MARKUP.sub(lambda m: m[1] or "\\" + m[2], line)


def _begins_formula(lines: list[str], i: int, indent: str) -> bool:
    """Whether a line follows an empty one and is indented by four more than the line before."""
    if not lines[i].strip() or i < 2 or lines[i - 1].strip() or lines[i - 2].endswith("::"):
        return False
    return len(indent) == len(_outer(lines, i)) + 4 and not lines[i].lstrip().startswith(
        (":", "..")
    )


def _outer(lines: list[str], i: int) -> str:
    before = next((line for line in reversed(lines[:i]) if line.strip()), "")
    return before[: len(before) - len(before.lstrip())]


def setup(app: Any) -> dict[str, bool]:
    """Run after the extension that reads NumPy's sections."""
    app.connect("autodoc-process-docstring", process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
