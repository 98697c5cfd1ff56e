"""Learning on after a load gives the same bits; what does not fit is refused."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OPSRL, RBLSPI, Agent, FunctionBasis, OnlineLSPI, RBFGrid
from rblspi.core import archive
from rblspi.core.archive import FileError
from rblspi.model.incremental import BLOCK_UPDATE, RANK_ONE, RECOMPUTE
from rblspi.online import agent_file
from tests.support.agents import assert_same_bits

CHAIN = "rblspi/ChainWalk-v0"
CAR = "rblspi/MountainCar-v0"
LEARN_ON = """
import sys
from rblspi import Agent
for path in sys.argv[1:]:
    agent = Agent.load(path)
    agent.learn(777, reset_num_timesteps=False)
    agent.save(path)
"""


@pytest.mark.parametrize("method", [RECOMPUTE, BLOCK_UPDATE, RANK_ONE])
def test_a_posterior_goes_on_by_the_method_it_was_updated_by(method, tmp_path):
    """Which one is fastest may change from version to version, and not what an agent knows."""
    agent, other = (RBLSPI(CAR, RBFGrid(3), update_every=5, seed=1) for _ in range(2))
    for learner in (agent, other):
        learner.state.posterior.method[0] = method
    agent.learn(103).save(tmp_path / "agent.npz")
    loaded = RBLSPI.load(tmp_path / "agent.npz")
    assert_same_bits(other.learn(250), loaded.learn(147, reset_num_timesteps=False))


@pytest.mark.slow
def test_half_in_another_process_gives_the_same_bits(tmp_path):
    """With a number of steps that is no multiple of the period, in the middle of an episode."""
    cases = [(RBLSPI, "rblspi/CartPole-v0"), (RBLSPI, CAR), (OnlineLSPI, CAR)]
    paths = [tmp_path / f"{number}.npz" for number in range(len(cases))]
    for (kind, domain), path in zip(cases, paths, strict=True):
        kind(domain, seed=5).learn(777).save(path)
    subprocess.run([sys.executable, "-c", LEARN_ON, *map(str, paths)], check=True)
    for (kind, domain), path in zip(cases, paths, strict=True):
        assert_same_bits(kind(domain, seed=5).learn(2 * 777), kind.load(path))


def test_a_python_environment_goes_on_with_its_own_random_numbers(tmp_path):
    whole, half = (RBLSPI("CartPole-v1", RBFGrid(2, low=-1.0, high=1.0), seed=3) for _ in range(2))
    half.learn(episodes=20).save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz").learn(episodes=20, reset_num_timesteps=False)
    assert_same_bits(whole.learn(episodes=40), loaded)


def test_settings_of_the_environment_are_kept(tmp_path):
    env = gym.make(CAR, gravity=0.002, start=(-0.5, -0.45), max_episode_steps=70)
    RBLSPI(env, RBFGrid(2), seed=1).learn(500).save(tmp_path / "agent.npz")
    loaded = RBLSPI.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(
        loaded.env.unwrapped.dynamics.parameters, env.unwrapped.dynamics.parameters
    )
    assert loaded.env.spec.max_episode_steps == 70


def test_an_environment_without_an_id_is_passed_again(tmp_path):
    env = gym.make(CHAIN).unwrapped
    env.spec = None
    basis = FunctionBasis(lambda state: np.array([1.0, state]))
    agent = RBLSPI(env, basis, seed=1).learn(100)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match="without an id: pass the same as env="):
        RBLSPI.load(tmp_path / "agent.npz")
    with pytest.raises(FileError, match="pass it again as basis="):
        RBLSPI.load(tmp_path / "agent.npz", env=env)
    loaded = RBLSPI.load(tmp_path / "agent.npz", env=env, basis=basis)
    np.testing.assert_array_equal(loaded.action_values(3).mean, agent.action_values(3).mean)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: gym.wrappers.RescaleObservation(gym.make(CAR), 0.0, 1.0), "wrapped rblspi/Mou"),
        (lambda: gym.make("FrozenLake-v1", map_name="8x8"), "'map_name' = '8x8'.*pass env="),
    ],
)
def test_what_a_file_may_not_decide_is_passed_again(env, message, tmp_path):
    basis = FunctionBasis(lambda observation: np.atleast_1d(observation).astype(float))
    RBLSPI(env(), basis, seed=1).learn(100).save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match=message):
        RBLSPI.load(tmp_path / "agent.npz", basis=basis)
    RBLSPI.load(tmp_path / "agent.npz", env=env(), basis=basis)


def test_another_basis_or_environment_is_refused(tmp_path):
    path = tmp_path / "agent.npz"
    RBLSPI(CAR, RBFGrid(2), seed=1).save(path)
    with pytest.raises(FileError, match="9 features in this environment"):
        RBLSPI.load(path, basis=RBFGrid((2, 4)))
    with pytest.raises(FileError, match=r"4\[.*\]"):
        RBLSPI.load(path, env="rblspi/PuddleWorld-v0")


@pytest.mark.parametrize("name", [CAR, "CartPole-v1"])
def test_an_agent_late_in_an_episode_goes_where_episodes_are_shorter(tmp_path, name):
    path = tmp_path / "agent.npz"
    agent = RBLSPI(name, seed=1).learn(3)
    agent.session.episode.steps[0] = 90
    agent.save(path)
    shorter = RBLSPI.load(path, gym.make(name, max_episode_steps=50)).learn(200)
    assert shorter.episodes[:, 0].max() <= 50
    assert len(shorter.episodes) >= 4


def test_an_action_chosen_for_an_episode_is_not_taken_in_another(tmp_path):
    """On policy, an action is chosen before it is taken; a Python environment begins anew."""
    pole = RBFGrid(2, low=-1.0, high=1.0)
    agent = OnlineLSPI("CartPole-v1", pole, on_policy=True, seed=0).learn(5)
    assert agent.state.chosen[0] >= 0
    agent.save(tmp_path / "agent.npz")
    assert OnlineLSPI.load(tmp_path / "agent.npz").state.chosen[0] == -1


def rewritten(path, change):
    """The file after a change of its description and its arrays."""
    description, arrays = archive.read(path, agent_file.FORMAT, agent_file.VERSION)
    change(description, arrays)
    archive.write(path, agent_file.FORMAT, agent_file.VERSION, description, arrays)
    return path


def test_a_file_from_before_an_algorithm_had_a_setting_means_its_default(tmp_path):
    agent = RBLSPI(CAR, RBFGrid(2), seed=1).learn(50)
    agent.save(tmp_path / "agent.npz")
    older = rewritten(tmp_path / "agent.npz", lambda said, _: said["settings"].pop("limit_ends"))
    assert_same_bits(agent, RBLSPI.load(older))
    newer = rewritten(tmp_path / "agent.npz", lambda said, _: said["settings"].update(charm=1.0))
    with pytest.raises(FileError, match="settings are not those of RBLSPI"):
        RBLSPI.load(newer)


def test_an_agent_that_kept_fewer_transitions_goes_on_to_keep_as_few(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(OPSRL, "most_remembered", 60)
        agent = OPSRL(CHAIN, seed=1).learn(100)
        agent.save(tmp_path / "agent.npz")
    loaded = OPSRL.load(tmp_path / "agent.npz")
    assert_same_bits(agent, loaded)
    assert_same_bits(agent.learn(100), loaded.learn(100))
    assert loaded.session.memory.size == 60
