"""LBRL: its textbook version, units, linear dynamics, and going on after a load."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from examples.textbook import agent_rng
from rblspi import LBRL, RBFGrid, Transitions
from rblspi.online.baselines import lbrl
from rblspi.online.baselines.lbrl import Box
from tests.support.agents import assert_resumes_to_the_bit
from tests.support.diary import Diary
from tests.support.textbook_planning import TextbookLBRL, walk

CAR = "rblspi/MountainCar-v0"


def test_it_walks_like_its_textbook_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lbrl, "STATES", 10)
    diary = Diary(gym.make(CAR, max_episode_steps=25))
    agent = LBRL(diary, RBFGrid(2), discount=0.9, seed=3)
    rng = agent_rng(3)
    first = rng.standard_normal(agent.actions * agent.features.size).reshape(agent.actions, -1)
    space = agent.env.observation_space
    textbook = TextbookLBRL(
        *(agent.features, agent.features.constant, first, 0.9),
        low=space.low,
        high=space.high,
        states=10,
        rng=rng,
    )
    agent.learn(60)
    env = gym.make(CAR, max_episode_steps=25)
    actions, _ = walk(env, agent.session.seed, textbook.greedy, textbook.plan, 60)
    assert actions == diary.actions
    assert len(set(actions)) > 1
    found = agent.state.weights.reshape(agent.actions, -1)
    np.testing.assert_allclose(found, textbook.weights, rtol=1e-5, atol=1e-6)


def test_linear_dynamics_rewards_and_ends_are_learnt() -> None:
    """s' = 0.9 s + 0.01 (a - 1), r = the position, and action 2 often ends it."""
    agent = LBRL(CAR, RBFGrid(2), seed=0)
    space, rng = agent.env.observation_space, np.random.default_rng(0)
    states, actions = rng.uniform(space.low, space.high, (3000, 2)), rng.integers(3, size=3000)
    after = 0.9 * states + 0.01 * (actions[:, None] - 1)
    ends = (actions == 2) & (rng.random(3000) < 0.5)
    data = Transitions(states, actions, states[:, 0], after, ends, ~ends)
    scale = lbrl.Outputs.of(data)
    x = agent._inputs(data, states[:100])
    for a, posterior in enumerate(agent._posteriors(data)):
        found = scale.mean + scale.unit * (x @ posterior.average().weights)
        wanted = -0.1 * states[:100] + 0.01 * (a - 1)
        # Noise is for terminations alone, and a prior of a hundredth of a transition in a thousand.
        np.testing.assert_allclose(found[:, :2], wanted, atol=1e-3 * scale.unit.max())
        np.testing.assert_allclose(found[:, 2], states[:100, 0], atol=1e-3)
        # With 7 inputs, a fitted share has a deviation of up to 0.5 (7 / 1000)^1/2 = 0.04.
        np.testing.assert_allclose(found[:, 3], 0.5 if a == 2 else 0.0, atol=0.2)


def test_a_lattice_covers_the_box_more_evenly_than_chance() -> None:
    box = Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0]))
    places = box.lattice(1000)
    assert (places >= box.low).all()
    assert (places <= box.high).all()
    counts = np.histogram2d(*places.T, bins=(10, 10), range=[[-1, 1], [0, 4]])[0]
    # Places by chance would have a variance of 9.9 in every hundredth of the box.
    assert counts.var() < 3.0
    np.testing.assert_allclose(box.scaled(np.array([[-1.0, 0.0], [1.0, 2.0]])), [[-1, -1], [1, 0]])


def test_other_units_change_units_alone() -> None:
    units = 2.0**20
    one = LBRL(Diary(gym.make(CAR, max_episode_steps=50)), RBFGrid(2), seed=3).learn(150)
    other = LBRL(Diary(gym.make(CAR, max_episode_steps=50), units), RBFGrid(2), seed=3).learn(150)
    assert one.env.actions == other.env.actions
    np.testing.assert_allclose(units * one.state.weights, other.state.weights, rtol=1e-9)


def test_learning_in_parts_and_after_a_load_gives_the_same_bits(tmp_path: Path) -> None:
    assert_resumes_to_the_bit(lambda: LBRL(CAR, RBFGrid(2), seed=6), 150, tmp_path / "agent.npz")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match=r"LBRL needs observations in a Box.*take PSRL or OPSRL"):
        LBRL("rblspi/RiverSwim-v0")
    with pytest.raises(ValueError, match="noise_std=0"):
        LBRL(CAR, noise_std=0.0)
