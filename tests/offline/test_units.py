"""Rewards in other units, or with a constant added: what estimators may make of them, and what not.

Rewards times c scale values, deviations and intervals by c. A constant c that is added to all
rewards of a problem that goes on for ever shifts values by c / (1 - gamma). Neither changes a
policy. Multiplying by a power of two does not round, so nothing may differ but the exponent.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi.features import OneHot, RBFGrid
from rblspi.offline import BLSPI, BLSTD, FQI, LSPI, LSTD, compare, estimates, policy_value
from tests.support.garnet import Garnet
from tests.support.logs import some_log

ACTIONS, DISCOUNT = 3, 0.9
UNITS = [2.0**-20, 2.0**20, 1e-6, 1e6]
#: multiples of the differences between rewards, which are about 1
OFFSETS = [100.0, 10_000.0]

GARNET = Garnet.random(np.random.default_rng(3), 8, ACTIONS)
TABLE, PROPENSITIES = GARNET.log(np.random.default_rng(4), 20, 40, GARNET.following(0.5))
PLANE = some_log(600)
ENDLESS = {"terminated": np.zeros(600, bool), "truncated": np.ones(600, bool)}
#: logs with their bases; in the grid, the basis cannot represent the values
PROBLEMS = {
    "table": (TABLE, OneHot(), Discrete(8)),
    "grid": (replace(PLANE, **ENDLESS), RBFGrid(3, low=-1, high=1), None),
    "grid with ends": (PLANE, RBFGrid(3, low=-1, high=1), None),
}


class Said(NamedTuple):
    """What a method says of a log."""

    values: Any  # are scaled and shifted
    differences: Any = ()  # are scaled
    same: Any = ()  # stay the same
    sums: Any = ()  # are scaled; how a constant shifts them depends on the log


def some_policy(observations):
    return np.asarray(observations).reshape(len(observations), -1)[:, 0].astype(int) % ACTIONS


def other_policy(observations):
    return 1 + 0 * some_policy(observations)


def by_fit(kind, log, basis, space):
    built, learns = kind(basis, ACTIONS, discount=DISCOUNT, observation_space=space), True
    if kind in (LSTD, BLSTD):
        built, learns = built.fit(log, some_policy), False
    else:
        built.fit(log)
    values, std = built.predict(log.observations), ()
    if hasattr(built, "posterior_"):
        std = built.predict(log.observations, return_std=True)[1]
    return Said(values, std, built.act(log.observations) if learns else ())


def by_policy_value(log, basis, space):
    found = policy_value(
        log, some_policy, basis, ACTIONS, discount=DISCOUNT, observation_space=space
    )
    stds = found.std, found.posterior_std, found.sampling_std, found.basis_error
    return Said((found.mean, found.low, found.high), stds)


def by_estimates(log, basis, space):
    settings = {"discount": DISCOUNT, "observation_space": space, "propensities": PROPENSITIES}
    (_, *rows), *_ = estimates(log, some_policy, basis, ACTIONS, **settings)
    values = {row.method: row[1:4] for row in rows}
    sums = values.pop("per-decision IS")  # its weights do not sum to one
    return Said(list(values.values()), same=[row.effective for row in rows], sums=sums)


def by_comparison(baseline, log, basis, space):
    settings = {"discount": DISCOUNT, "observation_space": space}
    found = compare(some_policy, baseline, log, basis, ACTIONS, **settings)
    differences = *found[:3], found.sampling_std, found.basis_std
    return Said(found[3:5], differences, (found.unsupported, found.deploy))


FITS = {kind.__name__: partial(by_fit, kind) for kind in (LSTD, BLSTD, LSPI, BLSPI, FQI)}
ESTIMATES = {
    "policy_value": by_policy_value,
    "estimates": by_estimates,
    "compare with the log": partial(by_comparison, None),
    "compare": partial(by_comparison, other_policy),
}
CASES = [(method, problem) for method in FITS for problem in PROBLEMS]
CASES += [*((method, "table") for method in ESTIMATES), ("policy_value", "grid")]


@cache
def plain(method, problem):
    """What the method says of the rewards as they are."""
    return said(method, problem, *PROBLEMS[problem])


def said(method, problem, *log):
    return Said(*(np.asarray(part, float) for part in (FITS | ESTIMATES)[method](*log)))


pytestmark = pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")


@pytest.mark.parametrize(("method", "problem"), CASES)
@pytest.mark.parametrize("unit", UNITS)
def test_rewards_in_other_units_change_units_alone(method, problem, unit):
    log, *rest = PROBLEMS[problem]
    one = plain(method, problem)
    other = said(method, problem, replace(log, rewards=unit * log.rewards), *rest)
    tolerance = 0.0 if np.log2(unit) % 1 == 0 else 1e-9
    size = tolerance * np.abs(one.values).max()
    for name in ("values", "differences", "sums"):
        scaled, expected = getattr(other, name) / unit, getattr(one, name)
        np.testing.assert_allclose(scaled, expected, rtol=tolerance, atol=size)
    np.testing.assert_allclose(other.same, one.same, rtol=tolerance)


@pytest.mark.parametrize(("method", "problem"), [case for case in CASES if "ends" not in case[1]])
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_constant_added_to_all_rewards_shifts_values_alone(method, problem, offset):
    log, *rest = PROBLEMS[problem]
    one = plain(method, problem)
    other = said(method, problem, replace(log, rewards=log.rewards + offset), *rest)
    # sums of squares hold the square of the offset, of which rounding takes 1e-16
    tolerance = 1e-9 * offset / (1 - DISCOUNT)
    np.testing.assert_allclose(other.values - offset / (1 - DISCOUNT), one.values, atol=tolerance)
    np.testing.assert_allclose(other.differences, one.differences, rtol=1e-3, atol=tolerance)
    np.testing.assert_allclose(other.same, one.same, rtol=1e-9)
