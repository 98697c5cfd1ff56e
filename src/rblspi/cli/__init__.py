"""The command line: ``rblspi train``, ``evaluate``, ``watch``, ``show``, ``list`` and more.

One file a command. What is heavy is imported inside the functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rblspi import __version__
from rblspi.cli.collect import collect
from rblspi.cli.evaluate import evaluate
from rblspi.cli.fit import fit
from rblspi.cli.list_ import list_
from rblspi.cli.reproduce import reproduce
from rblspi.cli.show import show
from rblspi.cli.train import train
from rblspi.cli.watch import watch

app = typer.Typer(
    name="rblspi",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"rblspi {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Least-squares policy iteration that knows how sure it is.

    Start with [bold]rblspi train CartPole-v1 --save runs/pole[/bold], then
    [bold]rblspi show runs/pole[/bold].
    """


for _name, _command in (
    ("train", train),
    ("evaluate", evaluate),
    ("watch", watch),
    ("show", show),
    ("list", list_),
    ("collect", collect),
    ("fit", fit),
    ("reproduce", reproduce),
):
    app.command(_name)(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; whatever the user got wrong ends in one sentence and code 2.

    With ``RBLSPI_DEBUG=1`` in the environment, every error shows where it came from.
    """
    command = typer.main.get_command(app)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            code = command(args=arguments, prog_name="rblspi", standalone_mode=False)
        except Exception as error:
            code = _explain(error)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> int:
    """Say what went wrong, and return the exit code."""
    if os.environ.get("RBLSPI_DEBUG"):
        traceback.print_exception(error)
    if hasattr(error, "format_message"):  # a wrong option or argument
        # Without a command there is no message: the help was shown.
        _say(error.format_message() or "Name a command.", getattr(error, "ctx", None))
        return 2
    if _is_the_users(error):
        _say(str(error))
        return 2
    name = type(error).__name__
    _say(
        f"{name}: {error}. This should not happen: run it again with RBLSPI_DEBUG=1 to see where, "
        "and report that"
    )
    return 1


def _is_the_users(error: Exception) -> bool:
    """Whether this is an error that our own code raises for what it was given.

    The same kinds of errors, raised by other packages that we called, are ours to repair.
    """
    if isinstance(error, OSError):
        return True
    if not isinstance(error, ValueError | TypeError | ImportError):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    return str(frames[-1][0].f_globals.get("__name__", "")).startswith("rblspi")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Without the line of code, which says nothing to people at a terminal."""
    _say(str(message))


def _say(message: str, context: Any = None) -> None:
    sentence = " ".join(message.split()).rstrip(".")
    hint = "" if context is None else f" (see {context.command_path} --help)"
    print(f"rblspi: {sentence}{hint}", file=sys.stderr)
