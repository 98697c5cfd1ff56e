"""``rblspi list`` names what can be used, and nothing else."""

import gymnasium as gym
import pytest

from rblspi.cli.list_ import _NEEDS, _is_installed
from tests.support.command import run


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
