"""Randomised least-squares value iteration against plain versions of its equations."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RLSVI, Agent, RBFGrid
from rblspi.core.archive import FileError
from rblspi.online.planning_agent import STEP
from rblspi.online.value_iteration import ValueScale
from tests.support.agents import assert_resumes_to_the_bit
from tests.support.diary import Diary
from tests.support.logs import arrays

pytestmark = pytest.mark.slow

SEA = "rblspi/DeepSea-v0"


def remembered(agent):
    return agent.session.memory.transitions(agent.features.shape)


def test_the_weights_solve_the_sampled_bellman_equation():
    """theta_a = (C_a + lambda I)^-1 (sum x t + lambda theta_0) + sigma R_a^-1 z, by loops."""
    agent = RLSVI("rblspi/ChainWalk-v0", RBFGrid(4), noise_std=0.3, prior_std=2.0, seed=1)
    agent.learn(300)
    data = remembered(agent)
    draw = np.random.default_rng(0).standard_normal((2, agent.features.size))
    weights = agent._stationary(data, draw)
    scale = ValueScale.of(data, agent.discount)
    penalty, n = (0.3 / 2.0) ** 2, agent.features.size
    constant = agent.features.constant
    assert constant is not None
    for a in range(2):
        gram, right = penalty * np.eye(n), penalty * scale.centre * constant
        for s, action, reward, after in zip(*arrays(data, 4), strict=True):
            if action == a:
                x, y = agent.features(s), agent.features(after)
                gram += np.outer(x, x)
                right += x * (reward + agent.discount * max(y @ weights[0], y @ weights[1]))
        upper = np.linalg.cholesky(gram).T
        expected = np.linalg.solve(gram, right) + 0.3 * np.linalg.solve(upper, draw[a])
        # Value iteration stops when values are precise to a hundredth of their spread.
        np.testing.assert_allclose(weights[a], expected, atol=0.01 * scale.spread)


def test_the_published_finite_horizon_is_the_step_in_the_state_and_no_discount():
    """In the deep sea the row is the step: theta_h is regressed on theta_h+1, backwards."""
    size = 5
    agent = RLSVI(gym.make(SEA, size=size), noise_std=0.05, prior_std=0.5, discount=1.0, seed=2)
    agent.learn(episodes=12)
    data = remembered(agent)
    draw = np.random.default_rng(0).standard_normal((2, size * size))
    found = agent._stationary(data, draw)
    scale = ValueScale.of(data, 1.0)
    penalty = (0.05 / 0.5) ** 2
    table = np.full((2, size * size), scale.centre) + 0.05 / np.sqrt(penalty) * draw
    for row in reversed(range(size)):
        for s in range(row * size, (row + 1) * size):
            for a in range(2):
                here = (data.observations == s) & (data.actions == a)
                ahead = table[:, data.next_observations[here]].max(axis=0)
                targets = data.rewards[here] + np.where(data.terminated[here], 0.0, ahead)
                count = here.sum() + penalty
                mean = (targets.sum() + penalty * scale.centre) / count
                table[a, s] = mean + 0.05 * draw[a, s] / np.sqrt(count)
    assert np.abs(table - scale.centre).max() < 3 * 0.5  # nothing is clipped
    np.testing.assert_allclose(found, table, rtol=1e-9)


def test_every_step_to_a_horizon_has_its_own_values():
    """Lines 2 to 4 by loops: on a chain, the position does not tell the step."""
    horizon, length = 6, 4
    env = gym.make("rblspi/NChain-v0", length=length)  # its episodes have 12 steps, so two horizons
    agent = RLSVI(env, noise_std=0.1, prior_std=1.0, horizon=horizon, discount=1.0, seed=1)
    agent.learn(episodes=7)
    data, memory = remembered(agent), agent.session.memory
    steps = memory.steps[memory.order()] % horizon
    np.testing.assert_array_equal(memory.steps[memory.order()], np.tile(np.arange(12), 7))
    draw = np.random.default_rng(0).standard_normal((horizon, 2, length))
    table = np.zeros((horizon + 1, 2, length))
    for h in reversed(range(horizon)):
        centre = (horizon - h) * data.rewards.mean()
        for a in range(2):
            for s in range(length):
                here = (steps == h) & (data.actions == a) & (data.observations == s)
                ahead = table[h + 1][:, data.next_observations[here]].max(axis=0)
                count = here.sum() + 0.01
                mean = ((data.rewards[here] + ahead).sum() + 0.01 * centre) / count
                table[h, a, s] = mean + 0.1 * draw[h, a, s] / np.sqrt(count)
    found = agent._finite_horizon(data, steps, draw)
    np.testing.assert_allclose(found, table[:-1], rtol=1e-10, atol=1e-12)


def test_with_a_horizon_it_acts_by_the_values_of_the_step():
    agent = RLSVI(gym.make("rblspi/NChain-v0", length=5), horizon=13, discount=1.0, seed=2)
    agent.learn(episodes=3)
    weights = agent.state.weights.reshape(13, 2, 5).copy()
    agent.learn(13)
    latest = remembered(agent).rows(39, 52)
    expected = weights[np.arange(13), :, latest.observations].argmax(axis=1)
    np.testing.assert_array_equal(latest.actions, expected)


def test_the_best_estimate_with_a_horizon_is_of_so_many_steps():
    """Two steps from the end of a known chain, six steps are worth five rewards."""
    agent = RLSVI(gym.make("rblspi/NChain-v0", length=4), horizon=6, discount=1.0, seed=0)
    agent.learn(episodes=60)
    values = agent._weights(False).reshape(2, 4)
    # sigma / prior deviation = 0.1, so the prior weighs a hundredth of a visit
    np.testing.assert_allclose(values[1], [3.0, 4.0, 5.0, 6.0], atol=0.05)


@pytest.mark.parametrize("offset", [100.0, 10_000.0])
def test_a_constant_added_to_all_rewards_changes_no_action(offset):
    """Rewards of 0 and 1, so the offsets are a hundred and ten thousand times what they differ."""
    chains = [Diary(gym.make("rblspi/ChainWalk-v0"), 1.0, shift) for shift in (0.0, offset)]
    settings = {"discount": 0.9, "seed": 4}
    one, other = (RLSVI(env, RBFGrid(4), **settings).learn(200) for env in chains)
    assert chains[0].actions == chains[1].actions
    shift = offset / (1 - 0.9) * one.features.constant
    difference = (other._weights(False) - one._weights(False)).reshape(2, -1)
    np.testing.assert_allclose(difference, [shift, shift], rtol=1e-6, atol=1e-6 * offset)


def test_with_a_horizon_it_resumes_to_the_bit(tmp_path):
    assert_resumes_to_the_bit(partial(RLSVI, SEA, horizon=7, seed=6), 400, tmp_path / "agent.npz")


def test_a_file_with_a_step_beyond_the_horizon_is_refused(tmp_path):
    agent = RLSVI(SEA, horizon=7, seed=0).learn(20)
    agent.state.counters[STEP] = 7
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match=r"state\.counters holds values out of range"):
        Agent.load(tmp_path / "agent.npz")
