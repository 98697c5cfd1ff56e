"""Action values afresh, with what an interval has to contain."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.features import OneHot
from rblspi.offline.value_errors import evaluate_values
from tests.support.garnet import Garnet

DISCOUNT = 0.95


def log_of(rng, garnet, episodes=60, length=50):
    log, _ = garnet.log(rng, episodes, length, garnet.following(0.5))
    return log


def stated(log, garnet):
    found = evaluate_values(log, garnet.act, OneHot(), 3, DISCOUNT)
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
    found = evaluate_values(log, garnet.act, OneHot(), 3, discount)
    extremes = np.array([log.rewards.min(), log.rewards.max()]) / (1.0 - discount)
    np.testing.assert_allclose(found.limits, extremes, rtol=1e-12)
