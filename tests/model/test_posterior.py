import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, multivariate_normal, norm

from rblspi.model.buffer import append, new_buffer
from rblspi.model.incremental import (
    BLOCK_UPDATE,
    RANK_ONE,
    RECOMPUTE,
    absorb,
    derive_normal,
    improve,
    new_incremental_posterior,
)
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.model.statistics import accumulate, empty
from tests.support.sums import dense, random_batch, sums_of

RIDGE = 1e-6


def some_sums(seed=0, rows=60):
    return sums_of(random_batch(seed, rows))


@given(st.integers(0, 2**32), st.integers(1, 80), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@settings(max_examples=50, deadline=None)
def test_the_mean_is_the_ridge_solution_of_the_whitened_system(seed, rows, alpha, beta):
    sums = some_sums(seed, rows)
    drift, gram, reward = dense(sums)
    whiten = np.linalg.inv(np.linalg.cholesky(gram))
    stacked = np.vstack([whiten @ drift, np.sqrt(alpha / beta) * np.eye(sums.weights)])
    expected = np.linalg.lstsq(stacked, np.r_[whiten @ reward, np.zeros(sums.weights)])[0]
    posterior = Posterior.from_statistics(sums, alpha, beta, RIDGE)
    allowed = 1e-13 * np.linalg.cond(gram) * posterior.condition * np.linalg.norm(expected)
    np.testing.assert_allclose(posterior.mean, expected, rtol=0, atol=allowed)


def test_mean_precision_and_covariance_are_the_papers():
    sums = some_sums()
    drift, gram, reward = dense(sums)
    alpha, beta = 0.3, 2.0
    whitened = drift.T @ np.linalg.inv(gram)
    precision = alpha * np.eye(6) + beta * whitened @ drift
    covariance = np.linalg.inv(precision)
    posterior = Posterior.from_statistics(sums, alpha, beta, RIDGE)
    np.testing.assert_allclose(posterior.precision, precision, rtol=1e-11)
    np.testing.assert_allclose(posterior.covariance(), covariance, rtol=1e-9, atol=1e-12)
    mean = beta * covariance @ whitened @ reward
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(posterior.weights.ravel(), mean, rtol=1e-10)


def test_samples_have_the_mean_and_the_covariance_of_the_posterior():
    posterior, count, k = Posterior.from_statistics(some_sums(), 0.3, 2.0), 20_000, 6
    covariance = posterior.covariance()
    samples = posterior.sample(np.random.default_rng(5), count)
    assert samples.shape == (count, k)

    # In these coordinates every component should be an independent standard normal.
    z = np.linalg.solve(np.linalg.cholesky(covariance), (samples - posterior.mean).T).T
    assert count * np.square(z.mean(axis=0)).sum() < chi2.isf(1e-6, k)
    # Second moments have variance 1 / count, or 2 / count on the diagonal.
    error = (z.T @ z / count - np.eye(k)) / np.sqrt((1 + np.eye(k)) / count)
    assert np.abs(error).max() < norm.isf(1e-6 / k**2)


def test_one_sample_is_a_vector():
    posterior = Posterior.from_statistics(some_sums(), 1.0, 1.0)
    one, other = (posterior.sample(np.random.default_rng(1), *count) for count in ((), (1,)))
    np.testing.assert_array_equal(other, [one])


def test_predictions_are_those_of_the_papers_predictive_distribution():
    posterior = Posterior.from_statistics(some_sums(), 0.3, 2.0)
    x = np.random.default_rng(1).standard_normal((5, 3))
    mean, std = posterior.predict(x)
    assert mean.shape == std.shape == (5, 2)
    covariance = posterior.covariance()
    for i in range(5):
        for a in range(2):
            phi = np.kron(np.eye(2)[a], x[i])
            assert mean[i, a] == pytest.approx(phi @ posterior.mean, rel=1e-12)
            assert std[i, a] == pytest.approx(np.sqrt(phi @ covariance @ phi), rel=1e-9)


def test_before_any_transition_the_posterior_is_the_prior():
    posterior = Posterior.from_statistics(empty(2, 3), 4.0, 10.0)
    np.testing.assert_array_equal(posterior.mean, 0.0)
    np.testing.assert_allclose(posterior.covariance(), np.eye(6) / 4.0, rtol=1e-14)
    np.testing.assert_allclose(posterior.predict(np.ones((1, 3)))[1], np.sqrt(3 / 4.0))


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 2.0), (1e-3, 0.1), (10.0, 1000.0)])
def test_the_log_evidence_is_the_log_density_of_the_rewards_sums(alpha, beta):
    sums = some_sums()
    drift, gram, reward = dense(sums)
    marginal = multivariate_normal(np.zeros(6), gram / beta + drift @ drift.T / alpha)
    posterior = Posterior.from_statistics(sums, alpha, beta, RIDGE)
    assert posterior.log_evidence() == pytest.approx(marginal.logpdf(reward), rel=1e-10)


@pytest.mark.parametrize("method", [RECOMPUTE, BLOCK_UPDATE, RANK_ONE])
def test_an_incremental_posterior_equals_that_of_its_sums(method):
    incremental = new_incremental_posterior(2, 3, RIDGE, 0.3 / 2.0, capacity=5, method=method)
    buffer = new_buffer(5, 3)
    for step, (x, action, reward, y, after) in enumerate(zip(*random_batch(4, 40), strict=True)):
        append(buffer, x, action, reward, y, after)
        if step % 5 == 4:
            absorb(incremental, buffer, 0.9)
    arrays = (incremental.gram_factor, incremental.factor, incremental.normal)
    kept = [array.copy() for array in arrays]
    ours = Posterior.from_incremental(incremental, 2.0)
    theirs = Posterior.from_statistics(incremental.statistics, 0.3, 2.0, RIDGE)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-8)
    np.testing.assert_allclose(ours.precision, theirs.precision, rtol=1e-8)
    assert ours.log_evidence() == pytest.approx(theirs.log_evidence(), rel=1e-8)
    for before, after in zip(kept, arrays, strict=True):
        np.testing.assert_array_equal(before, after)


def test_after_an_improvement_the_mean_is_the_same_to_the_bit():
    incremental = new_incremental_posterior(2, 3, RIDGE, 0.15, 1, BLOCK_UPDATE)._replace(
        statistics=some_sums()
    )
    derive_normal(incremental)
    mean = np.empty(6)
    improve(incremental, mean, np.zeros(6))
    posterior = Posterior.from_incremental(incremental, 2.0)
    np.testing.assert_array_equal(posterior.mean, mean)
    assert not np.shares_memory(posterior.factor, incremental.factor)


def test_the_condition_number_says_how_many_digits_are_left():
    posterior = Posterior.from_statistics(some_sums(), 0.3, 2.0)
    scale = np.sqrt(np.diag(posterior.precision))
    exact = np.linalg.cond(posterior.precision / np.outer(scale, scale), 1)
    assert posterior.condition == pytest.approx(exact, rel=0.5)
    assert posterior.digits <= -np.log10(2.2e-16 * posterior.condition)
    assert posterior.digits <= -np.log10(2.2e-16 * posterior.gram_condition)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.warn_if_uncertain()


def test_the_units_of_the_features_do_not_take_digits():
    sums = some_sums()
    units = np.array([1.0, 1e4, 1e-4])
    scaled = empty(2, 3)
    scaled.gram[:] = units[:, None] * sums.gram * units
    scaled.cross[:] = units[:, None] * sums.cross * np.r_[units, units, 1.0]
    plain = Posterior.from_statistics(sums, 1e-20, 1.0, 1e-20)
    other = Posterior.from_statistics(scaled, 1e-20, 1.0, 1e-20)
    assert np.linalg.cond(other.precision) > 1e12
    assert other.digits == pytest.approx(plain.digits, abs=0.5)
    np.testing.assert_allclose(other.mean * np.tile(units, 2), plain.mean, rtol=1e-9)


def test_a_mean_with_few_digits_is_warned_of():
    sums = empty(1, 2)
    x = np.ones((4, 2)) + 1e-8 * np.random.default_rng(0).standard_normal((4, 2))
    accumulate(sums, x, np.zeros(4, int), np.ones(4), x, np.full(4, -1), 0.9)
    posterior = Posterior.from_statistics(sums, 1e-15, 1.0, ridge=1e-15)
    assert posterior.digits < 3
    with pytest.warns(ConditionWarning, match="digits of the mean can be trusted"):
        posterior.warn_if_uncertain()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0), "prior_precision=0 must be a positive number"),
        ((1.0, -1), "noise_precision=-1 must be a positive number"),
        ((1.0, 1.0, float("nan")), "ridge=nan must be a positive number"),
    ],
)
def test_faulty_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Posterior.from_statistics(some_sums(), *arguments)


def test_features_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"x of shape \(3,\) must have shape \(N, 3\)"):
        Posterior.from_statistics(some_sums(), 1.0, 1.0).predict(np.ones(3))
