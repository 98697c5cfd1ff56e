"""Values of a table by models of halves of a log, with what an interval has to contain."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.data import Transitions
from rblspi.offline.table_values import table_values
from rblspi.policies.values import reach
from tests.support.garnet import Garnet

DISCOUNT = 0.95


def log_of(rng, garnet, episodes=60, length=50):
    log, _ = garnet.log(rng, episodes, length, garnet.following(0.5))
    return log


def stated(log, garnet, discount=DISCOUNT, **settings):
    """Mean and standard deviation of the garnet's own policy, shape (states, actions)."""
    chosen = np.eye(garnet.rewards.shape[1])[garnet.policy].T
    start = np.zeros(chosen.shape)
    mean, draws = table_values(log, start, discount, policy=chosen, **settings)
    return mean.T, np.hypot(draws.deviations.std(axis=0, ddof=1), draws.common).T


def test_intervals_contain_the_true_action_values_of_random_problems():
    inside, errors, stds = [], [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        garnet = Garnet.random(rng)
        mean, std = stated(log_of(rng, garnet), garnet)
        errors.append(mean - garnet.action_values(DISCOUNT))
        stds.append(std)
        inside.append(np.abs(errors[-1]) <= reach(10, 0.95) * std)
    assert np.mean(inside) > 0.92
    assert np.mean(stds) < 2.0 * np.std(errors)


def test_units_of_the_rewards_are_those_of_values_and_an_offset_shifts_them():
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    mean, std = stated(log, garnet)
    for scale in (2.0**-20, 2.0**20):
        scaled = stated(replace(log, rewards=log.rewards * scale), garnet)
        np.testing.assert_allclose(scaled[0], scale * mean, rtol=1e-5)
        np.testing.assert_allclose(scaled[1], scale * std, rtol=1e-4)
    moved = stated(replace(log, rewards=log.rewards + 100.0), garnet)
    # From another start, the iteration ends elsewhere within its precision.
    np.testing.assert_allclose(moved[0], mean + 100.0 / (1.0 - DISCOUNT), atol=0.1)


def test_much_data_leave_the_exact_values():
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng, 5, 2, 2)
    mean, std = stated(log_of(rng, garnet, 200, 500), garnet, 0.9)
    assert np.abs(mean - garnet.action_values(0.9)).max() < 0.2
    assert std.max() < 0.2


def test_an_end_has_no_future():
    log = Transitions.from_arrays(
        [0, 1] * 500, [0, 0] * 500, [0.0, 1.0] * 500, [1, 2] * 500, [False, True] * 500
    )
    mean, _ = table_values(log, np.zeros((1, 3)), 0.5)
    assert mean[0, 1] == pytest.approx(1.0, abs=0.01)
    assert mean[0, 0] == pytest.approx(0.5, abs=0.01)


def test_what_was_never_tried_is_doubted_and_not_chosen():
    """Action 1 brings as much as 0 where it was tried; in state 1 nobody tried it."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(2, size=400), rng.integers(2, size=400)
    log = Transitions.from_arrays(
        states, actions, rng.normal(size=400), rng.integers(2, size=400), np.zeros(400, bool)
    )
    known = log.select((states == 0) | (actions == 0))
    mean, draws = table_values(known, np.zeros((2, 2)), 0.9)
    assert mean[0, 1] > mean[1, 1]
    std = draws.deviations.std(axis=0, ddof=1)
    assert std[1, 1] > 0.3 * draws.unknown


def test_only_allowed_actions_are_followed():
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng)
    log = log_of(rng, garnet)
    only = np.arange(3)[:, None] == garnet.policy
    mean, _ = table_values(log, np.zeros(only.shape), DISCOUNT, allowed=only)
    given, std = stated(log, garnet)
    np.testing.assert_allclose(mean.T, given, atol=std.max())
