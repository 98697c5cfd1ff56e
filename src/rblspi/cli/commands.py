"""Commands, ours and those of other packages.

A package adds a command by an entry point that names a `Command`::

    [project.entry-points."rblspi.commands"]
    my-command = "my_package.command:COMMAND"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import typer

ENTRY_POINTS = "rblspi.commands"


class Command(NamedTuple):
    """What ``rblspi NAME`` runs."""

    function: Callable[..., Any]  # for Typer: options are annotated, the docstring is the help
    example: str  # of its arguments


def add(group: Any, name: str, command: Command) -> None:
    """Add a command to the command line under a name."""
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command(name, epilog=f"Example: rblspi {name} {command.example}")(command.function)
    group.add_command(typer.main.get_command(made), name)
