import json
import re

import gymnasium as gym
import numpy as np
import pytest

from rblspi import BLSPI, LinearPolicy, RBFGrid
from rblspi.data import read_log
from rblspi.rollout import collect
from tests.support.chain import random_episodes
from tests.support.command import run
from tests.support.logs import joined, write_parquet

pytestmark = pytest.mark.slow

WORDS = "RBFGrid(3, width=1.5, low=(-0.8, -1), high=(0.8, 1))"
BASIS = RBFGrid(3, width=1.5, low=(-0.8, -1), high=(0.8, 1))
SETTINGS = ("--basis", WORDS, "--set", "discount=0.95", "--set", "prior_precision=1e-6")


def write(path, metadata=None, spoil=lambda log: None):
    (chunk,) = collect("rblspi/InvertedPendulum-v0", 9000, seed=0)
    spoil(chunk)
    return write_parquet(path, chunk, 2, metadata)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    origin = {"environment": "rblspi/InvertedPendulum-v0", "arguments": {}}
    return write(tmp_path_factory.mktemp("logs") / "pendulum.parquet", origin)


def test_without_an_environment_held_out_episodes_tell_whether_intervals_are_true(tmp_path, capsys):
    log, saved = write(tmp_path / "log.parquet"), tmp_path / "saved"
    assert run("fit", log, "--algo", "blspi", *SETTINGS, "--save", saved, "--quiet") == 0
    assert run("show", saved, "--calibration") == 2
    assert "add --data LOG to compare with held-out episodes" in capsys.readouterr().err
    assert run("show", saved, "--calibration", "--data", log) == 0
    assert "mean returns of held-out regions lie in their 95% interval" in capsys.readouterr().out
    assert (saved / "calibration.png").exists()


def test_a_policy_from_logs_is_a_policy_like_others(logs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rblspi.core.progress.LINE_EVERY", 0.0)
    file = tmp_path
    assert run("fit", logs, "--algo", "blspi", *SETTINGS, "--save", file) == 0
    said = capsys.readouterr()
    assert "iteration 1: " in said.err
    assert "BLSPI: 9,000 transitions, 30 weights, rank 30" in said.out
    assert re.search(r"policy iteration converged after \d+ iterations", said.out)
    assert "coverage, visited by the policy: in 0.0% of 10,000 states" in said.out

    policy = LinearPolicy.load(file / "policy.npz")
    assert policy.provenance["algorithm"] == "blspi"
    fitted = BLSPI(BASIS, 3, discount=0.95, prior_precision=1e-6).fit(read_log(logs))
    np.testing.assert_array_equal(policy.weights, fitted.weights_)

    assert run("evaluate", file, "--episodes", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["length"]["mean"] == 3000
    assert run("show", file) == 0
    assert run("watch", file, "--steps", 3, "--out", tmp_path / "film.gif") == 0
    assert {"maps.png", "film.gif"} <= {path.name for path in tmp_path.iterdir()}


def test_the_value_of_a_saved_policy_comes_with_an_interval(logs, tmp_path, capsys):
    file, values = tmp_path / "policy", tmp_path / "values"
    assert run("fit", logs, "--basis", WORDS, "--set", "discount=0.95", "--save", file) == 0
    arguments = ("--basis", WORDS, "--set", "discount=0.95", "--quiet")
    assert run("fit", logs, "--algo", "lstd", "--policy", file, "--save", values, *arguments) == 0
    assert "value of the policy in its first states:" in capsys.readouterr().out
    assert LinearPolicy.load(values / "policy.npz").provenance["algorithm"] == "lstd"
    assert run("fit", logs, "--algo", "blstd", *arguments) == 0
    assert "BLSTD: 9,000 transitions, 10 weights" in capsys.readouterr().out
    said = set()
    for alpha in (1e-3, 1e3):
        prior = ("--set", f"prior_precision={alpha}")
        assert run("fit", logs, "--algo", "blstd", "--policy", file, *prior, *arguments) == 0
        said.add(capsys.readouterr().out.splitlines()[-1])
    assert len(said) == 2  # the prior that was asked for is the prior of the value, too


def test_a_policy_of_an_environment_made_with_arguments(tmp_path, capsys):
    lake = ("FrozenLake-v1", "--env-set", "map_name=8x8", "--quiet")
    logs, file, more = tmp_path / "a.parquet", tmp_path / "new" / "p", tmp_path / "b.parquet"
    assert run("collect", *lake, "--transitions", 3000, "-o", logs) == 0
    assert run("fit", logs, "--quiet") == 2  # a file may not pass text to an environment
    said = capsys.readouterr().err
    assert f"{logs}: it was made for FrozenLake-v1 with 'map_name' = '8x8'" in said
    assert "--env-set NAME=VALUE" in said
    assert run("fit", logs, "--save", file, *lake[1:]) == 0
    assert run("collect", *lake, "--transitions", 500, "--policy", file, "-o", more) == 0
    assert run("fit", more, "--algo", "lstd", "--policy", file, *lake[1:]) == 0
    assert "value of the policy in its first states:" in capsys.readouterr().out
    again = ("--resume", file, "--env-set", "map_name=8x8", "--timesteps", 9)
    assert run("train", *again, "--save", tmp_path / "no") == 2
    assert "does not learn online" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_numbers_in_the_logs_are_passed_to_the_environment(tmp_path):
    logs, file = tmp_path / "a.parquet", tmp_path / "policy"
    chain = ("rblspi/ChainWalk-v0", "--env-set", "states=12", "--env-set", "max_episode_steps=9")
    assert run("collect", *chain, "--transitions", 500, "-o", logs, "--quiet") == 0
    assert run("fit", logs, "--save", file, "--quiet") == 0
    made = LinearPolicy.load(file / "policy.npz").environment
    assert made["arguments"] == {"states": 12}
    assert made["limit"] == 9
    again = ("fit", logs, "--env-set", "states=20", "--basis", "onehot", "--quiet")
    assert run(*again, "--save", file) == 0
    assert LinearPolicy.load(file / "policy.npz").environment["arguments"] == {"states": 20}


def test_without_an_environment_the_logs_will_do(tmp_path, capsys):
    path, file = write(tmp_path / "log.parquet"), tmp_path / "policy"
    assert run("fit", path, "--algo", "blspi", *SETTINGS, "--save", file, "--quiet") == 0
    assert "coverage, next in the data:" in capsys.readouterr().out
    policy = LinearPolicy.load(file / "policy.npz")
    assert policy.actions == 3
    assert policy.predict([0.0, 0.0])[0] in range(3)
    assert run("evaluate", file) == 2
    assert "names no environment to act in" in capsys.readouterr().err
    assert run("evaluate", file, "--env", "rblspi/InvertedPendulum-v0", "--episodes", 1) == 0


def spoil(log):
    log.rewards[6000] = np.nan
    log.actions[[3, 8000]] = 7


def test_bad_rows_are_named_or_counted(tmp_path, capsys):
    origin = {"environment": "rblspi/InvertedPendulum-v0", "arguments": {}}
    path = write(tmp_path / "bad.parquet", origin, spoil)
    assert run("fit", path, *SETTINGS[:4], "--quiet") == 2
    said = capsys.readouterr().err
    assert f"{path}, row 3, column action: 7 is not an action: they go from 0 to 2" in said
    assert run("fit", path, *SETTINGS[:4], "--quiet", "--skip-bad") == 0
    said = capsys.readouterr().out
    assert "FQI: 8,997 transitions" in said
    assert "3 bad rows left out (action 2, reward 1)" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo", "lspy"], "no algorithm is called 'lspy': did you mean lspi"),
        (["--save", "agent.npz"], "--save agent.npz must name a folder"),
        (["--policy", "a.npz"], "--policy is for lstd, blstd and gptd"),
        (["--algo", "lstd", "--save", "a"], "gives values of states"),
        (["--set", "pessimism=1"], "fqi has no setting 'pessimism'"),
        (["--actions", "2"], "--actions 2"),
        (["--columns", "state=nothing"], "has no column 'nothing' for the state"),
        (["--columns", "nothing"], "must say FIELD=NAME"),
        (["--save", "a\0b"], "embedded null byte"),
        (["--set", f"discount={10**400}"], "is too large a number"),
    ],
)
def test_faults_end_in_one_sentence(logs, capsys, arguments, message):
    assert run("fit", logs, "--basis", WORDS, "--quiet", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def only_bad(log):
    log.rewards[:] = np.nan


def one_large_action(log):
    log.actions[8000] = 10**6


@pytest.mark.parametrize(
    ("spoil", "arguments", "message"),
    [
        (only_bad, ["--skip-bad"], "no chunks: at least one transition is needed; 9,000 bad rows"),
        (
            one_large_action,
            [],
            "the largest action in the data is 1,000,000: 1,000,001 actions with 145 features need "
            "145,000,145 weights; if the action column is right, give --actions",
        ),
        (one_large_action, ["--actions", 3], "1000000 is not an action: they go from 0 to 2"),
        (one_large_action, ["--actions", 10**7], "need 1,450,000,000 weights, more than 100,000"),
        (lambda log: None, ["--env-set", "a=1"], "names none: give --env"),
    ],
)
def test_logs_that_cannot_be_used_are_refused(tmp_path, capsys, spoil, arguments, message):
    path = write(tmp_path / "log.parquet", None, spoil)
    assert run("fit", path, "--quiet", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_values_of_states_do_not_depend_on_the_actions(tmp_path):
    path = write(tmp_path / "log.parquet", None, one_large_action)
    assert run("fit", path, "--quiet", "--algo", "lstd") == 0


def test_only_bad_rows_are_said_where_the_environment_is_known(tmp_path, capsys):
    origin = {"environment": "rblspi/InvertedPendulum-v0", "arguments": {}}
    path = write(tmp_path / "log.parquet", origin, only_bad)
    assert run("fit", path, "--quiet", "--skip-bad", "--basis", WORDS) == 2
    assert "needed; 9,000 bad rows left out (reward 9,000); the first: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing.parquet", "nothing\0.parquet"])
def test_data_that_are_not_there_are_named(name, capsys):
    assert run("fit", name) == 2
    assert f"there is no file or folder {name}" in capsys.readouterr().err


# Trust -------------------------------------------------------------------------------------------

QUIETLY = ("--quiet", "--set", "discount=0.9")


def test_a_policy_that_the_data_support_is_saved_with_its_report(tmp_path, capsys):
    logs = write_parquet(tmp_path / "chain.parquet", joined(random_episodes(10, 500, seed=0)))
    assert run("fit", logs, *QUIETLY, "--strict", "--save", tmp_path) == 0
    assert "trust report: trust it\n  effective sample" in capsys.readouterr().out
    saved = LinearPolicy.load(tmp_path / "policy.npz").provenance["trust"]
    assert saved["verdict"] == "trust it"
    assert {finding["word"] for finding in saved["findings"]} == {"good"}


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 3)])
def test_strict_ends_with_a_code_of_its_own_after_saving(tmp_path, capsys, options, code):
    env = gym.make("rblspi/MountainCar-v0", max_episode_steps=50)
    (log,) = collect(env, episodes=20, seed=0)
    logs = write_parquet(tmp_path / "car.parquet", log)
    basis = ("--basis", "Polynomial(2)", "--save", tmp_path)
    assert run("fit", logs, *QUIETLY, *basis, *options) == code
    assert "trust report: do not trust" in capsys.readouterr().out
    saved = LinearPolicy.load(tmp_path / "policy.npz").provenance["trust"]
    assert saved["verdict"] == "do not trust"
