"""A user's own experiment, from a TOML file with the fields of the paper's figures.

Fields that all curves share stand at the top, or in a panel; a curve overrides them::

    id = "my-car"
    title = "How often to improve"
    environment = "rblspi/MountainCar-v0"
    episodes = 300
    algorithm = "rblspi"

    [basis]
    basis = "RBFGrid"
    cells = 8

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
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rblspi.experiments.definitions import ONLINE, Curve, Figure, Group, Panel
from rblspi.features import BASES

#: fields of a curve, which the file and its panels may give for all curves in them
_SHARED = ("algorithm", "environment", "basis", "settings", "episodes")
_FIGURE = ("id", "title", "measure", "block", "limits", "columns", "panel")
_PANEL = ("title", "curve")
_CURVE = ("label",)


class ConfigError(ValueError):
    """A file that does not describe an experiment; the message names the file and the field."""


def load(path: str | PathLike[str]) -> Figure:
    """Read an experiment.

    Raises
    ------
    ConfigError
    """
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    try:
        return _figure(content, file.stem)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _figure(content: Mapping[str, Any], stem: str) -> Figure:
    _no_others("", content, _FIGURE + _SHARED)
    panels = _list("[[panel]]", content.get("panel"))
    shared = {name: content[name] for name in _SHARED if name in content}
    built = tuple(_panel(f"panel[{index}]", panel, shared) for index, panel in enumerate(panels, 1))
    measure = _choice("measure", content.get("measure", "length"), ("length", "return"))
    name = _text("id", content.get("id", stem))
    if not name or any(letter in name for letter in "/\\ "):
        raise ConfigError(f"id = {name!r} is part of file names: no slashes or spaces")
    return Figure(
        name,
        _text("title", content.get("title", name)),
        (Group("", built, _count("columns", content.get("columns", min(2, len(built))))),),
        measure=measure,  # type: ignore[arg-type]
        limits=_limits(content.get("limits")),
        block=_count("block", content.get("block", 100)),
    )


def _panel(where: str, panel: Any, shared: Mapping[str, Any]) -> Panel:
    table = _table(where, panel)
    _no_others(where, table, _PANEL + _SHARED)
    own = _merged(where, shared, table)
    tables = _list(f"{where}: [[panel.curve]]", table.get("curve"))
    curves = tuple(
        _curve(f"{where}.curve[{index}]", curve, own) for index, curve in enumerate(tables, 1)
    )
    labels = [curve.label for curve in curves]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"{where} has two curves with the label {label!r}: tell them apart")
    return Panel(_text(f"{where}.title", table.get("title", "")), curves)


def _curve(where: str, curve: Any, shared: Mapping[str, Any]) -> Curve:
    table = _table(where, curve)
    _no_others(where, table, _CURVE + _SHARED)
    fields = _merged(where, shared, table)
    for name in ("algorithm", "environment", "basis", "episodes"):
        if name not in fields:
            raise ConfigError(f"{where} has no {name}, nor do its panel and the file")
    algorithm = _choice(f"{where}.algorithm", fields["algorithm"], ONLINE)
    settings = fields.get("settings", {})
    for name, value in settings.items():
        if not isinstance(value, int | float | str | bool):
            raise ConfigError(f"{where}.settings.{name} = {value!r} must be a number or a word")
    if "seed" in settings:
        raise ConfigError(f"{where}.settings.seed: seeds are given by the number of runs")
    if "basis" not in fields["basis"]:
        raise ConfigError(f"{where}.basis has no field basis, the name of a basis")
    _choice(f"{where}.basis.basis", fields["basis"]["basis"], tuple(BASES))
    return Curve(
        algorithm,
        _text(f"{where}.environment", fields["environment"]),
        fields["basis"],
        settings,
        _count(f"{where}.episodes", fields["episodes"]),
        label=_text(f"{where}.label", table.get("label", algorithm)),
    )


def _merged(where: str, shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the outside, overridden by those inside; settings are merged one by one."""
    fields = dict(shared)
    for name in _SHARED:
        if name in own:
            fields[name] = own[name]
    for name in ("basis", "settings"):
        if name in fields:
            fields[name] = dict(_table(f"{where}.{name}", fields[name]))
    if "settings" in shared and "settings" in own:
        fields["settings"] = {**shared["settings"], **fields["settings"]}
    return fields


def _no_others(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            place = f"{where}.{name}" if where else name
            raise ConfigError(f"{place} is not a field; known here: {', '.join(known)}")


def _list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{where} is needed, once at least")
    return value


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {value!r} must be a table")
    return value


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where} = {value!r} must be a text in quotes")
    return value


def _count(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{where} = {value!r} must be a whole number, 1 or more")
    return value


def _choice(where: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(f"{where} = {value!r} is none of {', '.join(known)}")
    return str(value)


def _limits(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    numbers = isinstance(value, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )
    if not numbers or len(value) != 2 or not value[0] < value[1]:
        raise ConfigError(f"limits = {value!r} must be two numbers, the lower one first")
    return float(value[0]), float(value[1])
