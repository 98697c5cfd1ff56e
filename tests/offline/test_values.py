"""Action values afresh, with what an interval has to contain."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi.data import Transitions
from rblspi.features import OneHot
from rblspi.offline.values import drawn_values
from tests.support.garnet import Garnet
from tests.support.values import values_by_log

DISCOUNT = 0.95


def log_of(rng, garnet, episodes=60, length=50):
    log, _ = garnet.log(rng, episodes, length, garnet.following(0.5))
    return log


def stated(log, garnet):
    found = values_by_log(log, garnet.act, OneHot(), 3, DISCOUNT)
    mean, noise = found.posterior.predict(np.eye(20))
    return mean, np.hypot(noise, found.basis_std)


def test_intervals_contain_the_true_action_values_of_random_problems():
    inside, errors, stds = [], [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        garnet = Garnet.random(rng)
        mean, std = stated(log_of(rng, garnet), garnet)
        errors.append(mean - garnet.action_values(DISCOUNT))
        stds.append(std)
        inside.append(np.abs(errors[-1]) <= 1.96 * std)
    assert np.mean(inside) > 0.92
    assert np.mean(stds) < 2.0 * np.std(errors)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_the_rewards_are_those_of_values_and_deviations(scale):
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    one = stated(log, garnet)
    other = stated(replace(log, rewards=log.rewards * scale), garnet)
    for plain, scaled in zip(one, other, strict=True):
        np.testing.assert_allclose(scaled, scale * plain, rtol=1e-9)


@pytest.mark.parametrize("offset", [100.0, 10_000.0])
def test_a_constant_added_to_all_rewards_shifts_values_and_keeps_deviations(offset):
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    mean, std = stated(log, garnet)
    other_mean, other_std = stated(replace(log, rewards=log.rewards + offset), garnet)
    np.testing.assert_allclose(other_mean, mean + offset / (1.0 - DISCOUNT), rtol=1e-9)
    np.testing.assert_allclose(other_std, std, rtol=1e-3)


def test_where_nothing_was_seen_the_value_may_be_anything():
    rng = np.random.default_rng(1)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    seen = log.observations != 7
    few = log.select(seen)
    anything = np.ptp(few.rewards) / (1.0 - DISCOUNT) / np.sqrt(12.0)
    assert (stated(few, garnet)[1][7] > 0.9 * anything).all()
    assert (stated(log, garnet)[1] < 0.2 * anything).all()


@pytest.mark.parametrize("discount", [0.95, 0.9999])
def test_limits_are_the_values_of_the_worst_and_the_best_reward_forever(discount):
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    found = values_by_log(log, garnet.act, OneHot(), 3, discount)
    extremes = np.array([log.rewards.min(), log.rewards.max()]) / (1.0 - discount)
    np.testing.assert_allclose(found.limits, extremes, rtol=1e-12)


# Models of a table that are drawn given a log -----------------------------------------------------


def test_much_data_leave_the_exact_values():
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng, 5, 2, 2)
    log, _ = garnet.log(rng, 200, 500, garnet.following(0.5))
    drawn = drawn_values(log, garnet.policy, 2, 0.9, (-100.0, 100.0), models=20)
    exact = garnet.action_values(0.9).T
    assert np.abs(drawn.mean(axis=0) - exact).max() < 0.2
    assert drawn.std(axis=0).max() < 0.2


def test_what_was_never_tried_may_be_worth_anything():
    log = Transitions.from_arrays([0, 0], [0, 0], [1.0, 1.0], [0, 0], [False, False])
    drawn = drawn_values(log, np.zeros(1, np.int64), 2, 0.9, (0.0, 10.0), models=2000)
    assert drawn[:, 1].min() >= 0.0
    assert drawn[:, 1].max() <= 10.0
    assert drawn[:, 1].mean() == pytest.approx(5.0, abs=4 * 10 / 12**0.5 / 2000**0.5)
    assert drawn[:, 1].std() == pytest.approx(10 / 12**0.5, rel=0.1)


def test_an_end_has_no_future():
    """A log without chance, of which nothing is unseen: the last state is never left."""
    log = Transitions.from_arrays(
        [0, 1] * 500, [0, 0] * 500, [0.0, 1.0] * 500, [1, 2] * 500, [False, True] * 500
    )
    drawn = drawn_values(log, np.zeros(3, np.int64), 1, 0.5, (0.0, 1.0), models=50)
    assert drawn[:, 0, 1] == pytest.approx(1.0, abs=0.01)
    assert drawn[:, 0, 0] == pytest.approx(0.5, abs=0.01)


def test_units_and_offsets_are_units_and_offsets():
    rng = np.random.default_rng(1)
    garnet = Garnet.random(rng, 5, 2, 2)
    log, _ = garnet.log(rng, 10, 20, garnet.following(0.5))
    found = []
    for factor, added in ((1.0, 0.0), (1e6, 0.0), (1.0, 1e4)):
        changed = replace(log, rewards=factor * log.rewards + added)
        posterior = values_by_log(
            changed, garnet.act, OneHot(), 2, 0.9, gym.spaces.Discrete(5)
        ).posterior
        mean, std = posterior.predict(np.eye(5))
        found.append(((mean - added / (1 - 0.9)) / factor, std / factor))
    for mean, std in found[1:]:
        np.testing.assert_allclose(mean, found[0][0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(std, found[0][1], rtol=1e-5)


def test_a_few_visits_do_not_say_that_nothing_else_happens():
    """Three visits that all led back: the rest of the table may still be reached."""
    states = np.repeat([0, 1], [3, 400])
    rewards = np.where(states == 0, 0.0, 1.0)
    log = Transitions.from_arrays(states, np.zeros(403, int), rewards, states, np.zeros(403, bool))
    drawn = drawn_values(log, np.zeros(2, np.int64), 1, 0.99, (0.0, 100.0), models=400)
    assert np.median(drawn[:, 0, 0]) < 1.0
    assert np.quantile(drawn[:, 0, 0], 0.975) > 20.0
