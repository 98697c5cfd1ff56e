"""The estimated prior and noise: identities, limits, units."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rblspi.data.transitions import Transitions
from rblspi.features import OneHot
from rblspi.model.evidence import (
    MOST_DRAWN,
    SPACING,
    estimate_precisions,
    posterior_by_evidence,
    shrinkage,
)
from rblspi.model.statistics import TDErrorSums, accumulate, empty
from rblspi.offline import BLSTD, LSTD
from tests.support.sums import dense

ACTIONS, FEATURES, DISCOUNT = 2, 4, 0.9
CONSTANT = np.tile([0.0, 0.0, 0.0, 1.0], ACTIONS)


def some_sums(rng, rows=300, offset=0.0, scale=1.0, terminal=0.0):
    x, y = (np.column_stack([rng.standard_normal((rows, 3)), np.ones(rows)]) for _ in range(2))
    actions = rng.integers(ACTIONS, size=rows)
    next_actions = np.where(rng.random(rows) < terminal, -1, rng.integers(ACTIONS, size=rows))
    rewards = scale * (x[:, 0] * (1 + actions) + rng.standard_normal(rows)) + offset
    statistics, errors = empty(ACTIONS, FEATURES), TDErrorSums.empty(ACTIONS, FEATURES)
    accumulate(statistics, x, actions, rewards, y, next_actions, DISCOUNT)
    errors.add(y, next_actions, rewards, DISCOUNT)
    return statistics, errors, (x, actions, rewards, y, next_actions)


def by_hand(rows, theta):
    """The TD errors of some weights, one transition after the other."""
    weights = theta.reshape(ACTIONS, -1)
    return np.array(
        [
            r + (DISCOUNT * (y @ weights[b]) if b >= 0 else 0.0) - x @ weights[a]
            for x, a, r, y, b in zip(*rows, strict=True)
        ]
    )


def test_the_sums_know_the_squared_td_errors_of_any_weights():
    rng = np.random.default_rng(0)
    statistics, errors, rows = some_sums(rng, terminal=0.2)
    for theta in rng.standard_normal((5, ACTIONS * FEATURES)):
        expected = (by_hand(rows, theta) ** 2).sum()
        assert errors.squared_td_errors(statistics, theta) == pytest.approx(expected, rel=1e-10)


def test_sums_of_parts_merge_to_the_sums_of_the_whole():
    rng = np.random.default_rng(1)
    _, errors, rows = some_sums(rng)
    parts = []
    for part in (slice(0, 100), slice(100, None)):
        sums = TDErrorSums.empty(ACTIONS, FEATURES)
        _, _, rewards, y, next_actions = (column[part] for column in rows)
        sums.add(y, next_actions, rewards, DISCOUNT)
        parts.append(sums)
    for merged, whole in zip(parts[0].merge(parts[1]), errors, strict=True):
        np.testing.assert_allclose(merged, whole, rtol=1e-12)


def test_the_prior_maximises_the_evidence_given_the_noise(monkeypatch):
    monkeypatch.setattr("rblspi.model.evidence.LARGEST_PENALTY", 1e6)
    statistics, errors, _ = some_sums(np.random.default_rng(2))
    found = posterior_by_evidence(statistics, errors, CONSTANT)

    def cost(log_alpha):
        alpha, beta = float(np.exp(log_alpha[0])), found.noise_precision
        other = posterior_by_evidence(statistics, errors, CONSTANT, alpha, beta)
        return -other.log_evidence()

    best = minimize(cost, [0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    assert abs(np.log(found.prior_precision) - best.x[0]) <= 0.5 * SPACING + 1e-3


def test_the_prior_weighs_at_most_a_hundredth_of_a_transition():
    statistics, errors, _ = some_sums(np.random.default_rng(2))
    found = posterior_by_evidence(statistics, errors, CONSTANT)
    squared_length = np.trace(statistics.gram, axis1=1, axis2=2).sum() / statistics.count.sum()
    penalty = found.prior_precision / found.noise_precision
    assert penalty == pytest.approx(0.01 * squared_length, rel=1e-12)


def test_the_noise_is_the_mean_squared_td_error_of_the_mean():
    statistics, errors, rows = some_sums(np.random.default_rng(3), rows=4000)
    found = posterior_by_evidence(statistics, errors, CONSTANT)
    squares = by_hand(rows, found.mean) ** 2
    assert 1.0 / found.noise_precision == pytest.approx(squares.mean(), rel=5e-3)


def test_the_posterior_solves_its_equations():
    statistics, errors, _ = some_sums(np.random.default_rng(4))
    found = posterior_by_evidence(statistics, errors, CONSTANT)
    drift, gram, reward = dense(statistics)
    whitened, beta = np.linalg.solve(gram, drift), found.noise_precision
    precision = found.prior_precision * shrinkage(8, CONSTANT) + beta * drift.T @ whitened
    np.testing.assert_allclose(found.precision, precision, rtol=1e-8, atol=1e-8 * precision.max())
    mean = beta * np.linalg.solve(precision, whitened.T @ reward)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)


def by_evidence(seed, **changed):
    statistics, errors, _ = some_sums(np.random.default_rng(seed), **changed)
    return posterior_by_evidence(statistics, errors, CONSTANT)


@pytest.mark.parametrize("scale", [2.0**-20, 4.0, 2.0**20])
def test_units_that_are_powers_of_two_change_nothing_but_units(scale):
    one, other = by_evidence(5), by_evidence(5, scale=scale)
    np.testing.assert_array_equal(other.mean, scale * one.mean)
    np.testing.assert_array_equal(other.noise_precision * scale**2, one.noise_precision)
    np.testing.assert_array_equal(other.factor, one.factor)


@pytest.mark.parametrize("offset", [100.0, 10_000.0])
def test_a_constant_added_to_all_rewards_shifts_values_and_nothing_else(offset):
    one, other = by_evidence(6), by_evidence(6, offset=offset)
    expected = one.mean + CONSTANT * offset / (1.0 - DISCOUNT)
    np.testing.assert_allclose(other.mean, expected, atol=1e-9 * offset / (1.0 - DISCOUNT))
    np.testing.assert_allclose(other.noise_precision, one.noise_precision, rtol=1e-12 * offset**2)


def test_what_is_given_is_kept():
    statistics, errors, _ = some_sums(np.random.default_rng(7))
    normal = np.eye(9)
    assert estimate_precisions(statistics, errors, normal, CONSTANT, prior=3.0).prior == 3.0
    assert estimate_precisions(statistics, errors, normal, CONSTANT, noise=5.0).noise == 5.0


def test_without_rewards_there_is_a_posterior_all_the_same():
    rows = 50
    statistics, errors = empty(1, 2), TDErrorSums.empty(1, 2)
    x = np.column_stack([np.linspace(0, 1, rows), np.ones(rows)])
    zeros = np.zeros(rows, np.int64)
    accumulate(statistics, x, zeros, np.zeros(rows), x, zeros, DISCOUNT)
    errors.add(x, zeros, np.zeros(rows), DISCOUNT)
    found = posterior_by_evidence(statistics, errors, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(found.mean, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_without_discount_the_noise_is_the_limit_of_that_with_one(seed):
    """Where no transition ends an episode, the data then say nothing about the constant."""
    rng, states, rows = np.random.default_rng(seed), 6, 1000
    at = rng.integers(states, size=rows)
    to = (at + rng.choice([-1, 1], rows)) % states
    rewards = np.sin(at) - np.sin(to) + 0.1 * rng.standard_normal(rows)
    noise = []
    for discount in (1.0 - 1e-7, 1.0):
        statistics, errors = empty(1, states), TDErrorSums.empty(1, states)
        x, y, only = np.eye(states)[at], np.eye(states)[to], np.zeros(rows, np.int64)
        accumulate(statistics, x, only, rewards, y, only, discount)
        errors.add(y, only, rewards, discount)
        posterior = posterior_by_evidence(statistics, errors, constant=np.ones(states))
        noise.append(posterior.noise_precision)
    assert noise[1] == pytest.approx(noise[0], rel=1e-2)
    assert noise[1] == pytest.approx(0.1**-2, rel=0.2)


def test_the_prior_does_not_draw_away_what_the_data_know():
    """A walk that may end on either side: its slow direction is far larger than all others."""
    rng, n = np.random.default_rng(0), 1500
    states, steps = rng.integers(25, size=n), np.where(rng.random(n) < 0.55, 1, -1)
    after, rewards = states + steps, 1.0 + rng.standard_normal(n)
    ended = (after < 0) | (after > 24)
    columns = (states, np.zeros(n, int), rewards, after.clip(0, 24), ended, ~ended)
    log, everywhere = Transitions.from_arrays(*columns), np.arange(25)
    plain = LSTD(OneHot(), discount=0.99).fit(log).predict(everywhere)
    fitted = BLSTD(OneHot(), discount=0.99).fit(log)
    mean, std = fitted.predict(everywhere, return_std=True)
    assert (np.abs(mean - plain) < 1.5 * MOST_DRAWN * std).all()  # other directions add a little
