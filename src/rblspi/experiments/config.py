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
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.core import toml
from rblspi.experiments.definitions import Curve, Figure, Group, Panel
from rblspi.registry import algorithm, algorithms

#: fields of a curve, which the file and its panels may give for all curves in them
_NEEDED = ("algorithm", "environment", "settings", "episodes")
_SHARED = (*_NEEDED, "basis", "evaluation")
_FIGURE = ("id", "title", "measure", "block", "limits", "ticks", "columns", "panel")
_PANEL = ("title", "curve")
_CURVE = ("label",)
_LARGEST = sys.float_info.max


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


def _figure(content: dict[str, Any]) -> Figure:
    own, shared = _read("", {"panel": [], **content}, _FIGURE, {})
    panels = tuple(_panel(f"panel[{i}]", p, shared) for i, p in enumerate(own.pop("panel"), 1))
    columns = own.pop("columns", min(2, len(panels)))
    for name in ("limits", "ticks"):
        own |= {name: tuple(map(float, own[name]))} if name in own else {}
    return Figure(**{"title": own["id"], **own}, groups=(Group("", panels, columns),))


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


def _panel(where: str, panel: Any, shared: Mapping[str, Any]) -> Panel:
    _check(where, "table", panel)
    own, shared = _read(where, {"title": "", "curve": [], **panel}, _PANEL, shared)
    curves = tuple(_curve(f"{where}.curve[{i}]", c, shared) for i, c in enumerate(own["curve"], 1))
    labels = [curve.label for curve in curves]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"{where} has two curves with the label {label!r}: tell them apart")
    return Panel(own["title"], curves)


def _curve(where: str, curve: Any, shared: Mapping[str, Any]) -> Curve:
    _check(where, "table", curve)
    own, fields = _read(where, curve, _CURVE, shared)
    for name in _NEEDED:
        if name not in fields:
            raise ConfigError(
                f"{where} has no {name}, nor do its panel and the file: write {name} = ... into one"
            )
    for name, value in fields.items():
        _check(f"{where}.{name}", name, value)
    fields["basis"] = _basis(f"{where}.basis", fields["basis"]) if "basis" in fields else {}
    chosen = algorithm(fields["algorithm"])
    return Curve(**fields, label=own.get("label", chosen.label or chosen.name))


def _read(
    where: str, table: Mapping[str, Any], known: tuple[str, ...], shared: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A table's own fields, checked, and the fields that it shares with the curves in it.

    Its shared fields override those of the tables around it; settings are merged one by one.
    """
    start = f"{where}." if where else ""
    for name, value in table.items():
        if name not in (*known, *_SHARED):
            fields = ", ".join((*known, *_SHARED))
            raise ConfigError(f"{start}{name} is not a field; known here: {fields}")
        if name in known:
            _check(start + name, name, value)
    settings = table.get("settings", {})
    _check(f"{start}settings", "table", settings)
    own = {name: table[name] for name in known if name in table}
    given = {name: table[name] for name in _SHARED if name in table}
    merged = {**shared.get("settings", {}), **settings}
    return own, {**shared, **given, "settings": merged}


def _check(where: str, field: str, value: Any) -> None:
    """Raise an error that names the place if a value will not do for a field."""

    def require(right: object, words: str) -> None:
        if not right:
            raise ConfigError(f"{where} = {value!r} {words}")

    match field:
        case "table":
            require(isinstance(value, dict), "must be a table")
        case "panel" | "curve":
            header = "panel" if field == "panel" else "panel.curve"
            require(isinstance(value, list) and value, f"but [[{header}]] is needed at least once")
        case "id" | "title" | "label" | "environment":
            require(isinstance(value, str), "must be a text in quotes")
        case "block" | "columns" | "episodes":
            right = type(value) is int and 1 <= value <= 10**9
            require(right, "must be a whole number from 1 to a billion")
        case "evaluation":
            right = type(value) is int and 0 <= value <= 10**9
            require(right, "must be a whole number of episodes, 0 for none")
        case "ticks":
            numbers = isinstance(value, list) and all(type(v) in (int, float) for v in value)
            right = numbers and all(0 < v <= _LARGEST for v in value)
            require(right, "must be positive numbers: the axis is logarithmic then")
        case "measure":
            require(value in ("length", "return"), "is none of length, return")
        case "limits":
            pair = isinstance(value, list) and [type(v) in (int, float) for v in value] == [1, 1]
            right = pair and -_LARGEST <= value[0] < value[1] <= _LARGEST
            require(right, "must be two finite numbers, the lower one first")
        case "algorithm":
            online = [name for name, known in algorithms().items() if known.online]
            require(value in online, f"is none of {', '.join(online)}")
        case "settings":
            for name, setting in value.items():
                _check(f"{where}.{name}", "setting", setting)
        case "setting" | "argument":
            seed = field == "setting" and where.endswith(".seed")
            require(not seed, "is no setting: the number of runs determines the seeds")
            items = value if field == "argument" and isinstance(value, list) else [value]
            plain = all(isinstance(item, int | float | str) for item in items)
            require(plain, "must be a number or a word")
            finite = all(isinstance(item, str) or abs(item) <= _LARGEST for item in items)
            require(finite, "must be finite")
    if field == "id":
        fits = re.fullmatch(r"\w[\w.-]{0,99}", value)
        require(fits, "becomes part of file names: use up to 100 letters, digits and .-_")
    if field == "label" or (field == "title" and where != "title"):  # the figure's is not drawn
        require(value.isprintable(), "must be one line of printable characters")
        require(not (mistake := _mistake_in_formula(value)), f"is not a formula: {mistake}")
    if field == "label":
        shown = value.strip() and not value.startswith("_")
        require(shown, "would not be shown: begin with a letter")


def _mistake_in_formula(text: str) -> str:
    """What is wrong with the formulas between dollar signs; empty if nothing is."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    try:
        if is_math_text(text):
            MathTextParser("path").parse(text)
    except ValueError as error:
        return str(error)
    return ""


def _basis(where: str, value: Any) -> dict[str, Any]:
    """The settings of a basis, from a text or from a table."""
    from rblspi.features import BASES, basis_from_settings, basis_from_text

    try:
        if isinstance(value, str):
            given = basis_from_text(value).settings()
            return {name: argument for name, argument in given.items() if argument is not None}
        _check(where, "table", value)
        for name, argument in value.items():
            _check(f"{where}.{name}", "argument", argument)
        if "basis" not in value:
            raise ConfigError(f"{where} has no field basis, the name of a basis")
        if value["basis"] not in BASES:
            raise ConfigError(f"{where}.basis = {value['basis']!r} is none of {', '.join(BASES)}")
        basis_from_settings(value)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where} = {value!r}: {error}") from error
    return dict(value)
