"""Algorithms and commands that other packages add by entry points."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points
from typing import TypeVar

Kind = TypeVar("Kind")


def installed(group: str, kind: type[Kind], what: str) -> dict[str, Kind]:
    """Objects of one kind in a group of entry points, by the name of the entry point.

    An entry point that cannot be loaded is left out, with a warning that names its package.

    Parameters
    ----------
    group : str
    kind : type
        The class of all objects in the group.
    what : str
        A word for such an object, used in the warning.
    """
    found = {}
    for entry in entry_points(group=group):
        try:
            loaded = entry.load()
            if not isinstance(loaded, kind):
                raise TypeError(f"{entry.value} is not of the class {kind.__name__}")
        except Exception as error:
            package = entry.module if entry.dist is None else entry.dist.name
            warnings.warn(
                f"the package {package} is broken, and its {what} {entry.name} is left out: "
                f"{type(error).__name__}: {error}",
                stacklevel=3,
            )
        else:
            found[entry.name] = loaded
    return found
