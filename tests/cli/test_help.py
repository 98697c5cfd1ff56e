"""What the command line says about itself."""

import shlex

import pytest
import typer

from rblspi.cli import app
from tests.support.command import require_valid, run

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_that_is_valid(name, capsys):
    assert run(name, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    example = COMMANDS[name].epilog.removeprefix("Example: ")
    assert example in shown
    program, *words = shlex.split(example)
    assert (program, words[0]) == ("rblspi", name)
    require_valid(words)
