"""What was learnt, logged or typed is not lost on the way from one command to the next."""

import tomllib
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from rblspi import Agent
from rblspi.cli.fit import _default_basis
from rblspi.core.files import locked
from rblspi.data.transitions import Transitions
from tests.support.command import run, said

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"

#: a short run
SMALL = ("--basis", "rbf:2", "--timesteps", 20, "--quiet")


class Fragile(gym.Env):
    """Raises an error, or returns what is no number, in its 31st step."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def __init__(self, how="never", render_mode=None):
        self.how = how
        if how == "at once":
            raise RuntimeError("no such file of levels")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        how = self.how if self.steps > 30 else "never"
        if how == "raise":
            raise ValueError("out of cheese")
        if how == "numpy":
            np.zeros(3).reshape(2)
        if how == "file":
            Path("/nosuch/file").read_text()
        seen = np.full(1, np.nan) if how == "observation" else self.np_random.random(1)
        reward = np.nan if how == "nan" else 1.0
        return seen.astype(np.float32), reward, self.steps % 10 == 0, False, {}


@pytest.fixture
def fragile():
    gym.register("Fragile-v0", Fragile, disable_env_checker=True)
    yield "Fragile-v0"
    del gym.registry["Fragile-v0"]


# Environments that fail -----------------------------------------------------------------------


@pytest.mark.parametrize("how", ["raise", "numpy", "nan", "observation"])
def test_what_was_learnt_before_a_failure_is_saved(how, fragile, tmp_path, capsys):
    folder = tmp_path / "run"
    how = ("--env-set", f"how={how}", "--save", folder, "--quiet")
    assert run("train", fragile, "--algo", "rblspi", "--basis", "rbf:2", *how) in (1, 2)
    (line,) = said(capsys)
    assert f"is saved in {folder}" in line
    agent = Agent.load(folder / "agent.npz", "Fragile-v0")
    assert len(agent.episodes) == 3
    assert agent.posterior is not None
    assert np.any(agent.posterior.mean)
    assert len((folder / "monitor.csv").read_text().splitlines()) == 5
    agent.learn(20)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "the environment Fragile raised ValueError: out of cheese"),
        ("numpy", "the environment Fragile raised ValueError: cannot reshape"),
        ("file", "the environment Fragile raised FileNotFoundError"),
        ("at once", "the environment Fragile raised RuntimeError: no such file of levels"),
    ],
)
def test_an_error_of_the_environment_is_said_to_be_its(how, message, fragile, monkeypatch, capsys):
    command = ("train", fragile, "--basis", "rbf:2", "--env-set", f"how={how}", "--quiet")
    assert run(*command) == 1
    (line,) = said(capsys)
    assert message in line
    assert "RBLSPI_DEBUG=1" in line
    assert "should not happen" not in line
    monkeypatch.setenv("RBLSPI_DEBUG", "1")
    assert run(*command) == 1
    assert "Traceback" in capsys.readouterr().err


# Arguments of environments --------------------------------------------------------------------


def test_arguments_that_are_text_are_given_again(tmp_path, capsys):
    folder, text = tmp_path / "lake", ("--env-set", "map_name=8x8")
    budget = ("--timesteps", 60, "--quiet")
    start = ("train", "FrozenLake-v1", "--env-set", "is_slippery=False", "--save", folder)
    assert run(*start, *text, *budget) == 0
    assert run("evaluate", folder, "--env-set", "is_slippery=False") == 2
    assert "'map_name' = '8x8'" in (message := capsys.readouterr().err)
    assert "--env-set NAME=VALUE" in message
    assert run("evaluate", folder, *text, "--env-set", "nosuch=1") == 2
    assert "nosuch" in capsys.readouterr().err
    assert run("evaluate", folder, "--episodes", 2, *text) == 0
    assert run("show", folder, "--out", tmp_path, "--resolution", 3, *text) == 0
    assert run("train", "--resume", folder, "--save", folder, *budget, *text) == 0
    arguments = tomllib.loads((folder / "settings.toml").read_text())["env_settings"]
    assert arguments == {"map_name": "8x8", "is_slippery": False}
    pytest.importorskip("pygame")
    assert run("watch", folder, "-o", tmp_path / "lake.gif", "--steps", 3, *text) == 0


# Going on -------------------------------------------------------------------------------------


def test_going_on_in_the_same_folder_keeps_its_log(tmp_path):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    new = ("train", CAR, "--basis", "rbf:2", "--seed", 3, "--env-set", "max_episode_steps=50")
    assert run(*new, "--timesteps", 220, "--save", folder, "--quiet") == 0
    before = (folder / "monitor.csv").read_text()
    again = ("train", "--resume", folder, "--timesteps", 180, "--quiet")
    assert run(*again, "--save", f"{folder}/../run") == 0
    after = (folder / "monitor.csv").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == 2 + len(Agent.load(folder / "agent.npz").episodes)
    seconds = [float(line.split(",")[2]) for line in after.splitlines()[2:]]
    assert seconds == sorted(seconds)
    settings = tomllib.loads((folder / "settings.toml").read_text())
    assert settings["timesteps"] == 400
    assert settings["resumed"] == {"agent": str(folder), "timesteps": 220, "episodes": 4}
    assert settings["env_settings"] == {"max_episode_steps": 50}
    assert run("train", "--config", folder / "settings.toml", "--save", whole, "--quiet") == 0
    np.testing.assert_array_equal(
        Agent.load(folder / "agent.npz").episodes, Agent.load(whole / "agent.npz").episodes
    )


def test_episodes_are_counted_from_the_beginning_too(tmp_path):
    new = ("train", CAR, "--basis", "rbf:2", "--episodes", 2, "--save", tmp_path / "a", "--quiet")
    assert run(*new) == 0
    again = ("--resume", tmp_path / "a", "--episodes", 1, "--save", tmp_path / "b", "--quiet")
    assert run("train", *again) == 0
    settings = tomllib.loads((tmp_path / "b" / "settings.toml").read_text())
    assert settings["episodes"] == 3
    assert "timesteps" not in settings
    assert len((tmp_path / "b" / "monitor.csv").read_text().splitlines()) == 3


def test_a_log_that_is_none_is_not_written_below(tmp_path, capsys):
    new = ("train", CAR, "--basis", "rbf:2", "--timesteps", 20, "--save", tmp_path, "--quiet")
    assert run(*new) == 0
    (tmp_path / "monitor.csv").write_text("my notes\n")
    assert run("train", "--resume", tmp_path, "--timesteps", 9, "--save", tmp_path) == 2
    assert "does not begin as a monitor file does" in capsys.readouterr().err
    assert (tmp_path / "monitor.csv").read_text() == "my notes\n"


def test_an_agent_goes_on_in_its_folder_unless_another_is_named(tmp_path, capsys):
    folder = tmp_path / "run"
    assert run("train", CAR, *SMALL, "--save", folder) == 0
    for saved in (folder, folder / "agent.npz"):
        assert run("train", "--resume", saved, "--timesteps", 20, "--quiet") == 0
    printed = capsys.readouterr()
    assert f"going on in {folder} after 40 steps" in printed.err
    assert f"saved in {folder}" in printed.out
    assert Agent.load(folder / "agent.npz").num_timesteps == 60
    (folder / "agent.npz").rename(tmp_path / "mine.npz")
    assert run("train", "--resume", tmp_path / "mine.npz", "--timesteps", 20, "--quiet") == 0
    assert "not saved: next time add --save DIR" in capsys.readouterr().out
    assert Agent.load(tmp_path / "mine.npz").num_timesteps == 60


def test_an_agent_is_not_replaced_by_another_unasked(tmp_path, capsys):
    folder, new = tmp_path / "run", ("train", CAR, *SMALL, "--seed", 1)
    assert run(*new, "--save", folder) == 0
    assert run("train", CAR, *SMALL, "--seed", 2, "--save", tmp_path / "other") == 0
    before = {file: file.read_bytes() for file in folder.iterdir()}
    capsys.readouterr()
    resume = ("train", "--resume", tmp_path / "other", "--timesteps", 5)
    for command in (new, resume):
        assert run(*command, "--save", folder) == 2
        (line,) = said(capsys)
        assert f"there is an agent in {folder} already: --resume {folder} goes on" in line
        assert "--overwrite replaces it" in line
        assert {file: file.read_bytes() for file in folder.iterdir()} == before
    assert run(*resume, "--save", folder, "--overwrite") == 0
    assert Agent.load(folder / "agent.npz").seed == 2
    assert run(*new, "--save", folder, "--overwrite") == 0
    assert (folder / "agent.npz").read_bytes() == before[folder / "agent.npz"]


def test_a_second_training_in_the_same_folder_is_refused(tmp_path, capsys):
    with locked(tmp_path / "run"):
        for command in (("train", CAR, *SMALL), ("train", CAR, *SMALL, "--overwrite")):
            assert run(*command, "--save", tmp_path / "run") == 2
            (line,) = said(capsys)
            assert f"another process is writing to {tmp_path / 'run'}: wait for it" in line
        assert not list((tmp_path / "run").iterdir())
    assert run("train", CAR, *SMALL, "--save", tmp_path / "run") == 0


def test_a_mistake_makes_no_folder(tmp_path):
    assert run("train", "NoSuch-v0", "--save", tmp_path / "new") == 2
    assert run("train", CAR, "--set", "nosuch=1", "--save", tmp_path / "new") == 2
    assert run("train", "--resume", tmp_path / "nosuch", "--save", tmp_path / "new") == 2
    assert not list(tmp_path.iterdir())


# From a log to a policy -----------------------------------------------------------------------


def test_data_of_another_environment_choose_no_basis():
    seen = np.zeros((5, 3))
    data = [Transitions.from_arrays(seen, [0] * 5, [0.0] * 5, seen, [False] * 5)]
    env = gym.make("CartPole-v1")
    with pytest.raises(ValueError, match="has 3 numbers, of the environment 4: correct --env"):
        _default_basis(data, env.observation_space)
    with pytest.raises(ValueError, match="no chunks: at least one transition is needed"):
        _default_basis([], env.observation_space)
