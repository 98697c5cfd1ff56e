"""Settings of a training run as TOML: read for ``--config``, written beside the results.

The fields have the names that files of experiments use as well: ``environment``, ``algorithm``,
``basis``, ``settings``, ``episodes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rblspi.core import toml
from rblspi.core.files import write_text
from rblspi.registry import nearest

#: fields of a file, and what each must be
_FIELDS: dict[str, tuple[type, str]] = {
    "environment": (str, "a text"),
    "algorithm": (str, "a text"),
    "basis": (str, "a text"),
    "episodes": (int, "a whole number"),
    "timesteps": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "save": (str, "a text"),
    "tensorboard": (bool, "true or false"),
    "wrap": (list, "a list of texts"),
    "checkpoint_every": (int, "a whole number"),
    "checkpoints": (int, "a whole number"),
    "eval_every": (int, "a whole number"),
    "eval_episodes": (int, "a whole number"),
    "settings": (dict, "a table"),
    "env_settings": (dict, "a table"),
    "resumed": (dict, "a table"),
    "versions": (dict, "a table"),
}
#: fields that are written for people to read
_INFORMATION = ("resumed", "versions")


def read(path: Path) -> dict[str, Any]:
    """Settings of a file, every name and type checked."""
    from rblspi.experiments.config import read_toml

    found = read_toml(path)
    for name, value in found.items():
        if name not in _FIELDS:
            raise ValueError(f"{path} has an unknown field {name!r}: {nearest(name, _FIELDS)}")
        kind, words = _FIELDS[name]
        if type(value) is not kind:
            raise ValueError(f"{path}: {name} = {value!r} must be {words}")
    return {name: value for name, value in found.items() if name not in _INFORMATION}


def write(path: Path, settings: Mapping[str, Any]) -> None:
    """Write settings that `read` understands; None is left out."""
    tables = {name: table for name, table in settings.items() if isinstance(table, Mapping)}
    lines = toml.assignments({n: v for n, v in settings.items() if n not in tables})
    for name, table in tables.items():
        lines += ["", f"[{name}]", *toml.assignments(table)]
    write_text(path, "\n".join(lines) + "\n")
