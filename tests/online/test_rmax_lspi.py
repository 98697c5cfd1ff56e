"""Rmax-LSPI: its textbook version, LSPI as a limit, units, and going on after a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OneHot, RBFGrid, RmaxLSPI
from tests.support.agents import assert_resumes_to_the_bit
from tests.support.diary import Diary
from tests.support.textbook_planning import TextbookRmaxLSPI, walk

SEA, CHAIN, RIVER = "rblspi/DeepSea-v0", "rblspi/ChainWalk-v0", "rblspi/RiverSwim-v0"


@pytest.mark.parametrize(
    ("name", "arguments", "basis", "visits", "steps"),
    [
        (SEA, {"size": 4}, OneHot(), 2.0, 60),
        (CHAIN, {}, RBFGrid(3), 1.0, 60),
        (RIVER, {}, OneHot(), 5.0, 150),
    ],
)
def test_it_walks_like_its_textbook_version(
    name: str, arguments: Any, basis: Any, visits: float, steps: int
) -> None:
    diary = Diary(gym.make(name, **arguments))
    agent = RmaxLSPI(diary, basis, visits=visits, discount=0.9, seed=3)
    first = agent.state.weights.reshape(agent.actions, -1).copy()
    textbook = TextbookRmaxLSPI(agent.features, agent.features.constant, first, 0.9, visits=visits)
    agent.learn(steps)
    env = gym.make(name, **arguments)
    actions, _ = walk(env, agent.session.seed, textbook.greedy, textbook.plan, steps)
    assert actions == diary.actions
    assert len(set(actions)) > 1
    found = agent.state.weights.reshape(agent.actions, -1)
    np.testing.assert_allclose(found, textbook.weights, rtol=1e-7, atol=1e-9)


def test_a_table_without_anything_unknown_solves_the_empirical_problem() -> None:
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


def test_what_is_unknown_is_worth_the_most() -> None:
    """After one episode of a deep sea, every action where the agent was but the taken ones."""
    agent = RmaxLSPI(gym.make(SEA, size=5), best_value=3.0, visits=1.0, seed=1).learn(episodes=1)
    data, q = agent._remembered(), agent.state.weights.reshape(2, 25)
    for s, a in zip(data.observations, data.actions, strict=True):
        # lambda draws values towards the centre by a hundredth of a visit
        assert q[1 - a, s] == pytest.approx(3.0 / 1.01, abs=1e-4)


@pytest.mark.parametrize("units", [2.0**-20, 2.0**20])
def test_other_units_change_units_alone(units: float) -> None:
    one = RmaxLSPI(Diary(gym.make(SEA, size=6)), seed=3).learn(episodes=15)
    other = RmaxLSPI(Diary(gym.make(SEA, size=6), units), seed=3).learn(episodes=15)
    np.testing.assert_array_equal(units * one.state.weights, other.state.weights)


def test_it_finds_the_treasure_of_a_deep_sea() -> None:
    agent = RmaxLSPI(gym.make(SEA, size=8), visits=1.0, seed=5).learn(episodes=80)
    assert (agent.episodes[-5:, 1] > 0.5).all()


@pytest.mark.parametrize("env", [SEA, RIVER])
def test_learning_in_parts_and_after_a_load_gives_the_same_bits(env: str, tmp_path: Path) -> None:
    assert_resumes_to_the_bit(lambda: RmaxLSPI(env, seed=6), 300, tmp_path / "agent.npz")


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="visits=0"):
        RmaxLSPI(SEA, visits=0.0)
    with pytest.raises(ValueError, match="best_value=nan"):
        RmaxLSPI(SEA, best_value=float("nan"))
