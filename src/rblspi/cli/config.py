"""Settings of a run as TOML: read for ``--config``, written beside the results."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rblspi.cli.words import nearest

#: what a file may say, and of which type
_NAMES: dict[str, tuple[type, ...]] = {
    "env": (str,),
    "algo": (str,),
    "basis": (str,),
    "episodes": (int,),
    "timesteps": (int,),
    "seed": (int,),
    "save": (str,),
    "tensorboard": (bool,),
    "set": (dict,),
    "env_set": (dict,),
    "resumed": (dict,),  # this and what follows is written for people to read
    "versions": (dict,),
}


def read(path: Path) -> dict[str, Any]:
    """Settings of a file, every name and type checked."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}: correct the name after --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    for name, value in found.items():
        if name not in _NAMES:
            raise ValueError(f"{path} has an unknown name {name!r}: {nearest(name, _NAMES)}")
        if type(value) not in _NAMES[name]:
            (kind,) = (kind.__name__ for kind in _NAMES[name])
            words = {
                "str": "a text",
                "int": "a whole number",
                "dict": "a table",
                "bool": "a yes or no",
            }
            raise ValueError(f"{path}: {name} = {value!r} must be {words[kind]}")
    if ":" in found.get("env", ""):
        raise ValueError(
            f"{path}: env = {found['env']!r} would import a module: give it on the command line"
        )
    return {name: value for name, value in found.items() if name not in ("resumed", "versions")}


def write(path: Path, settings: Mapping[str, Any]) -> None:
    """Write settings that `read` understands; None is left out."""
    lines = [f"{k} = {_text(v)}" for k, v in _given(settings) if not isinstance(v, Mapping)]
    for name, table in _given(settings):
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *(f"{_key(k)} = {_text(v)}" for k, v in _given(table))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _given(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in table.items() if value is not None]


def _key(name: str) -> str:
    return (
        name
        if name.replace("_", "").replace("-", "").isalnum()
        else json.dumps(name, ensure_ascii=False)
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return json.dumps(str(value), ensure_ascii=False)
