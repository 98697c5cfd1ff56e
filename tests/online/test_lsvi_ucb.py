"""LSVI-UCB: its textbook version, units, the bonus, what it finds, and going on after a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import LSVIUCB, OneHot, RBFGrid
from rblspi.online.value_iteration import Regression, Rows
from tests.support.agents import assert_resumes_to_the_bit
from tests.support.diary import Diary
from tests.support.textbook_planning import TextbookLSVIUCB, walk

SEA, CHAIN, RIVER = "rblspi/DeepSea-v0", "rblspi/ChainWalk-v0", "rblspi/RiverSwim-v0"


@pytest.mark.parametrize(
    ("name", "arguments", "basis", "steps"),
    [(SEA, {"size": 4}, OneHot(), 60), (CHAIN, {}, RBFGrid(3), 80)],
)
def test_it_walks_like_its_textbook_version(
    name: str, arguments: Any, basis: Any, steps: int
) -> None:
    """The table has diagonal factors, the Gaussians have full ones."""
    diary = Diary(gym.make(name, **arguments))
    agent = LSVIUCB(diary, basis, discount=0.9, seed=3)
    first = agent.state.weights.reshape(agent.actions, -1).copy()
    textbook = TextbookLSVIUCB(agent.features, agent.features.constant, first, 0.9)
    agent.learn(steps)
    env = gym.make(name, **arguments)
    actions, data = walk(env, agent.session.seed, textbook.greedy, textbook.plan, steps)
    assert actions == diary.actions
    assert len(set(actions)) > 1
    np.testing.assert_allclose(
        agent.state.weights.reshape(agent.actions, -1), textbook.weights, rtol=1e-8, atol=1e-10
    )
    for s, *_ in data[:10]:  # the factors are in the state, for the next action
        for a in range(agent.actions):
            ours = np.linalg.solve(agent.state.factors[a].T, agent.features(s))
            assert np.linalg.norm(ours) == pytest.approx(textbook.bonus(s, a), rel=1e-9)


def test_the_bonus_of_a_table_falls_with_the_root_of_visits() -> None:
    agent = LSVIUCB(RIVER, discount=0.9, seed=0).learn(300)
    data = agent._remembered()
    rows = Rows.of(data, agent.features, agent.actions)
    regression = Regression.of(rows, 0.01, np.zeros((2, 6)))
    counts = np.zeros((6, 2))
    np.add.at(counts, (data.observations, data.actions), 1)
    found = regression.deviations(agent.features(np.arange(6)))
    np.testing.assert_allclose(found, (counts + 0.01) ** -0.5, rtol=1e-12)


def test_deviations_are_the_same_for_dense_and_sparse_rows() -> None:
    agent = LSVIUCB(gym.make(SEA, size=6), seed=0).learn(100)
    rows = Rows.of(agent._remembered(), agent.features, agent.actions)
    dense = rows._replace(x=[x.toarray() for x in rows.x], y=rows.y.toarray())
    prior = np.zeros((2, 36))
    one, other = Regression.of(rows, 0.01, prior), Regression.of(dense, 0.01, prior)
    assert one.factors[0].ndim == 1
    assert other.factors[0].ndim == 2
    np.testing.assert_allclose(one.deviations(rows.y), other.deviations(dense.y), rtol=1e-9)


def test_what_explores_is_one_policy_in_three_forms() -> None:
    """In the loop, as `predict`, and as a policy on its own with a pessimism of -1."""
    agent = LSVIUCB("rblspi/MountainCar-v0", RBFGrid(3), seed=1).learn(400)
    states = np.array([agent.env.observation_space.sample() for _ in range(50)])
    predicted, _ = agent.predict(states)
    alone = agent.policy(explore=True)
    np.testing.assert_array_equal(alone.predict(states)[0], predicted)
    act = agent.functions.act.py_func
    every = np.ones(agent.actions, np.uint8)
    in_the_loop = [act(agent.state, agent.features(s), every, agent.rng) for s in states]
    np.testing.assert_array_equal(in_the_loop, predicted)
    assert (agent.predict(states, deterministic=True)[0] != predicted).any()
    assert alone.pessimism == -1.0
    ratio = alone.posterior.prior_precision / alone.posterior.noise_precision
    assert ratio == pytest.approx(agent.penalty)


@pytest.mark.parametrize("units", [2.0**-20, 2.0**20])
def test_other_units_change_units_alone(units: float) -> None:
    one = LSVIUCB(Diary(gym.make(SEA, size=6)), seed=3).learn(episodes=15)
    other = LSVIUCB(Diary(gym.make(SEA, size=6), units), seed=3).learn(episodes=15)
    np.testing.assert_array_equal(units * one.state.weights, other.state.weights)
    np.testing.assert_array_equal(one.state.factors, units * other.state.factors)
    np.testing.assert_array_equal(units * one._weights(False), other._weights(False))


def test_it_finds_the_treasure_of_a_deep_sea() -> None:
    agent = LSVIUCB(gym.make(SEA, size=8), seed=5).learn(episodes=80)
    assert (agent.episodes[:, 1] > 0.5).any()
    assert (agent.episodes[-5:, 1] > 0.5).all()


@pytest.mark.parametrize("env", [SEA, RIVER])
def test_learning_in_parts_and_after_a_load_gives_the_same_bits(env: str, tmp_path: Path) -> None:
    assert_resumes_to_the_bit(lambda: LSVIUCB(env, seed=6), 300, tmp_path / "agent.npz")


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="bonus=0"):
        LSVIUCB(SEA, bonus=0.0)
    with pytest.raises(ValueError, match="penalty=-1"):
        LSVIUCB(SEA, penalty=-1.0)
