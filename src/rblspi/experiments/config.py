"""A user's own experiment, read from a TOML file.

Fields that all curves share are written at the top or in a panel, and a curve overrides them. The
basis is a text, as on the command line, or a table with its name and its arguments; without one,
every algorithm chooses its own. docs/paper/README.md has an example, and ``rblspi reproduce --dump
FIGURE`` prints a figure of the paper in this form.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.core import toml
from rblspi.experiments.definitions import Curve, Figure, Group, Panel, canonical
from rblspi.features import basis_from_settings, basis_from_text
from rblspi.registry import algorithm

#: a condition for the value of a field, and the words for a value that breaks it; a condition may
#: also raise an error that says more
Rule = tuple[Callable[[Any], object], str]
Rules = tuple[Rule, ...]


class ConfigError(ValueError):
    """A file that cannot be used; the message names the file and the field."""


def load(path: str | PathLike[str]) -> Figure:
    """Read an experiment.

    Raises
    ------
    ConfigError
    """
    content = read_toml(path)
    try:
        return _figure({"id": Path(path).stem, **content})
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def dump(figure: Figure) -> str:
    """Write a figure of learning curves as the text of a file that `load` reads.

    Raises
    ------
    ConfigError
        If the figure does not show learning curves.
    """
    if any(not curve.episodes for curve in figure.curves):
        raise ConfigError(f"{figure.id} is not made of learning curves: choose another figure")
    shared = _common([curve.plain for curve in figure.curves])
    head = {
        "id": figure.id,
        "title": figure.title,
        "measure": figure.measure,
        "block": figure.block,
        "limits": figure.limits,
        "ticks": figure.ticks or None,
        "columns": max(len(group.panels) for group in figure.groups),
    }
    lines = toml.assignments(head | shared)
    for group in figure.groups:
        for panel in group.panels:
            title = ": ".join(filter(None, (group.title, panel.title)))
            lines += ["", "[[panel]]", *toml.assignments({"title": title})]
            for curve in panel.curves:
                own = {n: v for n, v in curve.plain.items() if n not in shared or n == "settings"}
                given = shared["settings"]
                own["settings"] = {n: v for n, v in curve.settings.items() if n not in given}
                lines += ["", "[[panel.curve]]", *toml.assignments({"label": curve.label} | own)]
    return "\n".join(lines) + "\n"


def _common(curves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields and the settings that are the same in all curves."""
    first, *others = curves
    alike = {n: v for n, v in first.items() if all(other.get(n) == v for other in others)}
    tables = [curve["settings"] for curve in curves]
    settings = {n: v for n, v in tables[0].items() if all(t.get(n) == v for t in tables)}
    return alike | {"settings": settings}


# From tables to curves --------------------------------------------------------------------------


def _figure(content: dict[str, Any]) -> Figure:
    own, shared = _read("", {"panel": [], **content}, _FIGURE, {})
    panels = tuple(_panel(f"panel[{i}]", p, shared) for i, p in enumerate(own.pop("panel"), 1))
    columns = own.pop("columns", min(2, len(panels)))
    for name in ("limits", "ticks"):
        own |= {name: tuple(map(float, own[name]))} if name in own else {}
    return Figure(**{"title": own["id"], **own}, groups=(Group("", panels, columns),))


def _panel(where: str, panel: Any, shared: Mapping[str, Any]) -> Panel:
    given = {"title": "", "curve": [], **panel} if isinstance(panel, dict) else panel
    own, shared = _read(where, given, _PANEL, shared)
    curves = tuple(_curve(f"{where}.curve[{i}]", c, shared) for i, c in enumerate(own["curve"], 1))
    labels = [curve.label for curve in curves]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"{where} has two curves with the label {label!r}: tell them apart")
    return Panel(own["title"], curves)


def _curve(where: str, curve: Any, shared: Mapping[str, Any]) -> Curve:
    own, fields = _read(where, curve, _CURVE, shared)
    for name in ("algorithm", "environment", "episodes"):
        if name not in fields:
            raise ConfigError(
                f"{where} has no {name}, nor do its panel and the file: write {name} = ... into one"
            )
    fields["basis"] = _basis_settings(fields.get("basis", {}))
    chosen = algorithm(fields["algorithm"])
    return Curve(**fields, label=own.get("label", chosen.label or chosen.name))


def _read(
    where: str, table: Any, rules: Mapping[str, Rules], shared: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A table's own fields, checked, and the fields that it shares with the curves in it.

    Its shared fields override those of the tables around it; settings are merged one by one.
    """
    if not isinstance(table, dict):
        raise ConfigError(f"{where} = {table!r} must be a table")
    known = {**rules, **_SHARED}
    start = f"{where}." if where else ""
    for name, value in table.items():
        if name not in known:
            raise ConfigError(f"{start}{name} is not a field; known here: {', '.join(known)}")
        if problem := _problem(value, known[name]):
            raise ConfigError(f"{start}{name} = {value!r} {problem}")
    own = {name: value for name, value in table.items() if name in rules}
    given = {name: value for name, value in table.items() if name in _SHARED}
    settings = {**shared.get("settings", {}), **table.get("settings", {})}
    return own, {**shared, **given, "settings": settings}


def _basis_settings(basis: str | Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a basis that is given as a text or as a table; empty for the default."""
    if not isinstance(basis, str):
        return dict(basis)
    settings = basis_from_text(basis).settings()
    return {name: argument for name, argument in settings.items() if argument is not None}


# Rules for the fields -----------------------------------------------------------------------------


def _problem(value: Any, rules: Rules) -> str:
    """The message for the first rule that is broken; empty if none is."""
    for holds, words in rules:
        try:
            if not holds(value):
                return words
        except (ValueError, TypeError) as error:
            return f"will not do: {error}"
    return ""


def _is_plain(value: Any) -> bool:
    """Whether a value consists of finite numbers, words, and lists and tables of them."""
    try:
        return bool(canonical(value))
    except (ValueError, TypeError):
        return False


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and {*map(type, value)} <= {int, float}


def _are_limits(values: list[Any]) -> bool:
    return len(values) == 2 and bool(values[0] < values[1])


def _require_formula(text: str) -> bool:
    """Check the formulas between dollar signs."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    if is_math_text(text):
        MathTextParser("path").parse(text)
    return True


def _whole(least: int) -> Rules:
    words = f"must be a whole number from {least} to a billion"
    return ((lambda value: type(value) is int and least <= value <= 10**9, words),)


def _tables(header: str) -> Rules:
    words = f"but [[{header}]] is needed at least once"
    return ((lambda value: isinstance(value, list) and value, words),)


_ID, _LABEL = re.compile(r"\w[\w.-]{0,99}"), re.compile(r"\s*[^\s_]")
_TEXT: Rule = (lambda value: isinstance(value, str), "must be a text in quotes")
_LINE: Rule = (str.isprintable, "must be one line of printable characters")
_DRAWN: Rules = (_TEXT, _LINE, (_require_formula, ""))
_PLAIN: Rule = (_is_plain, "must hold finite numbers and words")
_NUMBERS: Rule = (_are_numbers, "must be a list of numbers")
_TABLE: Rule = (lambda value: isinstance(value, dict), "must be a table")

_FIGURE: dict[str, Rules] = {
    "id": (_TEXT, (_ID.fullmatch, "names files: use up to 100 letters, digits and .-_")),
    "title": (_TEXT,),
    "measure": ((("length", "return").__contains__, "is none of length, return"),),
    "block": _whole(1),
    "limits": (_NUMBERS, _PLAIN, (_are_limits, "must be two numbers, the lower one first")),
    "ticks": (_NUMBERS, _PLAIN, (lambda ticks: min(ticks) > 0, "must be positive numbers")),
    "columns": _whole(1),
    "panel": _tables("panel"),
}
_PANEL: dict[str, Rules] = {"title": _DRAWN, "curve": _tables("panel.curve")}
_CURVE: dict[str, Rules] = {
    "label": (*_DRAWN, (_LABEL.match, "would not be shown: begin with a letter"))
}
#: fields of a curve, which the file and its panels may give for all curves in them
_SHARED: dict[str, Rules] = {
    "algorithm": (_TEXT, (lambda name: algorithm(name).online, "does not learn in environments")),
    "environment": (_TEXT,),
    "settings": (
        *(_TABLE, _PLAIN),
        (lambda table: "seed" not in table, "must be without seed: runs are numbered by it"),
    ),
    "episodes": _whole(1),
    "basis": (
        *((lambda value: isinstance(value, dict | str), "must be a table or a text"), _PLAIN),
        (lambda value: basis_from_settings(_basis_settings(value)), ""),
    ),
    "evaluation": _whole(0),
}
