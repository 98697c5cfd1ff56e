"""The regression of a last layer, and the agents that rest on it."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import Network, Polynomial
from rblspi.data import Transitions
from rblspi.online.last_layer import LastLayer, regress

FEATURES = Polynomial(1).build(gym.spaces.Box(-1.0, 1.0, (2,), np.float64))
TRUE = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])


def log(rows, noise=0.0):
    """Rewards phi(s)'TRUE_a and noise; action 1 goes on, action 0 ends the episode."""
    rng = np.random.default_rng(0)
    seen, after = rng.uniform(-1.0, 1.0, (2, rows, 2))
    actions = np.arange(rows) % 2
    rewards = np.einsum("ij,ij->i", FEATURES(seen), TRUE[actions])
    rewards += noise * rng.standard_normal(rows)
    return Transitions(seen, actions, rewards, after, actions == 0, np.zeros(rows, np.bool_))


def test_many_transitions_outweigh_the_network():
    """The targets of action 1 hold the best value of a network whose values are all 5."""
    network = np.array([[5.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    found = regress(log(20_000, noise=0.5), FEATURES, 0.9, network)
    expected = np.add(TRUE, [[0.0] * 3, [0.9 * 5.0, 0.0, 0.0]])
    np.testing.assert_allclose(found.mean, expected, atol=5 * 0.5 / np.sqrt(10_000 / 3))
    np.testing.assert_allclose(found.noise_std, 0.5, rtol=5 / np.sqrt(2 * 20_000))


def test_without_transitions_of_an_action_its_weights_stay():
    ends = log(20).select(np.arange(20) % 2 == 0)
    network = np.arange(6.0).reshape(2, 3)
    found = regress(ends, FEATURES, 0.9, network)
    np.testing.assert_array_equal(found.mean[1], network[1])
    np.testing.assert_array_equal(found.factors[1], np.eye(3))


def test_draws_have_the_moments_of_the_posterior():
    x = np.random.default_rng(1).standard_normal((10, 3))
    factor = np.linalg.cholesky(x.T @ x).T
    layer = LastLayer(np.ones((1, 3)), factor[None], 0.5)
    rng, count = np.random.default_rng(2), 20_000
    draws = np.concatenate([layer.draw(rng) for _ in range(count)])
    covariance = 0.25 * np.linalg.inv(x.T @ x)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), 1.0, atol=5 * std.max() / np.sqrt(count))
    bound = 5 * np.outer(std, std).max() * np.sqrt(2 / count)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=bound)


def test_bdqn_draws_anew_after_an_episode_and_keeps_its_posterior():
    pytest.importorskip("jax", reason="jax is not installed")
    from rblspi import BDQN

    agent = BDQN("CartPole-v1", Network(4), seed=0).learn(1100)
    mean, drawn = agent.state.mean.copy(), agent.state.weights.copy()
    agent.learn(episodes=1).learn(32)  # to the end of the episode, and to that of a block
    np.testing.assert_array_equal(agent.state.mean, mean)
    assert not np.array_equal(agent.state.weights, drawn)
    np.testing.assert_array_equal(agent.policy().weights, mean.ravel())


def test_lsdqn_makes_the_solution_the_last_layer(monkeypatch):
    pytest.importorskip("jax", reason="jax is not installed")
    from rblspi import LSDQN
    from rblspi.online.baselines import lsdqn

    fixed = np.arange(10.0).reshape(2, 5)
    monkeypatch.setattr(lsdqn, "regress_network", lambda *_: LastLayer(fixed, np.zeros(0), 0.0))
    agent = LSDQN("CartPole-v1", Network(4), seed=0).learn(1024)
    np.testing.assert_allclose(agent.policy().weights, fixed.ravel())
