"""A user's own experiment, read from a TOML file.

Fields that all curves share are written at the top or in a panel, and a curve overrides them::

    id = "my-car"
    title = "How often to improve"
    environment = "rblspi/MountainCar-v0"
    episodes = 300
    algorithm = "rblspi"
    basis = "rbf:8"

    [settings]
    discount = 0.99
    prior_precision = 0.001

    [[panel]]
    title = "β = 0.1"
    settings = { noise_precision = 0.1 }

    [[panel.curve]]
    label = "K = 20"
    settings = { update_every = 20 }

    [[panel.curve]]
    label = "K = 500"
    settings = { update_every = "episode" }

The basis is a text, as on the command line, or a table with its name and its arguments::

    basis = { basis = "RBFGrid", cells = 8, low = [-1.2, -0.07], high = [0.6, 0.07] }

Without one, every algorithm chooses its own for the environment.

``evaluation = 20`` lets the greedy policy act for 20 episodes at ten places of every run, beside
what the exploring agent reaches. ``rblspi reproduce --dump FIGURE`` prints a figure of the paper in
this form.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.core import toml
from rblspi.experiments.definitions import Curve, Figure, Group, Panel
from rblspi.features import basis_from_settings, basis_from_text
from rblspi.registry import algorithm, algorithms

#: says what is wrong with the value of a field; empty if nothing is
Rule = Callable[[Any], str]


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
    """A figure of learning curves as a file that `load` reads.

    Raises
    ------
    ConfigError
        If the figure shows something else.
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
    """The fields, and among the settings those, that all curves have alike."""
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
    where: str, table: Any, rules: Mapping[str, Rule], shared: Mapping[str, Any]
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
        if problem := known[name](value):
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


# What the fields must be --------------------------------------------------------------------------


def _rule(fits: Callable[[Any], object], words: str) -> Rule:
    return lambda value: "" if fits(value) else words


def _all(*rules: Rule) -> Rule:
    """Say what the first broken rule says."""
    return lambda value: next((said for rule in rules if (said := rule(value))), "")


def _whole(least: int, words: str) -> Rule:
    return _rule(lambda value: type(value) is int and least <= value <= 10**9, words)


def _tables(header: str) -> Rule:
    words = f"but [[{header}]] is needed at least once"
    return _rule(lambda value: isinstance(value, list) and value, words)


def _are_numbers(value: Any) -> bool:
    """Whether a value is a list of finite numbers."""
    return isinstance(value, list) and all(
        type(number) in (int, float) and abs(number) <= sys.float_info.max for number in value
    )


def _argument(value: Any) -> str:
    if not isinstance(value, int | float | str):
        return "must be a number or a word"
    finite = isinstance(value, str) or abs(value) <= sys.float_info.max
    return "" if finite else "must be finite"


def _settings(value: Any) -> str:
    if not isinstance(value, dict):
        return "must be a table"
    if "seed" in value:
        return "must be without seed: the number of runs determines the seeds"
    problems = ((name, _argument(setting)) for name, setting in value.items())
    return next((f"will not do: {name} {said}" for name, said in problems if said), "")


def _basis(value: Any) -> str:
    if not isinstance(value, dict | str):
        return "must be a table or a text"
    for name, argument in value.items() if isinstance(value, dict) else ():
        for item in argument if isinstance(argument, list) else [argument]:
            if problem := _argument(item):
                return f"will not do: {name} {problem}"
    try:
        basis_from_settings(_basis_settings(value))
    except (ValueError, TypeError) as error:
        return f"will not do: {error}"
    return ""


def _algorithm(value: Any) -> str:
    online = [name for name, known in algorithms().items() if known.online]
    return "" if value in online else f"is none of {', '.join(online)}"


def _formula(text: str) -> str:
    """Check the formulas between dollar signs."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    try:
        if is_math_text(text):
            MathTextParser("path").parse(text)
    except ValueError as error:
        return f"is not a formula: {error}"
    return ""


_TEXT = _rule(lambda value: isinstance(value, str), "must be a text in quotes")
_DRAWN = _all(_TEXT, _rule(str.isprintable, "must be one line of printable characters"), _formula)
_FIGURE: dict[str, Rule] = {
    "id": _all(
        _TEXT,
        _rule(
            re.compile(r"\w[\w.-]{0,99}").fullmatch,
            "becomes part of file names: use up to 100 letters, digits and .-_",
        ),
    ),
    "title": _TEXT,
    "measure": _rule(("length", "return").__contains__, "is none of length, return"),
    "block": _whole(1, "must be a whole number from 1 to a billion"),
    "limits": _rule(
        lambda value: _are_numbers(value) and len(value) == 2 and value[0] < value[1],
        "must be two finite numbers, the lower one first",
    ),
    "ticks": _rule(
        lambda value: _are_numbers(value) and all(tick > 0 for tick in value),
        "must be positive numbers: the axis is logarithmic then",
    ),
    "columns": _whole(1, "must be a whole number from 1 to a billion"),
    "panel": _tables("panel"),
}
_PANEL: dict[str, Rule] = {"title": _DRAWN, "curve": _tables("panel.curve")}
_CURVE: dict[str, Rule] = {
    "label": _all(
        _DRAWN,
        _rule(
            lambda text: text.strip() and not text.startswith("_"),
            "would not be shown: begin with a letter",
        ),
    )
}
#: fields of a curve, which the file and its panels may give for all curves in them
_SHARED: dict[str, Rule] = {
    "algorithm": _algorithm,
    "environment": _TEXT,
    "settings": _settings,
    "episodes": _whole(1, "must be a whole number from 1 to a billion"),
    "basis": _basis,
    "evaluation": _whole(0, "must be a whole number of episodes, 0 for none"),
}
