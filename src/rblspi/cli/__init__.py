"""The command line, one file for each command.

Heavy modules are imported inside functions, so that ``--help`` is quick. All commands share their
exit codes: 0 done, 2 the user's mistake, 3 a policy that ``fit --strict`` does not trust, 130
interrupted with everything kept, 1 a fault of the environment or of ours.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import gymnasium as gym
import typer

from rblspi import __version__
from rblspi.cli.commands import ENTRY_POINTS, Command, add
from rblspi.cli.interrupts import end_process, interruptible
from rblspi.core.entry_points import installed
from rblspi.core.progress import say

OURS, USERS, INTERRUPTED = 1, 2, 130
#: set by the shell's completion script
_COMPLETE = "_RBLSPI_COMPLETE"

app = typer.Typer(
    name="rblspi",
    no_args_is_help=True,
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


#: the modules of our commands, which each have a COMMAND
_OURS = (
    *("train", "evaluate", "watch", "show", "doctor", "explore", "list_", "collect", "check"),
    *("fit", "export", "serve"),
)


@cache
def commands() -> dict[str, Command]:
    """All commands by name; a name of ours cannot be taken by another package."""
    ours = {name.rstrip("_"): import_module(f"rblspi.cli.{name}").COMMAND for name in _OURS}
    return ours | installed(ENTRY_POINTS, Command, "command") | ours


def command_line() -> Any:
    """All commands, as a group of Click."""
    group = typer.main.get_command(app)
    for name, command in commands().items():
        add(group, name, command)
    return group


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every error ends in one sentence and an exit code.

    With ``RBLSPI_DEBUG=1`` in the environment, every error also shows its traceback.
    """
    with interruptible() as interrupted:
        try:
            _end(_run(arguments), arguments)
        except (Exception, KeyboardInterrupt) as error:
            _end(_explain(error, interrupted()), arguments)


def _end(code: int, arguments: Sequence[str] | None) -> NoReturn:
    if arguments is None:  # the process was started for this command
        end_process(code)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Run a command, and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with warnings.catch_warnings():
        if _COMPLETE in os.environ:  # the shell asks what Tab should suggest
            warnings.simplefilter("ignore")
            command_line().main(prog_name="rblspi", complete_var=_COMPLETE)
        warnings.showwarning = lambda message, *_, **__: _say(str(message))
        try:
            command = command_line()
            with command.make_context("rblspi", words) as context:
                command.invoke(context)
            sys.stdout.flush()
        except typer.Exit as ending:
            return ending.exit_code
    return 0


def _explain(error: BaseException, interrupted: bool) -> int:
    """Say what went wrong, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader of the output, such as head, has closed it
        return 0
    if os.environ.get("RBLSPI_DEBUG"):
        traceback.print_exception(error)
    if interrupted or isinstance(error, KeyboardInterrupt):
        say("interrupted")  # some packages turn it into another error
        return INTERRUPTED
    if hasattr(error, "format_message"):  # a wrong option or argument
        context = getattr(error, "ctx", None)
        hint = "" if context is None else f" (see {context.command_path} --help)"
        _say(f"{error.format_message() or 'Name a command.'}", hint)
        return USERS
    text = ". ".join([str(error), *getattr(error, "__notes__", ())])
    name, environment = type(error).__name__, _environment_that_raised(error)
    if environment is not None:
        _say(
            f"the environment {environment} raised {name}: {text}. Run it again with "
            "RBLSPI_DEBUG=1 to see where"
        )
        return OURS
    if isinstance(error, OSError) or _is_our_sentence(error):
        _say(text)
        return USERS
    _say(
        f"{name}: {text}. This should not happen: run it again with RBLSPI_DEBUG=1 to see where, "
        "and report that"
    )
    return OURS


def _is_our_sentence(error: BaseException) -> bool:
    """Whether a command raised this error itself, rather than a package that it called."""
    kinds = (ValueError, TypeError, ImportError, RuntimeError)
    packages = {"rblspi", *(c.function.__module__.split(".")[0] for c in commands().values())}
    return isinstance(error, kinds) and _package(_frames(error)[-1].f_globals) in packages


def _environment_that_raised(error: BaseException) -> str | None:
    """The class of the user's environment or wrapper in whose method an error arose."""
    frames = _frames(error)
    if not frames or _package(frames[-1].f_globals) == "rblspi":
        return None
    owners = (frame.f_locals.get("self") for frame in reversed(frames))
    for owner in (owner for owner in owners if isinstance(owner, gym.Env)):
        if isinstance(owner, gym.Wrapper) and type(owner).__module__.startswith("gymnasium."):
            owner = owner.unwrapped  # a wrapper that checks the environment
        ours = type(owner).__module__.startswith("rblspi.")
        return None if ours else type(owner).__name__
    return None


def _frames(error: BaseException) -> list[Any]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _package(module_globals: dict[str, Any]) -> str:
    return str(module_globals.get("__name__")).split(".")[0]


def _say(message: str, hint: str = "") -> None:
    """Print one line to standard error, without a full stop before the hint."""
    say(" ".join(message.split()).rstrip(".") + hint)
