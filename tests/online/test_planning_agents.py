"""Agents that plan on all that they remember: textbook versions, bonuses, what is unknown."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from examples.textbook import agent_rng
from rblspi import LBRL, LSVIUCB, RLSVI, OneHot, RBFGrid, RmaxLSPI
from rblspi.online.baselines import lbrl
from tests.support.diary import Diary
from tests.support.textbook_planning import TextbookLBRL, TextbookLSVIUCB, TextbookRmaxLSPI, walk

pytestmark = pytest.mark.slow

SEA, CHAIN, RIVER = "rblspi/DeepSea-v0", "rblspi/ChainWalk-v0", "rblspi/RiverSwim-v0"
CAR = "rblspi/MountainCar-v0"


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "basis", "settings", "steps"),
    [
        (SEA, {"size": 4}, LSVIUCB, OneHot(), {}, 60),  # its factors are diagonal
        (CHAIN, {}, LSVIUCB, RBFGrid(3), {}, 80),  # and these are not
        (SEA, {"size": 4}, RmaxLSPI, OneHot(), {"visits": 2.0}, 60),
        (CHAIN, {}, RmaxLSPI, RBFGrid(3), {"visits": 1.0}, 60),
        (RIVER, {}, RmaxLSPI, OneHot(), {"visits": 5.0}, 150),
        (CAR, {"max_episode_steps": 25}, LBRL, RBFGrid(2), {}, 60),
    ],
)
def test_it_walks_like_its_textbook_version(
    name, arguments, kind, basis, settings, steps, monkeypatch
):
    monkeypatch.setattr(lbrl, "STATES", 10)
    diary = Diary(gym.make(name, **arguments))
    agent = kind(diary, basis, discount=0.9, seed=3, **settings)
    first = agent.state.weights.reshape(agent.actions, -1).copy()
    given = (agent.features, agent.features.constant, first, 0.9)
    textbook: Any
    if kind is LBRL:
        rng, space = agent_rng(3), agent.env.observation_space
        rng.standard_normal(first.size)  # those are the first weights
        textbook = TextbookLBRL(*given, low=space.low, high=space.high, states=10, rng=rng)
    else:
        textbook = {LSVIUCB: TextbookLSVIUCB, RmaxLSPI: TextbookRmaxLSPI}[kind](*given, **settings)
    agent.learn(steps)
    env = gym.make(name, **arguments)
    actions, data = walk(env, agent.session.seed, textbook.greedy, textbook.plan, steps)
    assert actions == diary.actions
    assert len(set(actions)) > 1
    found = agent.state.weights.reshape(agent.actions, -1)
    rtol, atol = {LSVIUCB: (1e-8, 1e-10), RmaxLSPI: (1e-7, 1e-9), LBRL: (1e-5, 1e-6)}[kind]
    np.testing.assert_allclose(found, textbook.weights, rtol=rtol, atol=atol)
    if kind is LSVIUCB:  # whose factors are in the state, for the next action
        for s, *_ in data[:10]:
            for a in range(agent.actions):
                ours = np.linalg.solve(agent.state.factors[a].T, agent.features(s))
                assert np.linalg.norm(ours) == pytest.approx(textbook.bonus(s, a), rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "settings"), [(LSVIUCB, {}), (RmaxLSPI, {"visits": 1.0}), (RLSVI, {})]
)
def test_it_finds_the_treasure_of_a_deep_sea(kind, settings):
    agent = kind(gym.make(SEA, size=8), seed=5, **settings).learn(episodes=80)
    assert (agent.episodes[:, 1] > 0.5).any()
    diagonal = np.arange(8) * 9
    best = agent.policy()(diagonal)
    np.testing.assert_array_equal(best, agent.env.unwrapped.right_actions[diagonal])
    if kind is not RLSVI:  # whose samples still explore
        assert (agent.episodes[-5:, 1] > 0.5).all()


# LSVI-UCB: the bonus -----------------------------------------------------------------------------


def test_what_explores_is_one_policy_in_three_forms():
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


# Rmax-LSPI: the unknown ---------------------------------------------------------------------------


def test_a_table_without_anything_unknown_solves_the_empirical_problem():
    """The best estimate is LSPI: the fixed point of the counts, but for lambda = 0.01 visits."""
    agent = RmaxLSPI(RIVER, discount=0.9, seed=0).learn(3000)
    data, q = agent._remembered(), agent._weights(False).reshape(2, 6)
    scale = data.rewards.mean() / (1 - 0.9)
    for s in range(6):
        for a in range(2):
            here = (data.observations == s) & (data.actions == a)
            target = (
                data.rewards[here] + 0.9 * q[:, data.next_observations[here]].max(axis=0)
            ).sum()
            assert q[a, s] * (here.sum() + 0.01) == pytest.approx(target + 0.01 * scale, rel=1e-9)


def test_what_is_unknown_is_worth_the_most():
    """After one episode of a deep sea, every action where the agent was but the taken ones."""
    agent = RmaxLSPI(gym.make(SEA, size=5), best_value=3.0, visits=1.0, seed=1).learn(episodes=1)
    data, q = agent._remembered(), agent.state.weights.reshape(2, 25)
    for s, a in zip(data.observations, data.actions, strict=True):
        # lambda draws values towards the centre by a hundredth of a visit
        assert q[1 - a, s] == pytest.approx(3.0 / 1.01, abs=1e-4)


# LBRL: the model ----------------------------------------------------------------------------------
