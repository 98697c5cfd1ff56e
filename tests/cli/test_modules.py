"""Environments and wrappers in modules of the user's own, from the first command to the last."""

import sys

import gymnasium as gym
import pytest

from tests.support.command import run, said

MODULE = """
import gymnasium as gym
from rblspi.environments.chain_walk import ChainWalk

gym.register("Own-v0", entry_point=ChainWalk, max_episode_steps=20)


class Twice(gym.RewardWrapper):
    def reward(self, reward):
        return 2.0 * reward
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module that nobody has imported."""
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    forget()


def forget():
    """As in a new process."""
    sys.modules.pop("own_module", None)
    gym.registry.pop("Own-v0", None)


TRAIN = ("train", "own_module:Own-v0", "--algo", "online-lspi", "--timesteps", "60", "--quiet")


def test_every_command_says_what_finds_the_module_and_finds_it(folder, capsys):
    assert run(*TRAIN, "--save", "runs") == 0
    assert "next, rblspi show runs --env own_module:Own-v0" in capsys.readouterr().out
    for words in ("evaluate", "show", "watch", "doctor", "explore", "export", "serve"):
        forget()
        command = (words, "runs", "policy.onnx") if words == "export" else (words, "runs")
        assert run(*command) == 2
        assert "add --env own_module:Own-v0" in said(capsys)[-1]
        assert "own_module" not in sys.modules  # the word of a file imports nothing
    forget()
    assert run("evaluate", "runs", "--env", "own_module:Own-v0", "--episodes", "2") == 0
    assert run("doctor", "runs", "--env", "own_module:Own-v0") == 0
    forget()
    assert run("export", "runs", "policy.onnx", "--env", "own_module:Own-v0") == 0
    assert (folder / "policy.onnx").exists()
    forget()
    assert run("train", "--resume", "runs", "--timesteps", "20", "--quiet") == 2
    assert "add --env own_module:Own-v0" in said(capsys)[-1]
    goes_on = ("train", "--env", "own_module:Own-v0", "--resume", "runs", "--timesteps", "20")
    assert run(*goes_on, "--quiet") == 0
    forget()
    again = ("train", "--config", "runs/settings.toml", "--save", "again", "--quiet")
    assert run(*again) == 0


def test_wrappers_are_typed_and_never_taken_from_a_file(folder, capsys):
    wrap = ("--wrap", "own_module:Twice")
    assert run(*TRAIN, *wrap, "--save", "runs") == 0
    shown = capsys.readouterr().out
    assert "rblspi show runs --env own_module:Own-v0 --wrap own_module:Twice" in shown
    assert run("evaluate", "runs") == 2
    assert "add --wrap module:Wrapper" in said(capsys)[-1]
    plain, wrapped = (mean_return(capsys, *words) for words in ((), wrap))
    assert wrapped == 2.0 * plain
    assert run("train", "--config", "runs/settings.toml", "--save", "again", "--quiet") == 0
    assert run("evaluate", "runs", "--wrap", "own_module:Thrice") == 2
    assert "has no wrapper 'Thrice'" in said(capsys)[-1]
    assert run("evaluate", "runs", "--wrap", "Twice") == 2
    assert "is not written as module:Wrapper" in said(capsys)[-1]


def mean_return(capsys, *wrap):
    import json

    capsys.readouterr()
    words = ("--env", "own_module:Own-v0", "--episodes", "3", "--json")
    assert run("evaluate", "runs", *words, *wrap) == 0
    return json.loads(capsys.readouterr().out)["return"]["mean"]


def test_checkpoints_and_evaluations_of_the_command(folder):
    every = ("--checkpoint-every", "20", "--checkpoints", "2", "--eval-every", "30")
    assert run(*TRAIN, *every, "--eval-episodes", "2", "--save", "runs") == 0
    kept = sorted(file.name for file in (folder / "runs" / "checkpoints").iterdir())
    assert kept == ["agent_40.npz", "agent_60.npz"]
    assert len((folder / "runs" / "evaluations.csv").read_text().splitlines()) == 3
    assert (folder / "runs" / "best.npz").exists()
    assert run(*TRAIN, *every) == 2  # nowhere to keep them
