"""PSRL: its textbook version, its posterior, what it finds, and what it refuses."""

import gymnasium as gym
import numpy as np
import pytest

from examples.textbook import agent_rng
from rblspi import PSRL, Agent, Fourier, OneHot
from rblspi.core.archive import FileError
from rblspi.environments.river_swim import RIGHT, RiverSwim
from rblspi.online.baselines.psrl import draw_model
from rblspi.online.table import MEAN, MOST_OUTCOMES, STEPS
from tests.support.diary import Diary
from tests.support.textbook_tables import TextbookPSRL

pytestmark = pytest.mark.slow

RIVER, SEA, LOCK = "rblspi/RiverSwim-v0", "rblspi/DeepSea-v0", "rblspi/CombinationLock-v0"
NOISY_SEA = "rblspi/DeepSeaStochastic-v0"


@pytest.mark.parametrize(
    ("name", "arguments", "steps"),
    [
        (RIVER, {"states": 4}, 200),
        (SEA, {"size": 4}, 200),
        (NOISY_SEA, {"size": 4}, 200),
        (LOCK, {"length": 3, "actions": 3}, 150),
    ],
)
def test_it_walks_like_its_textbook_version(name, arguments, steps):
    env = Diary(gym.make(name, **arguments))
    agent = PSRL(env, discount=0.9, seed=3).learn(steps)
    plain = gym.make(name, **arguments)
    learner = TextbookPSRL(plain, discount=0.9)
    assert env.actions == learner.walk(plain, agent.session.seed, agent_rng(3), steps)


@pytest.mark.parametrize(("unit", "offset"), [(3.0, 0.0), (0.1, -2.0)])
def test_units_and_offset_of_rewards_change_nothing(unit, offset):
    plain, other = Diary(gym.make(RIVER)), Diary(gym.make(RIVER), unit, offset)
    one, two = (PSRL(env, seed=1).learn(1500) for env in (plain, other))
    assert plain.actions == other.actions
    assert len(set(plain.actions)) == 2
    np.testing.assert_allclose(
        two.policy().weights,
        unit * one.policy().weights + offset / (1 - one.discount),
        atol=1e-3 * unit * np.ptp(one.policy().weights),
    )


def test_models_have_the_mean_and_the_variance_of_the_posterior():
    """Of Dirichlet probabilities with the parameters n_i and c: p and p (1 - p) / (n + c + 1)."""
    agent = PSRL(RIVER, seed=0).learn(300)
    state, rng, draws = agent.state, np.random.default_rng(0), 4000
    probabilities = np.empty((draws, *state.table.counts.shape))
    rewards = np.empty((draws, len(state.table.visits)))
    for i in range(draws):
        draw_model(state.table, rng)
        probabilities[i], rewards[i] = (
            state.table.workspace_model[0],
            state.table.workspace_model[3],
        )
    tried = state.table.visits > 0
    c = np.repeat(state.table.surprises[:, 0] / state.table.surprises[:, 1], 6)[tried, None]
    n = state.table.visits[tried, None]
    p = state.table.counts[tried] / (n + c)
    std = np.sqrt(p * (1 - p) / (n + c + 1))
    found = probabilities[:, tried]
    assert (np.abs(found.mean(axis=0) - p) <= 5 * std / np.sqrt(draws)).all()
    assert (np.abs(found.std(axis=0) - std) <= 0.1 * std).all()
    # Rewards are without noise here; what was never tried is worth anything that the range allows.
    expected = np.broadcast_to(state.table.rewards[tried, MEAN], rewards[:, tried].shape)
    np.testing.assert_allclose(rewards[:, tried], expected, atol=1e-12)
    np.testing.assert_allclose(rewards[:, ~tried].std(axis=0), 0.005 * 100, rtol=0.1)


def test_it_swims():
    agent = PSRL(RIVER, seed=0).learn(5000)
    before = agent.state.table.visits @ agent.state.table.rewards[:, MEAN]
    agent.learn(5000)
    late = (agent.state.table.visits @ agent.state.table.rewards[:, MEAN] - before) / 5000
    assert late > 0.9 * RiverSwim().optimal_average_reward()
    assert (agent.policy()(np.arange(6)) == RIGHT).all()


@pytest.mark.parametrize(("field", "value"), [("outcomes", 7), ("outcomes", -1), ("sizes", 8)])
def test_a_file_with_indices_out_of_range_is_refused(field, value, tmp_path):
    agent = PSRL(RIVER, seed=0).learn(50)
    getattr(agent.state.table, field).flat[0] = value
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match=f"state.table.{field} holds values out of range"):
        Agent.load(tmp_path / "agent.npz")


class Lottery(gym.Env):
    """Every step leads to any of many states."""

    observation_space = gym.spaces.Discrete(200)
    action_space = gym.spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(self.np_random.integers(200)), 1.0, False, True, {}


def test_outcomes_beyond_those_that_are_kept_count_as_elsewhere():
    agent = PSRL(Lottery(), discount=0.5, seed=0).learn(2000)
    assert agent.state.table.sizes[0] == MOST_OUTCOMES
    assert agent.state.table.visits[0] == 2000 == agent.state.table.counters[STEPS]
    kept = agent.state.table.counts[0].sum()
    assert kept == pytest.approx(2000 * MOST_OUTCOMES / 200, rel=0.2)
    draw_model(agent.state.table, np.random.default_rng(0))
    # Beta(nameless + c, kept), with a standard deviation of 0.01
    assert agent.state.table.workspace_model.elsewhere[0] == pytest.approx(
        1 - kept / 2000, abs=0.06
    )


def test_action_values_come_with_intervals():
    agent = PSRL(RIVER, discount=0.9, seed=0).learn(5000)
    values = agent.action_values(np.arange(6))
    assert values.std is not None
    assert (values.std > 0).all()
    truth = RiverSwim().exact_action_values(agent.policy()(np.arange(6)), 0.9)
    often = agent.state.table.visits.reshape(2, 6).T > 200
    low, high = values.interval(0.999)
    assert ((low <= truth) & (truth <= high))[often].all()


def test_what_it_cannot_learn_is_refused():
    with pytest.raises(TypeError, match=r"takes no basis but OneHot\(\), not Fourier"):
        PSRL(RIVER, Fourier(3))
    with pytest.raises(ValueError, match="discount=1: a model may go on for ever"):
        PSRL(RIVER, discount=1)
    assert PSRL(RIVER, OneHot(), seed=0).basis == OneHot()
