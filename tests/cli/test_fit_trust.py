import gymnasium as gym
import pytest

from rblspi import LinearPolicy
from rblspi.rollout import collect
from tests.support.chain import random_episodes
from tests.support.command import run
from tests.support.logs import joined, write_parquet

pytestmark = pytest.mark.slow

SETTINGS = ("--quiet", "--set", "discount=0.9")


def test_a_policy_that_the_data_support_is_saved_with_its_report(tmp_path, capsys):
    logs = write_parquet(tmp_path / "chain.parquet", joined(random_episodes(10, 500, seed=0)))
    assert run("fit", logs, *SETTINGS, "--strict", "--save", tmp_path) == 0
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
    assert run("fit", logs, *SETTINGS, *basis, *options) == code
    assert "trust report: do not trust" in capsys.readouterr().out
    saved = LinearPolicy.load(tmp_path / "policy.npz").provenance["trust"]
    assert saved["verdict"] == "do not trust"
