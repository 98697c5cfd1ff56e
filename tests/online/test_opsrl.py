"""OPSRL: its textbook version, units and offsets, what it finds, and going on after a load."""

import gymnasium as gym
import numpy as np
import pytest

from examples.textbook import agent_rng
from rblspi import OPSRL, RBFGrid
from rblspi.environments.deep_sea import DeepSea
from rblspi.environments.river_swim import RIGHT
from tests.support.diary import Diary
from tests.support.textbook_tables import TextbookOPSRL

RIVER, SEA, LOCK = "rblspi/RiverSwim-v0", "rblspi/DeepSea-v0", "rblspi/CombinationLock-v0"
NOISY_SEA, CHAIN = "rblspi/DeepSeaStochastic-v0", "rblspi/NChain-v0"


@pytest.mark.parametrize(
    ("name", "arguments", "steps"),
    [
        (RIVER, {"states": 4}, 200),
        (SEA, {"size": 4}, 120),
        (NOISY_SEA, {"size": 4}, 120),
        (LOCK, {"length": 3, "actions": 3}, 100),
        (CHAIN, {"length": 5}, 100),
    ],
)
def test_it_walks_like_its_textbook_version(name, arguments, steps):
    env = Diary(gym.make(name, **arguments))
    agent = OPSRL(env, discount=0.9, seed=3).learn(steps)
    plain = gym.make(name, **arguments)
    learner = TextbookOPSRL(plain, discount=0.9)
    assert env.actions == learner.walk(plain, agent.session.seed, agent_rng(3), steps)


@pytest.mark.parametrize("offset", [0.5, 50.0])
def test_a_constant_added_to_all_rewards_changes_no_action(offset):
    """While the river's rewards are 0 and 0.005, the offsets are 100 and 10,000 times as much."""
    plain, other = Diary(gym.make(RIVER)), Diary(gym.make(RIVER), 1.0, offset)
    one, two = (OPSRL(env, seed=1).learn(1500) for env in (plain, other))
    assert plain.actions == other.actions
    assert len(set(plain.actions)) == 2
    shifted = one.policy().weights + offset / (1 - one.discount)
    np.testing.assert_allclose(two.policy().weights, shifted, atol=1e-3 * np.ptp(shifted))


def test_it_finds_the_treasure_and_keeps_to_it():
    size = 15
    diagonal = np.arange(size) * (size + 1)
    agent = OPSRL(gym.make(SEA, size=size), seed=0).learn(episodes=200)
    np.testing.assert_array_equal(agent.policy()(diagonal), DeepSea(size).right_actions[diagonal])


def test_it_swims():
    agent = OPSRL(RIVER, seed=0).learn(3000)
    assert (agent.policy()(np.arange(6)) == RIGHT).all()


def test_it_wants_a_table():
    with pytest.raises(TypeError, match="takes no basis but OneHot"):
        OPSRL(RIVER, RBFGrid(3))
    with pytest.raises(ValueError, match="discount=1"):
        OPSRL(RIVER, discount=1.0)
