"""Optimistic least-squares value iteration against plain versions of its equations."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OptimisticLSVI, RandomFourier, RBFGrid
from rblspi.features.default import rescaled
from rblspi.online.value_iteration import ValueScale
from tests.support.logs import arrays

CHAIN = "rblspi/ChainWalk-v0"


def remembered(agent):
    return agent.session.memory.transitions(agent.features.shape)


def best_return(agent, usual):
    """The largest sum of discounted rewards along what is remembered, by loops."""
    data, found = remembered(agent), []
    for first in range(data.size):
        total, weight = 0.0, 1.0
        for i in range(first, data.size):
            total += weight * data.rewards[i]
            weight *= agent.discount
            if data.terminated[i] or data.truncated[i]:
                total += 0.0 if data.terminated[i] else weight * usual
                break
        found.append(total)
    return max(found)


def test_the_weights_solve_the_bootstrapped_bellman_equation():
    """theta_a = (sum w x x' + c I)^-1 (sum w x t + c theta_0), by loops."""
    agent = OptimisticLSVI(CHAIN, RBFGrid(4), prior_weight=0.5, seed=1).learn(300)
    data = remembered(agent)
    bootstrap = np.random.default_rng(0).standard_exponential(data.size)
    weights = agent._solve(data, True, bootstrap)
    usual = ValueScale.of(data, agent.discount).centre
    hope, high = best_return(agent, usual), data.rewards.max() / (1 - agent.discount)
    for a in range(2):
        gram, right = 0.5 * np.eye(5), 0.5 * hope * agent.features.constant
        for w, s, action, reward, after in zip(bootstrap, *arrays(data, 4), strict=True):
            if action == a:
                x, y = agent.features(s), agent.features(after)
                ahead = min(max(y @ weights[0], y @ weights[1], 0.0), max(high, hope))
                gram += w * np.outer(x, x)
                right += w * x * (reward + agent.discount * ahead)
        # Value iteration stops when values are precise to a tenth of what is hoped for.
        found = agent.features(np.arange(20.0)) @ (weights[a] - np.linalg.solve(gram, right))
        np.testing.assert_allclose(found, 0.0, atol=0.1 * (hope - usual))


def test_while_all_returns_are_the_same_the_unknown_is_better_by_one_reward():
    agent = OptimisticLSVI("MountainCar-v0", RBFGrid(3), seed=0).learn(50)
    scale = agent._scale(remembered(agent))
    assert scale.centre == pytest.approx(-100.0)
    assert scale.spread == pytest.approx(1.0)


def test_features_are_scaled_to_what_is_remembered_when_it_has_doubled():
    agent = OptimisticLSVI("MountainCar-v0", RandomFourier(8), seed=0).learn(1000)
    assert agent.basis == RandomFourier(8)
    agent.learn(1200)
    low, high = np.array(agent.basis.low), np.array(agent.basis.high)
    seen = remembered(agent).observations
    assert (low > seen.min(axis=0)).all()
    assert (high < seen.max(axis=0)).all()
    fixed = OptimisticLSVI("MountainCar-v0", RandomFourier(8), rescale=False, seed=0).learn(1200)
    assert fixed.basis == RandomFourier(8)


def test_other_units_of_the_observations_change_no_feature():
    seen = np.random.default_rng(0).standard_normal((100, 3))
    space = gym.spaces.Box(-5.0, 5.0, (3,), np.float64)
    plain = rescaled(RandomFourier(16), space, seen)
    other = rescaled(RandomFourier(16), space, 1000.0 * seen + 7.0)
    np.testing.assert_allclose(
        other.build(space)(1000.0 * seen + 7.0), plain.build(space)(seen), atol=1e-9
    )


def test_scaled_again_an_angle_stays_a_circle():
    space = gym.spaces.Box(np.array([-np.pi, -1.0]), np.array([np.pi, 1.0]), dtype=np.float64)
    seen = np.random.default_rng(0).uniform(-1.0, 1.0, (100, 2))
    features = rescaled(RandomFourier(16), space, seen).build(space)
    turned = seen + np.array([2.0 * np.pi, 0.0])
    np.testing.assert_allclose(features(turned), features(seen), atol=1e-12)


def test_a_loaded_agent_goes_on_to_the_bit_also_when_its_features_are_scaled_again(tmp_path):
    def agent():
        return OptimisticLSVI("rblspi/MountainCar-v0", RandomFourier(8), seed=2)

    through = agent().learn(1200).learn(1300)
    agent().learn(1200).save(tmp_path / "agent")
    resumed = OptimisticLSVI.load(tmp_path / "agent").learn(1300)
    assert resumed.basis == through.basis
    np.testing.assert_array_equal(resumed.state.weights, through.state.weights)
    np.testing.assert_array_equal(remembered(resumed).actions, remembered(through).actions)
