"""The prior of RBLSPI is centred: a constant added to the rewards shifts values, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, LinearPolicy, OneHot, Polynomial, RBFGrid
from rblspi.online.centre import TOLD, VALUE, count_reward, move_centre, new_centre, shaped

CHAIN, DISCOUNT = "rblspi/ChainWalk-v0", 0.9


class Changed(gym.RewardWrapper):
    """Rewards in other units, with a constant added."""

    def __init__(self, env: gym.Env[Any, Any], factor: float = 1.0, added: float = 0.0) -> None:
        super().__init__(env)
        self.factor, self.added = factor, added

    def reward(self, reward: Any) -> float:
        return self.factor * (float(reward) + self.added)


def learnt(factor: float = 1.0, added: float = 0.0, basis: Any = None, steps: int = 2000) -> RBLSPI:
    env = Changed(gym.make(CHAIN, max_episode_steps=50), factor, added)
    return RBLSPI(env, basis, discount=DISCOUNT, seed=3).learn(steps)


def values(agent: RBLSPI) -> Any:
    return agent.policy().action_values(np.arange(20)).mean


@pytest.mark.parametrize("basis", [OneHot(), Polynomial(4)], ids=str)
@pytest.mark.parametrize("added", [1.0, 100.0, -100.0, 10_000.0, -10_000.0])
def test_an_offset_shifts_values_and_changes_no_policy(basis: Any, added: float) -> None:
    """Differences between the rewards are 1."""
    plain, other = learnt(basis=basis), learnt(added=added, basis=basis)
    tried = [agent.state.posterior.statistics.count for agent in (plain, other)]
    np.testing.assert_array_equal(*tried)
    shift = added / (1.0 - DISCOUNT)
    np.testing.assert_allclose(values(other) - shift, values(plain), atol=1e-7)
    np.testing.assert_allclose(
        other.posterior.predict(np.eye(other.features.size))[1],
        plain.posterior.predict(np.eye(other.features.size))[1],
        rtol=1e-6,
    )


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_units_with_an_offset_are_units_to_the_bit(factor: float) -> None:
    plain, other = learnt(added=100.0), learnt(factor, 100.0)
    np.testing.assert_array_equal(factor * values(plain), values(other))


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_units_with_an_offset_are_units(factor: float) -> None:
    plain, other = learnt(added=100.0), learnt(factor, 100.0)
    np.testing.assert_allclose(factor * values(plain), values(other), rtol=1e-9)


def test_the_best_action_is_found_whatever_the_offset() -> None:
    """Without a centre, an offset of 10,000 made the choice of left or right one by chance."""
    best = np.repeat([0, 1], 10)
    for added in (0.0, 10_000.0):
        agent = learnt(added=added, steps=10_000)
        chosen = agent.predict(np.arange(20), deterministic=True)[0]
        assert np.mean(chosen == best) >= 0.9


def test_given_precisions_leave_the_prior_at_zero() -> None:
    agent = RBLSPI(CHAIN, OneHot(), prior_precision=0.1, noise_precision=1.0, seed=0).learn(100)
    assert not agent.state.centre.any()
    assert agent.posterior.prior_mean is None
    np.testing.assert_array_equal(agent.policy().weights, agent.state.mean)


def test_features_without_a_constant_have_no_centre() -> None:
    env = gym.make("MountainCar-v0")
    agent = RBLSPI(env, lambda s: s, seed=0).learn(100)
    assert agent.features.constant is None
    assert not agent.state.centre.any()


@pytest.mark.parametrize("reward", [1.0, 0.1, -1e-15, 3e7])
@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999])
def test_rounding_errors_are_not_taken_for_rewards(reward: float, discount: float) -> None:
    """Equal rewards tell nothing apart; after an end does, they are the centre exactly."""
    centre, rng = new_centre(), np.random.default_rng(0)
    count_reward(centre, reward, False)
    for _ in range(1000):
        seen = reward * (1.0 + 1e-16 * rng.integers(-1, 2))
        count_reward(centre, seen, False)
    assert not centre[TOLD]
    centre[TOLD] = 1.0
    move_centre(centre, discount)
    assert shaped(centre, reward, False) == 0.0
    assert shaped(centre, reward, True) == pytest.approx(reward - reward / (1 - discount))


def test_while_nothing_is_told_apart_the_unknown_is_better_than_the_known() -> None:
    """Whatever the reward is that always comes."""
    for reward in (-1.0, 0.0, 1.0, 100.0):
        centre = new_centre()
        count_reward(centre, reward, False)
        move_centre(centre, 0.9)
        unit = abs(reward) or 1.0
        assert centre[VALUE] == pytest.approx((reward + unit) / 0.1)
        assert shaped(centre, reward, False) == -unit


def test_the_centre_is_the_value_of_going_on_as_so_far() -> None:
    """With a mean reward of rho and a share q of ends, v = rho + gamma (1 - q) v."""
    agent = learnt(added=5.0, steps=1024)
    rewards = agent.session.memory.transitions(()).rewards
    assert len(rewards) == 1024
    assert agent.state.centre[VALUE] == pytest.approx(rewards.mean() / (1 - DISCOUNT), rel=1e-12)
    agent = RBLSPI("rblspi/InvertedPendulum-v0", discount=DISCOUNT, seed=0).learn(1024)
    log = agent.session.memory.transitions((2,))
    value, ends = agent.state.centre[VALUE], log.terminated.mean()
    assert value == pytest.approx(log.rewards.mean() + DISCOUNT * (1 - ends) * value, rel=1e-12)


def test_the_posterior_has_the_misfit_of_the_rewards_themselves() -> None:
    """(A theta - b)'C^-1 (A theta - b), with b of the rewards and not of what was subtracted."""
    agent = learnt(added=5.0, basis=Polynomial(2), steps=640)
    posterior, statistics = agent.posterior, agent.state.posterior.statistics
    assert posterior.prior_mean is not None
    np.testing.assert_array_equal(posterior.mean, agent.policy().weights)
    theta = np.random.default_rng(0).standard_normal(len(posterior.mean))
    b = statistics.reward + statistics.drift @ posterior.prior_mean
    error = (statistics.drift @ theta - b).reshape(2, -1)
    expected = sum(
        e @ np.linalg.solve(gram + agent.ridge * np.eye(len(gram)), e)
        for e, gram in zip(error, statistics.gram, strict=True)
    )
    assert posterior.misfit(theta) == pytest.approx(expected, rel=1e-8)


def test_a_saved_policy_and_a_loaded_agent_have_the_same_values(tmp_path: Path) -> None:
    agent = RBLSPI("rblspi/MountainCar-v0", RBFGrid(4), seed=0).learn(1500)
    states = np.array([[-0.5, 0.0], [0.3, 0.02]])
    expected = agent.policy().action_values(states)
    agent.policy().save(tmp_path / "policy.npz")
    agent.save(tmp_path / "agent.npz")
    policy = LinearPolicy.load(tmp_path / "policy.npz")
    for found in (policy, RBLSPI.load(tmp_path / "agent.npz").policy()):
        np.testing.assert_array_equal(found.action_values(states).mean, expected.mean)
        np.testing.assert_array_equal(found.action_values(states).std, expected.std)
    assert policy.posterior is not None
    np.testing.assert_array_equal(policy.posterior.prior_mean, agent.posterior.prior_mean)
