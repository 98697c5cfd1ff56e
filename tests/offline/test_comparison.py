from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import OneHot, Polynomial
from rblspi.offline.comparison import compare
from tests.support.garnet import Garnet

DISCOUNT = 0.9
SPACE = gym.spaces.Discrete(6)


def problem(seed=0, follow=0.4, episodes=60):
    """A small Garnet problem, another policy, and a log."""
    rng = np.random.default_rng(seed)
    garnet = Garnet.random(rng, 6, 2, 2)
    other = garnet._replace(policy=rng.integers(2, size=6))
    log, _ = garnet.log(rng, episodes, 15, garnet.following(follow))
    return garnet, other, log


def compared(policy, baseline, log, basis=None, **changed):
    settings = {"discount": DISCOUNT, "observation_space": SPACE} | changed
    return compare(policy, baseline, log, basis or OneHot(), 2, **settings)


def test_a_policy_is_no_better_than_itself():
    garnet, _, log = problem()
    same = compared(garnet.act, garnet.act, log)
    assert same[:3] == (0.0, 0.0, 0.0)
    assert not same.deploy
    assert "may be no better" in str(same)


def test_policy_and_baseline_can_change_places():
    garnet, other, log = problem()
    one, two = compared(garnet.act, other.act, log), compared(other.act, garnet.act, log)
    assert (one.mean, one.low, one.high) == pytest.approx((-two.mean, -two.high, -two.low))
    assert one.mean == pytest.approx(two.baseline - two.value)


def test_what_both_have_in_common_cancels():
    garnet, _, log = problem()
    policy = garnet.policy.copy()
    policy[0] = 1 - policy[0]
    similar = compared(garnet._replace(policy=policy).act, garnet.act, log)
    alone = compared(garnet.act, None, log)
    assert similar.sampling_std < alone.sampling_std


def test_the_logs_own_policy_is_the_baseline_unless_another_is_given():
    garnet, _, log = problem(follow=1.0)
    own = compared(garnet.act, None, log, ridge=1e-9)
    assert own.mean == pytest.approx(0.0, abs=1e-6)
    garnet, other, log = problem(episodes=2000)
    chosen = garnet.following(0.4)
    true = other.values(DISCOUNT).mean() - garnet.values(DISCOUNT, chosen).mean()
    found = compared(other.act, None, log)
    assert found.low < true < found.high
    assert found.high - found.low < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("against_log", [True, False])
def test_intervals_hold_the_exact_difference_about_as_often_as_they_say(against_log):
    held = 0
    for seed in range(60):
        garnet, other, log = problem(seed)
        found = compared(other.act, None if against_log else garnet.act, log)
        baseline = garnet.values(DISCOUNT, garnet.following(0.4) if against_log else None)
        true = (other.values(DISCOUNT) - baseline).mean()
        held += found.low - 1e-9 <= true <= found.high + 1e-9
    assert held >= 51  # at 95%, fewer happen once in 400 times


def test_what_the_data_do_not_contain_is_not_deployed():
    garnet, _, log = problem(follow=1.0)
    never = compared(lambda s: 1 - garnet.act(s), None, log)
    assert never.unsupported == pytest.approx(1.0, abs=1e-6)
    assert never.high - never.low > np.ptp(log.rewards) / (1 - DISCOUNT)
    assert not never.deploy
    assert compared(garnet.act, None, log).unsupported == 0.0


def rewards_of(garnet, log):
    return np.where(log.actions == garnet.policy[log.observations], 1.0, -1.0)


def test_a_basis_that_is_too_small_widens_the_interval():
    garnet, other, log = problem(episodes=400)
    small, table = (
        compared(other.act, garnet.act, log, basis) for basis in (Polynomial(1), OneHot())
    )
    assert table.basis_std == 0.0
    assert small.basis_std == pytest.approx(abs(small.mean - table.mean))
    assert small.low <= table.mean <= small.high


def test_words_follow_the_interval():
    garnet, _, log = problem(episodes=200)
    rewarded = replace(log, rewards=rewards_of(garnet, log))
    assert str(compared(garnet.act, None, rewarded)).endswith(": deploy")
    assert "it is worse" in str(compared(lambda s: 1 - garnet.act(s), None, rewarded))
