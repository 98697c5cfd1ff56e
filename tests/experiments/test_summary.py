import numpy as np
import pytest
from scipy import stats

from rblspi.experiments.results import block_means, interquartile_mean, summarise

RNG = np.random.default_rng(7)


def test_block_means_by_hand():
    values = [[1, 3, 5, 7, 100], [2, 2, 4, 4, 100]]
    np.testing.assert_array_equal(block_means(values, 2), [[2, 6], [2, 4]])


def test_the_mean_and_its_interval_are_those_of_scipy():
    values = RNG.normal(5, 2, size=(13, 300))
    summary = summarise(values, 100)
    blocks = values.reshape(13, 3, 100).mean(axis=2)
    np.testing.assert_allclose(summary.mean, blocks.mean(axis=0))
    for b in range(3):
        expected = stats.ttest_1samp(blocks[:, b], 0.0).confidence_interval(0.95)
        np.testing.assert_allclose([summary.low[b], summary.high[b]], expected, rtol=1e-12)
    np.testing.assert_array_equal(summary.episodes, [100, 200, 300])
    np.testing.assert_allclose(summary.percentile_5, np.percentile(blocks, 5, axis=0))
    np.testing.assert_allclose(summary.percentile_95, np.percentile(blocks, 95, axis=0))


@pytest.mark.parametrize("runs", [1, 2, 5, 12, 100])
def test_the_interquartile_mean_is_scipy_s_trimmed_mean(runs):
    values = RNG.normal(size=(runs, 4))
    np.testing.assert_allclose(interquartile_mean(values)[0], stats.trim_mean(values, 0.25))


def test_the_bootstrap_interval_is_that_of_resampled_runs():
    values = RNG.normal(size=(40, 2))
    _, low, high = interquartile_mean(values)
    again = stats.bootstrap(
        (values[:, 0],),
        lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    # Both are random: their ends agree to a fraction of the width.
    np.testing.assert_allclose([low[0], high[0]], again, atol=0.15 * (again.high - again.low))


def test_the_bootstrap_gives_the_same_numbers_every_time():
    values = RNG.normal(size=(9, 3))
    for a, b in zip(interquartile_mean(values), interquartile_mean(values.copy()), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_interval_from_one_run_is_unknown():
    summary = summarise([[1.0, 2.0]], 1)
    assert np.isnan(summary.low).all()
    assert np.isnan(summary.iqm_low).all()


def test_an_interval_of_the_mean_ends_where_numbers_become_impossible():
    """From two episodes of 10 and 490 steps, Student's t interval reaches from -2799 to 3299."""
    values = [[10.0, 100.0], [490.0, 110.0]]
    summary = summarise(values, 1, (1.0, 500.0))
    np.testing.assert_array_equal(summary.clipped, [1.0, 0.0])
    assert (summary.low[0], summary.mean[0], summary.high[0]) == (1.0, 250.0, 500.0)
    raw = summarise(values, 1)
    assert (summary.low[1], summary.high[1]) == (raw.low[1], raw.high[1])
    assert raw.low[0] < -2000
    assert not raw.clipped.any()
