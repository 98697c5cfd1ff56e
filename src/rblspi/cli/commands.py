"""Commands of this package and of other packages.

A package adds a command by an entry point that names a `Command`::

    [project.entry-points."rblspi.commands"]
    my-command = "my_package.command:COMMAND"
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple, get_type_hints

import typer

ENTRY_POINTS = "rblspi.commands"


class Command(NamedTuple):
    """What ``rblspi NAME`` runs."""

    #: for Typer: options are annotated, the docstring is the help. A parameter whose type is a
    #: NamedTuple stands for the options that are its fields.
    function: Callable[..., Any]
    example: str  # of its arguments


def add(group: Any, name: str, command: Command) -> None:
    """Add a command to the command line under a name."""
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command(name, epilog=f"Example: rblspi {name} {command.example}")(_flat(command.function))
    group.add_command(typer.main.get_command(made), name)


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the fields of its groups of options as parameters of its own."""
    parameters, groups = [], {}
    for parameter in signature(function, eval_str=True).parameters.values():
        if hasattr(parameter.annotation, "_fields"):
            kind = groups[parameter.name] = parameter.annotation
            parameters += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
                for name, hint in get_type_hints(kind, include_extras=True).items()
                for default in [kind._field_defaults.get(name, Parameter.empty)]
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(function)
    def flat(**given: Any) -> Any:
        made = {name: kind(*map(given.pop, kind._fields)) for name, kind in groups.items()}
        return function(**given, **made)

    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat
