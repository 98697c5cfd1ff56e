"""``rblspi list``: list environments, bases and algorithms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli.commands import Command
from rblspi.registry import algorithms, nearest

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

KINDS = ("environments", "bases", "algorithms")

#: packages that environments of Gymnasium need, by the module they are in
_NEEDS = {
    "gymnasium.envs.box2d": "Box2D",
    "gymnasium.envs.mujoco": "mujoco",
    "gymnasium.envs.phys2d": "jax",
    "gymnasium.envs.tabular": "jax",
}

_WHERE = {
    "online": "rblspi train ENV_ID --algo",
    "policy": "rblspi fit DATA --algo",
    "values": "rblspi fit DATA --policy SAVED --algo",
}


def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help="environments, bases or algorithms; all of them if left out.",
        ),
    ] = None,
) -> None:
    """List environments, bases and algorithms, with their settings and defaults."""
    if what is not None and what not in KINDS:
        raise ValueError(f"there is no list of {what!r}: {nearest(what, KINDS)}")
    from rich.console import Console

    console = Console()
    if what in (None, "environments"):
        _environments(console)
    if what in (None, "bases"):
        _bases(console)
    if what in (None, "algorithms"):
        for algorithm in algorithms().values():
            title = f"{_WHERE[algorithm.learns]} {algorithm.name}"
            if algorithm.available:
                _table(console, title, algorithm.load().__doc__, algorithm.settings())
            else:
                _table(console, title, f"Needs pip install 'rblspi[{algorithm.needs}]'.", {})


def _environments(console: Any) -> None:
    import gymnasium as gym
    from rich.columns import Columns

    ours = sorted(name for name in gym.registry if name.startswith("rblspi/"))
    others = sorted(
        name
        for name, spec in gym.registry.items()
        if name not in ours and not name.startswith("GymV") and _is_installed(spec)
    )
    console.rule("environments of this package, compiled", align="left")
    console.print(Columns(ours, padding=(0, 3)))
    console.rule("installed environments; actions: discrete or up to three numbers", align="left")
    console.print(Columns(others, padding=(0, 3)))
    console.print("any other: module:EnvId imports the module that registers it", style="dim")


def _is_installed(spec: EnvSpec) -> bool:
    """Whether the package that an environment needs can be imported."""
    package = next((_NEEDS[m] for m in _NEEDS if str(spec.entry_point).startswith(m)), None)
    return package is None or find_spec(package) is not None


def _bases(console: Any) -> None:
    from rblspi.features import BASES

    for name, basis in BASES.items():
        fields = {field.name: field.default for field in dataclasses.fields(basis)}
        _table(console, f'--basis "{name}(...)"', basis.__doc__, fields)


def _table(console: Any, title: str, doc: str | None, settings: Mapping[str, Any]) -> None:
    from rich.text import Text

    console.rule(Text(title), align="left")
    console.print(Text((doc or "").strip().splitlines()[0]))
    for name, default in settings.items():
        shown = "chosen for you" if default is None else repr(default)
        console.print(Text.assemble("  ", (f"{name:18}", "bold"), shown))


COMMAND = Command(list_, "algorithms")
