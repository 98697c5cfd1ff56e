"""The command line as a person uses it: what works, and one sentence for what does not."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from rblspi import Agent
from rblspi.cli import options, plan
from rblspi.cli.saved import Selection
from tests.support.command import run, said
from tests.support.process import Running

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    arguments = ("--basis", "rbf:3", "--timesteps", 1500, "--seed", 3, "--save", folder)
    assert run("train", CAR, "--algo", "rblspi", *arguments) == 0
    return folder


# What works -----------------------------------------------------------------------------------


def test_help_is_quick_and_complete():
    code = "import sys, rblspi.cli as c\ntry: c.main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("train", "evaluate", "watch", "show", "list", "collect", "fit", "reproduce"):
        assert command in done.stdout
    modules = set(done.stdout.splitlines()[-1].split())
    assert "rblspi.cli.train" in modules
    assert not modules & {"numba", "matplotlib", "scipy", "rblspi.online", "rblspi.online.agent"}


def test_a_run_can_be_repeated_from_its_settings(trained, tmp_path):
    settings = tomllib.loads((trained / "settings.toml").read_text())
    assert settings["environment"] == CAR
    assert settings["seed"] == 3
    assert settings["settings"]["update_every"] == 20
    assert "numpy" in settings["versions"]
    assert run("train", "--config", trained / "settings.toml", "--save", tmp_path, "--quiet") == 0
    assert (tmp_path / "agent.npz").read_bytes() == (trained / "agent.npz").read_bytes()


def test_the_command_line_goes_before_the_file(tmp_path):
    file = tmp_path / "run.toml"
    lines = [f'environment = "{CAR}"', 'algorithm = "rblspi"', 'basis = "rbf:2"']
    lines += ["timesteps = 100"]
    lines += ["[settings]", "discount = 0.5", "update_every = 7"]
    file.write_text("\n".join(lines))
    arguments = ("--episodes", "1", "--set", "discount=0.9", "--save", tmp_path / "run")
    assert run("train", "--config", file, *arguments) == 0
    agent = Agent.load(tmp_path / "run" / "agent.npz")
    assert (agent.discount, agent.get_parameters()["update_every"]) == (0.9, 7)
    assert len(agent.episodes) == 1


def test_settings_and_arguments_reach_where_they_belong(tmp_path):
    code = run(
        *("train", CAR, "--algo", "online-lspi", "--basis", "Fourier(order=2)", "--episodes", "2"),
        *("--set", "on_policy=false", "--set", "update-every=episode"),
        *("--env-set", "gravity=0.002", "--save", tmp_path, "--tensorboard", "--seed", "1"),
    )
    assert code == 0
    agent = Agent.load(tmp_path / "agent.npz")
    assert agent.get_parameters()["on_policy"] is False
    assert agent.get_parameters()["update_every"] == "episode"
    assert agent.env.unwrapped.dynamics.parameters[1] == 0.002
    assert agent.features.size == 9
    assert list((tmp_path / "tensorboard").iterdir())
    assert len((tmp_path / "monitor.csv").read_text().splitlines()) == 4


def test_evaluate(trained, capsys):
    assert run("evaluate", trained, "--episodes", 3, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 3
    assert result["length"]["low"] <= result["length"]["mean"] <= result["length"]["high"]
    assert run("evaluate", trained, "--episodes", 1, "--json") == 0
    result = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (result["length"]["low"], result["length"]["high"]) == (None, None)
    assert run("evaluate", trained / "agent.npz", "--episodes", 2, "--explore") == 0
    assert "return" in capsys.readouterr().out


def test_watch_writes_films(trained, tmp_path):
    from PIL import Image

    assert run("watch", trained, "-o", tmp_path / "film.gif", "--steps", 12) == 0
    with Image.open(tmp_path / "film.gif") as film:
        assert film.size == (600, 400)
        assert film.n_frames > 1
    pytest.importorskip("imageio_ffmpeg")
    assert run("watch", trained, "-o", tmp_path / "film.mp4", "--steps", 12, "--fps", 10) == 0
    assert b"ftyp" in (tmp_path / "film.mp4").read_bytes()[:12]


def test_show_writes_maps(trained, tmp_path, capsys):
    assert run("show", trained, "--out", tmp_path, "--resolution", 25, "--calibration") == 0
    printed = capsys.readouterr().out
    assert "prior_precision" in printed
    assert "true action values lie in their 95% interval" in printed
    assert {"maps.png", "calibration.png"} <= {path.name for path in tmp_path.iterdir()}


def test_list_names_everything(capsys):
    assert run("list") == 0
    printed = capsys.readouterr().out
    for name in (CAR, "CartPole-v1", "RBFGrid", "TileCoding", "online-lspi", "epsilon_decay"):
        assert name in printed
    assert run("list", "bases") == 0
    assert "CartPole" not in capsys.readouterr().out


def start_training(folder, prelude="pass"):
    """A run that would take for ever, after its first episodes."""
    arguments = ("train", CAR, "--basis", "rbf:2", "--timesteps", 10**9, "--save", folder)
    running, monitor = Running(folder, *arguments, prelude=prelude), folder / "monitor.csv"
    running.until(lambda: monitor.exists() and monitor.stat().st_size > 100)
    return running


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_request_to_end_keeps_what_was_learnt(tmp_path):
    running = start_training(tmp_path)
    running.signal(signal.SIGTERM)
    running.wait().require(130)
    agent = Agent.load(tmp_path / "agent.npz")
    assert agent.num_timesteps > 100
    assert rows_of(tmp_path) == len(agent.episodes)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_hard_kill_loses_the_time_since_the_last_checkpoint_and_no_lock_stays(tmp_path):
    running = start_training(tmp_path, "import rblspi.cli.autosave as a; a.SAVE_EVERY = 0.2")
    file, monitor, start = tmp_path / "agent.npz", tmp_path / "monitor.csv", time.time()
    running.until(lambda: start < file.stat().st_mtime < monitor.stat().st_mtime)
    running.end()
    saved, logged = len(Agent.load(file).episodes), rows_of(tmp_path)
    assert 0 < saved <= logged
    assert run("train", "--resume", tmp_path, "--timesteps", 10, "--quiet") == 0
    assert rows_of(tmp_path) == len(Agent.load(file).episodes)


def rows_of(folder):
    return len((folder / "monitor.csv").read_text().splitlines()) - 2


# What does not --------------------------------------------------------------------------------

MISTAKES = [
    ("", "Name a command"),
    ("trian", "No such command 'trian'"),
    ("train", "name an environment"),
    ("train CartPole-v9", "CartPole-v9"),
    ("train rblspi/MountainCat-v0", "did you mean rblspi/MountainCar-v0"),
    ("train Foo-v0", "no environment is called 'Foo-v0': see rblspi list environments"),
    ("train CartPole-v1 --set gamma=0.9", "no setting 'gamma': did you mean discount?"),
    ("train CartPole-v1 --set total_steps=9", "'total_steps': --timesteps, or learn(total_tim"),
    ("train nosuchmodule:Car-v0", "there is no module 'nosuchmodule'"),
    ("train json:", "names no environment"),
    (f"train {CAR} --basis rbf(cell=3)", "unexpected keyword argument 'cell'; its arguments are"),
    (f"train {CAR} --basis rbf(__import__('os'))", "is not written as"),
    (f"train {CAR} --basis rbf:0", "cells=0 must be whole numbers, 1 or more"),
    (f"train {CAR} --basis rbf:3 --set alpha", "'alpha' is not of the form name=value"),
    (f"train {CAR} --basis rbf:3 --set discount=high", "discount='high' must be a number"),
    (f"train {CAR} --basis rbf:3 --set seed=3", "--set seed: this has an option of its own"),
    (f"train {CAR} --basis rbf:3 --env-set gravty=3", "unexpected keyword argument 'gravty'"),
    (f"train {CAR} --basis rbf:3 --timesteps 0", "Invalid value for '--timesteps'"),
    (f"train {CAR} --basis rbf:3 --sed 1", "No such option: --sed"),
    (f"train {CAR} --basis rbf:3 --tensorboard", "add --save DIR"),
    (f"train {CAR} --basis rbf:3 --save FILE", "is a file: name a folder"),
    (f"train {CAR} --config nosuch.toml", "nosuch.toml cannot be read"),
    (f"train {CAR} --resume TRAINED --basis rbf:3", "keeps the agent's own settings"),
    ("train --resume nosuch", "there is no agent or policy nosuch"),
    ("evaluate", "Missing argument"),
    ("evaluate nosuch", "there is no agent or policy nosuch: make one with rblspi train"),
    ("evaluate FILE", "is not a file saved by rblspi"),
    ("evaluate TRAINED --env rblspi/PuddleWorld-v0", "cannot be loaded"),
    ("watch TRAINED -o film.avi", "must end in .gif or .mp4"),
    ("show TRAINED --at 1", "must have 2 numbers"),
    ("list enviroments", "did you mean environments"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_gets_one_sentence(line, message, trained, tmp_path, capsys):
    (tmp_path / "file").write_text("not an agent")
    words = line.replace("TRAINED", str(trained)).replace("FILE", str(tmp_path / "file")).split()
    assert run(*words) == 2
    errors = said(capsys)
    assert message in errors[-1]
    assert errors[-1].startswith("rblspi: ")
    assert len(errors) == 1
    assert "Traceback" not in errors[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("environment = ", "is not TOML"),
        ("\xff", "is not TOML"),
        ("episode = 3", "unknown field 'episode': did you mean episodes"),
        ("episodes = '3'", "episodes = '3' must be a whole number"),
        ("episodes = true", "episodes = True must be a whole number"),
        ("episodes = 0", "episodes=0 must be at least 1"),
        (f"timesteps = {10**18}0", "must be at most 4,611,686,018,427,387,904"),
        ("environment = 3", "environment = 3 must be a text"),
    ],
)
def test_a_mistake_in_a_file_gets_one_sentence(text, message, tmp_path, capsys):
    file = tmp_path / "run.toml"
    file.write_bytes(text.encode("latin-1"))
    assert run("train", *([] if "env" in text else [CAR]), "--config", file) == 2
    (line,) = said(capsys)
    assert message in line


def test_a_bug_of_ours_is_not_blamed_on_the_user(trained, monkeypatch, capsys):
    def broken(*_):
        np.zeros(3).reshape(2)

    monkeypatch.setattr(Selection, "load", broken)
    assert run("evaluate", trained) == 1
    (line,) = said(capsys)
    assert "This should not happen: run it again with RBLSPI_DEBUG=1" in line
    monkeypatch.setenv("RBLSPI_DEBUG", "1")
    assert run("evaluate", trained) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_table_that_cannot_be_printed_is_told_in_a_sentence():
    command = [sys.executable, "-c", "from rblspi.cli import main; main()", "list", "bases"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "rblspi: [Errno 28] No space left on device\n"


def test_output_that_nobody_reads_to_its_end_is_no_error():
    command = [sys.executable, "-c", "from rblspi.cli import main; main()", "reproduce", "--list"]
    done = subprocess.run(
        " ".join(map(shlex.quote, command)) + " | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


# Words ----------------------------------------------------------------------------------------


def test_values_are_literals_or_text():
    read = {"3": 3, "1e-3": 1e-3, "true": True, "None": None, "episode": "episode"}
    read |= {"(1, 2)": (1, 2), "[0.5]": [0.5], "'3'": "3", "__import__('os')": "__import__('os')"}
    assert {text: options.value(text) for text in read} == read


def test_settings_survive_writing_and_reading(tmp_path):
    settings = {
        "environment": 'quote " and \\ and ö',
        "seed": 3,
        "tensorboard": True,
        "settings": {"discount": 0.1, "tiny": 1e-300, "word": "episode", "list": [1, 2.5]},
    }
    plan.write(tmp_path / "x.toml", settings | {"basis": None})
    assert plan.read(tmp_path / "x.toml") == settings
