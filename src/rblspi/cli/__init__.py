"""The command line: ``rblspi train``, ``evaluate``, ``watch``, ``show``, ``list`` and more.

One file a command. What is heavy is imported inside the functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Any

import gymnasium as gym
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
    notes = "".join(f". {note}" for note in getattr(error, "__notes__", ()))
    name = type(error).__name__
    environment = _environment_that_raised(error)
    if environment is not None:
        _say(
            f"the environment {environment} raised {name}: {error}{notes}. Run it again with "
            "RBLSPI_DEBUG=1 to see where"
        )
        return 1
    if _is_the_users(error):
        _say(f"{error}{notes}")
        return 2
    _say(
        f"{name}: {error}{notes}. This should not happen: run it again with RBLSPI_DEBUG=1 to see "
        "where, and report that"
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
    return _is_ours(_frames(error)[-1].f_globals.get("__name__"))


def _environment_that_raised(error: Exception) -> str | None:
    """The class of the user's environment or wrapper that an error came out of, if it did."""
    frames = _frames(error)
    if not frames or _is_ours(frames[-1].f_globals.get("__name__")):
        return None  # our own sentence about what we were given
    for frame in reversed(frames):
        owner = _owner(frame)
        if isinstance(owner, gym.Env) and frame.f_code.co_name in _METHODS:
            kind: type = type(owner)
            if kind.__module__.split(".")[0] == "gymnasium" and isinstance(owner, gym.Wrapper):
                kind = type(
                    getattr(owner, "unwrapped", owner)
                )  # a check of what the environment does
            return None if _is_ours(kind.__module__) else kind.__name__
    return None


#: what an environment does when it is asked to
_METHODS = frozenset({"__init__", "reset", "step", "render"})


def _frames(error: Exception) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _owner(frame: FrameType) -> Any:
    """The first argument of a function: the object, where the function is a method."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _is_ours(module: object) -> bool:
    return str(module).split(".")[0] == "rblspi"


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Without the line of code, which says nothing to people at a terminal."""
    _say(str(message))


def _say(message: str, context: Any = None) -> None:
    sentence = " ".join(message.split()).rstrip(".")
    hint = "" if context is None else f" (see {context.command_path} --help)"
    print(f"rblspi: {sentence}{hint}", file=sys.stderr)
