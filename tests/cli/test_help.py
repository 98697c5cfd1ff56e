"""What the command line says about itself: help, what the Tab key suggests, and lists."""

import shlex

import gymnasium as gym
import pytest
import typer

from rblspi.cli import app
from rblspi.cli.list_ import _NEEDS, _is_installed
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


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("rblspi rep", ["reproduce"]),
        ("rblspi train rblspi/Sparse", ["rblspi/SparseMountainCar-v0"]),
        ("rblspi train CartPole-v1 --algo on", ["online-lspi"]),
        ("rblspi fit logs.parquet --algo bls", ["blspi", "blstd"]),
        ("rblspi train CartPole-v1 --basis RBF", ["RBFGrid"]),
        ("rblspi reproduce cart", ["cart-pole"]),
    ],
)
def test_tab_suggests_names(typed, suggested, monkeypatch, capsys):
    monkeypatch.setenv("_RBLSPI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert run() == 0
    said = capsys.readouterr()
    assert said.out.split() == suggested
    assert said.err == ""


def test_an_environment_is_listed_if_it_can_be_made(capsys):
    assert run("list", "environments") == 0
    listed = set(capsys.readouterr().out.split())
    assert {"CartPole-v1", "rblspi/ChainWalk-v0"} <= listed
    for name in ("LunarLander-v3", "Ant-v5", "FrozenLake-v1"):
        try:
            gym.make(name).close()
        except gym.error.DependencyNotInstalled:
            assert name not in listed
        else:
            assert name in listed


@pytest.mark.parametrize("module", _NEEDS)
def test_the_packages_are_those_of_environments_that_there_are(module):
    there = [spec for spec in gym.registry.values() if str(spec.entry_point).startswith(module)]
    assert there
    assert len({_is_installed(spec) for spec in there}) == 1
