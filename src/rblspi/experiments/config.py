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
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.experiments.definitions import Curve, Figure, Group, Panel
from rblspi.registry import algorithm, algorithms

#: fields of a curve, which the file and its panels may give for all curves in them
_SHARED = ("algorithm", "environment", "basis", "settings", "episodes")
_FIGURE = ("id", "title", "measure", "block", "limits", "columns", "panel", *_SHARED)
_PANEL = ("title", "curve", *_SHARED)
_CURVE = ("label", *_SHARED)


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
        return _figure(content, Path(path).stem)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _figure(content: Mapping[str, Any], stem: str) -> Figure:
    require_known("", content, _FIGURE)
    shared = _merged("", {}, content)
    panels = tuple(
        _panel(f"panel[{index}]", panel, shared)
        for index, panel in enumerate(_tables("[[panel]]", content.get("panel")), 1)
    )
    name = require_text("id", content.get("id", stem))
    if not re.fullmatch(r"\w[\w.-]{0,99}", name):
        raise ConfigError(
            f"id = {name!r} becomes part of file names: use up to 100 letters, digits, dots, "
            "hyphens and underscores"
        )
    return Figure(
        name,
        require_text("title", content.get("title", name)),
        (Group("", panels, require_count("columns", content.get("columns", min(2, len(panels))))),),
        measure=require_choice("measure", content.get("measure", "length"), ("length", "return")),
        limits=_limits(content.get("limits")),
        block=require_count("block", content.get("block", 100)),
    )


def _panel(where: str, panel: Any, shared: Mapping[str, Any]) -> Panel:
    table = require_table(where, panel)
    require_known(where, table, _PANEL)
    own = _merged(where, shared, table)
    curves = tuple(
        _curve(f"{where}.curve[{index}]", curve, own)
        for index, curve in enumerate(_tables(f"{where}: [[panel.curve]]", table.get("curve")), 1)
    )
    labels = [curve.label for curve in curves]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"{where} has two curves with the label {label!r}: tell them apart")
    return Panel(_drawable(f"{where}.title", table.get("title", "")), curves)


def _curve(where: str, curve: Any, shared: Mapping[str, Any]) -> Curve:
    table = require_table(where, curve)
    require_known(where, table, _CURVE)
    fields = _merged(where, shared, table)
    for name in ("algorithm", "environment", "basis", "episodes"):
        if name not in fields:
            raise ConfigError(f"{where} has no {name}, nor do its panel and the file")
    online = [name for name, known in algorithms().items() if known.online]
    chosen = algorithm(require_choice(f"{where}.algorithm", fields["algorithm"], online))
    settings = fields.get("settings", {})
    for name, value in settings.items():
        if isinstance(value, list):
            raise ConfigError(f"{where}.settings.{name} = {value!r} must be a number or a word")
        _require_plain(f"{where}.settings.{name}", value)
    if "seed" in settings:
        raise ConfigError(f"{where}.settings.seed: the number of runs determines the seeds")
    label = _drawable(f"{where}.label", table.get("label", chosen.label or chosen.name))
    if not label.strip() or label.startswith("_"):
        raise ConfigError(f"{where}.label = {label!r} would not be shown: begin with a letter")
    return Curve(
        chosen.name,
        require_text(f"{where}.environment", fields["environment"]),
        _basis(f"{where}.basis", fields["basis"]),
        settings,
        require_count(f"{where}.episodes", fields["episodes"]),
        label=label,
    )


def _merged(where: str, shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Shared fields, overridden by a panel's or curve's own; settings are merged one by one."""
    fields = {**shared, **{name: own[name] for name in _SHARED if name in own}}
    if "settings" in own:
        place = f"{where}.settings" if where else "settings"
        fields["settings"] = {**shared.get("settings", {}), **require_table(place, own["settings"])}
    return fields


def _basis(where: str, value: Any) -> dict[str, Any]:
    """The settings of a basis, from a text or from a table."""
    from rblspi.features import BASES, basis_from_settings, basis_from_text

    try:
        if isinstance(value, str):
            given = basis_from_text(value).settings()
            return {name: argument for name, argument in given.items() if argument is not None}
        table = dict(require_table(where, value))
        if "basis" not in table:
            raise ConfigError(f"{where} has no field basis, the name of a basis")
        require_choice(f"{where}.basis", table["basis"], BASES)
        for name, argument in table.items():
            _require_plain(f"{where}.{name}", argument)
        basis_from_settings(table)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where} = {value!r}: {error}") from error
    return table


def _limits(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = isinstance(value, list) and all(type(number) in (int, float) for number in value)
    if not numbers or len(value) != 2 or not 0.0 < value[1] - value[0] < math.inf:
        raise ConfigError(f"limits = {value!r} must be two finite numbers, the lower one first")
    return float(value[0]), float(value[1])


def _drawable(where: str, value: Any) -> str:
    """A text that can be drawn: one line, and formulas between dollar signs without mistakes."""
    text = require_text(where, value)
    if not text.isprintable():
        raise ConfigError(f"{where} = {text!r} must be one line of printable characters")
    if "$" in text:
        from matplotlib.cbook import is_math_text
        from matplotlib.mathtext import MathTextParser

        try:
            if is_math_text(text):
                MathTextParser("path").parse(text)
        except ValueError as error:
            raise ConfigError(f"{where} = {text!r} is not a formula: {error}") from error
    return text


def _require_plain(where: str, value: Any) -> None:
    """Check that a value is a finite number, a word, or a list of them."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, int | float | str):
            raise ConfigError(f"{where} = {value!r} must be a number or a word")
        if isinstance(item, float) and not math.isfinite(item):
            raise ConfigError(f"{where} = {value!r} must be finite")


def _tables(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where} is needed at least once")
    return value


# Checks that other files of settings share ------------------------------------------------------


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


def require_known(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse a table with a field that is not among the known ones."""
    for name in table:
        if name not in known:
            place = f"{where}.{name}" if where else name
            raise ConfigError(f"{place} is not a field; known here: {', '.join(known)}")


def require_table(where: str, value: Any) -> Mapping[str, Any]:
    """Check that a value is a table."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {value!r} must be a table")
    return value


def require_text(where: str, value: Any) -> str:
    """Check that a value is a text."""
    if not isinstance(value, str):
        raise ConfigError(f"{where} = {value!r} must be a text in quotes")
    return value


def require_count(where: str, value: Any, least: int = 1) -> int:
    """Check that a value is a whole number."""
    if type(value) is not int or value < least:
        raise ConfigError(f"{where} = {value!r} must be a whole number, {least} or more")
    return value


def require_choice(where: str, value: Any, known: Iterable[str]) -> Any:
    """Check that a value is one of the known texts."""
    if value not in list(known):
        raise ConfigError(f"{where} = {value!r} is none of {', '.join(known)}")
    return value
