"""Stated intervals of action values against true ones."""

import numpy as np
import pytest

from rblspi import RBLSPI, OneHot, OnlineLSPI, RBFGrid
from rblspi.rollout.calibration import (
    LEVELS,
    Calibration,
    calibrate,
    mean_and_error,
    rollout_returns,
    visited_states,
)


@pytest.fixture(scope="module")
def chain():
    return RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0).learn(20_000)


def test_coverage_of_numbers_drawn_as_stated():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50_000), rng.uniform(0.1, 2.0, 50_000)
    result = Calibration(mean, std, rng.normal(mean, std), np.zeros(50_000), draws=10**6)
    np.testing.assert_allclose(result.coverage(LEVELS), LEVELS, atol=0.01)
    assert result.discrepancy < 0.01


def test_on_the_chain_the_truth_is_exact(chain):
    result = calibrate(chain)
    assert result.truth.shape == (40,)
    assert not result.error.any()
    policy = chain.predict(np.arange(20), deterministic=True)[0]
    exact = chain.env.unwrapped.exact_action_values(policy, 0.9)
    np.testing.assert_array_equal(result.truth, exact.ravel())
    assert "of 40 true action values lie in their 95% interval" in str(result)


def test_an_agent_calibrates_itself(chain):
    for one, other in zip(chain.calibrate(seed=1)[:4], calibrate(chain, seed=1)[:4], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_monte_carlo_agrees_with_the_exact_values():
    agent = RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0)
    best = np.arange(20) >= 10  # the nearer end
    agent.state.mean[:] = np.concatenate([~best, best])
    exact = calibrate(agent).truth.reshape(20, 2)
    policy, explorer = agent.policy(), agent.policy(explore=True)
    copies, observations = visited_states(policy, explorer, agent.env, 5, seed=0)
    returns = rollout_returns(policy, copies, 100, seed=0, longest=200)
    truth, error = mean_and_error(returns)
    assert (np.abs(truth - exact[observations.astype(int)]) < 5 * error).all()


def test_an_agent_without_a_posterior_has_nothing_to_calibrate():
    agent = OnlineLSPI("rblspi/MountainCar-v0", RBFGrid(2), seed=0)
    with pytest.raises(ValueError, match="online-lspi states no intervals"):
        calibrate(agent)
