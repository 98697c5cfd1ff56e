"""Optimistic least-squares value iteration against plain versions of its equations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OptimisticLSVI, RBFGrid
from rblspi.online.value_iteration import ValueScale

CHAIN = "rblspi/ChainWalk-v0"


def remembered(agent: OptimisticLSVI) -> Any:
    return agent.session.memory.transitions(agent.features.shape)


def test_the_weights_solve_the_bootstrapped_bellman_equation() -> None:
    """theta_a = (sum w x x' + c I)^-1 (sum w x t + c theta_0), by loops."""
    agent = OptimisticLSVI(CHAIN, RBFGrid(4), prior_weight=0.5, seed=1).learn(300)
    data = remembered(agent)
    rng = np.random.default_rng(0)
    draw, bootstrap = rng.standard_normal((2, 5)), rng.standard_exponential(data.size)
    weights = agent._solve(data, 3.0, draw, bootstrap)
    scale = ValueScale.of(data.rewards, data.terminated, agent.discount)
    hope, high = scale.centre + 3.0 * scale.spread, data.rewards.max() / (1 - agent.discount)
    for a in range(2):
        prior = hope * agent.features.constant + scale.spread * draw[a]
        gram, right = 0.5 * np.eye(5), 0.5 * prior
        for w, s, action, reward, after in zip(bootstrap, *data[:4], strict=True):
            if action == a:
                x, y = agent.features(s), agent.features(after)
                ahead = min(max(y @ weights[0], y @ weights[1], 0.0), max(high, hope))
                gram += w * np.outer(x, x)
                right += w * x * (reward + agent.discount * ahead)
        # Value iteration stops when values are precise to a hundredth of their spread.
        found = agent.features(np.arange(20.0)) @ (weights[a] - np.linalg.solve(gram, right))
        np.testing.assert_allclose(found, 0.0, atol=0.01 * scale.spread)


def test_over_a_table_an_unknown_action_is_worth_the_hope_and_a_known_one_what_is_seen() -> None:
    agent = OptimisticLSVI(gym.make("rblspi/DeepSea-v0", size=4), prior_weight=1e-9, seed=0)
    agent.learn(episodes=1)
    data = remembered(agent)
    scale = ValueScale.of(data.rewards, data.terminated, agent.discount)
    table = agent._solve(data, 3.0, np.zeros((2, 16))).reshape(2, 16)
    tried = np.zeros((2, 16), dtype=bool)
    tried[data.actions, data.observations.astype(int)] = True
    np.testing.assert_allclose(table[~tried], scale.centre + 3.0 * scale.spread)
    last = int(data.observations[-1])
    assert table[data.actions[-1], last] == pytest.approx(data.rewards[-1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_finds_the_treasure_of_a_small_sea(seed: int) -> None:
    """The optimism about what was never tried travels back: a random walk takes 256 episodes."""
    agent = OptimisticLSVI(gym.make("rblspi/DeepSea-v0", size=8), seed=seed).learn(episodes=60)
    assert (agent.episodes[:, 1] > 0.5).any()


@pytest.mark.parametrize("factor", [1e-6, 1024.0])
def test_other_units_of_the_rewards_change_units_alone(factor: float) -> None:
    class Scaled(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> float:
            return factor * float(reward)

    env = gym.make(CHAIN)
    plain = OptimisticLSVI(env, RBFGrid(5), seed=3).learn(400)
    scaled = OptimisticLSVI(Scaled(gym.make(CHAIN)), RBFGrid(5), seed=3).learn(400)
    np.testing.assert_array_equal(remembered(plain).actions, remembered(scaled).actions)
    np.testing.assert_allclose(
        scaled.policy().weights, factor * plain.policy().weights, rtol=1e-6, atol=1e-9 * factor
    )
