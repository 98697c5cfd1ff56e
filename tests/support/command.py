"""The command line as a test calls it."""

import pytest

from rblspi.cli import command_line, main


def run(*arguments):
    """Exit code of a command."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def require_valid(words):
    """Raise an error unless these are a command with options that it has; nothing is run."""
    commands = command_line()
    with commands.make_context("rblspi", [], resilient_parsing=True) as context:
        command = commands.get_command(context, words[0])
        assert command is not None, f"there is no command rblspi {words[0]}"
        command.make_context(words[0], list(words[1:]), parent=context)


def said(capsys):
    """Lines on the error stream, without the notice that something is being compiled."""
    lines = capsys.readouterr().err.strip().splitlines()
    return [line for line in lines if not line.startswith("rblspi: compiling ")]
