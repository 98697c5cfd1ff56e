"""Rewards in other units, or with a constant added: what estimators may make of them, and what not.

Rewards times c scale values, deviations and intervals by c. A constant c that is added to all
rewards of a problem that goes on for ever shifts values by c / (1 - gamma). Neither changes a
policy. Multiplying by a power of two does not round, so nothing may differ but the exponent.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi.features import OneHot, RBFGrid
from rblspi.offline import BLSPI, BLSTD, FQI, LSPI, LSTD, policy_value
from tests.support.garnet import Garnet
from tests.support.logs import some_log

DISCOUNT, ACTIONS = 0.9, 3
UNITS = [2.0**-20, 2.0**20, 1e-6, 1e-3, 1e3, 1e6]
#: multiples of the differences between rewards, which are about 1
OFFSETS = [100.0, 10_000.0]


def garnet_log():
    rng = np.random.default_rng(3)
    garnet = Garnet.random(rng, 8, ACTIONS)
    return garnet.log(rng, 20, 40, garnet.following(0.5))[0]


def plane_log():
    """Continuous states, where the grid cannot represent the values."""
    log = some_log(600)
    return replace(log, terminated=np.zeros(600, bool), truncated=np.ones(600, bool))


#: logs that go on for ever, with their bases
PROBLEMS = {
    "table": (garnet_log(), OneHot(), Discrete(8)),
    "grid": (plane_log(), RBFGrid(3, low=-1, high=1), None),
}


def some_policy(observations):
    return np.asarray(observations).reshape(len(observations), -1)[:, 0].astype(int) % ACTIONS


def evaluated(kind, log, basis, space):
    fitted = kind(basis, ACTIONS, discount=DISCOUNT, observation_space=space).fit(log, some_policy)
    values = fitted.predict(log.observations)
    deviations = np.zeros(1)
    if kind is BLSTD:
        deviations = fitted.predict(log.observations, return_std=True)[1]
    return values, deviations, None


def learnt(kind, log, basis, space):
    fitted = kind(basis, ACTIONS, discount=DISCOUNT, observation_space=space).fit(log)
    values, deviations = fitted.predict(log.observations), np.zeros(1)
    if kind is BLSPI:
        deviations = fitted.predict(log.observations, return_std=True)[1]
    return values, deviations, fitted.act(log.observations)


def estimated(_, log, basis, space):
    found = policy_value(
        log, some_policy, basis, ACTIONS, discount=DISCOUNT, observation_space=space
    )
    stds = found.std, found.posterior_std, found.sampling_std, found.basis_error
    return np.array([found.mean, found.low, found.high]), np.array(stds), None


@cache
def plain(method, problem):
    """What the method says of the rewards as they are."""
    estimate, kind = METHODS[method]
    return estimate(kind, *PROBLEMS[problem])


METHODS = {
    "LSTD": (evaluated, LSTD),
    "BLSTD": (evaluated, BLSTD),
    "LSPI": (learnt, LSPI),
    "BLSPI": (learnt, BLSPI),
    "FQI": (learnt, FQI),
    "policy_value": (estimated, None),
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning"),
    pytest.mark.parametrize("problem", PROBLEMS),
    pytest.mark.parametrize("method", METHODS),
]


@pytest.mark.parametrize("unit", UNITS)
def test_rewards_in_other_units_change_units_alone(method, problem, unit):
    (estimate, kind), (log, basis, space) = METHODS[method], PROBLEMS[problem]
    values, deviations, actions = plain(method, problem)
    scaled = replace(log, rewards=unit * log.rewards)
    other_values, other_deviations, other_actions = estimate(kind, scaled, basis, space)
    tolerance = 0.0 if np.log2(unit) % 1 == 0 else 1e-9
    size = tolerance * np.abs(values).max()
    np.testing.assert_allclose(other_values / unit, values, rtol=tolerance, atol=size)
    np.testing.assert_allclose(other_deviations / unit, deviations, rtol=tolerance, atol=size)
    np.testing.assert_array_equal(other_actions, actions)


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_constant_added_to_all_rewards_shifts_values_alone(method, problem, offset):
    (estimate, kind), (log, basis, space) = METHODS[method], PROBLEMS[problem]
    values, deviations, actions = plain(method, problem)
    shifted = replace(log, rewards=log.rewards + offset)
    other_values, other_deviations, other_actions = estimate(kind, shifted, basis, space)
    # sums of squares hold the square of the offset, of which rounding takes 1e-16
    tolerance = 1e-9 * offset / (1 - DISCOUNT)
    np.testing.assert_allclose(other_values - offset / (1 - DISCOUNT), values, atol=tolerance)
    np.testing.assert_allclose(other_deviations, deviations, rtol=1e-3)
    np.testing.assert_array_equal(other_actions, actions)
