"""Confidence intervals are those of SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from rblspi.core.intervals import difference_interval, half_width, mean_interval, share_interval

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [2, 3, 20, 1000])
def test_a_mean_has_students_interval(count):
    values = RNG.normal(5.0, 3.0, count)
    mean, low, high = mean_interval(values)
    expected = stats.t.interval(0.95, count - 1, values.mean(), stats.sem(values))
    assert mean == values.mean()
    np.testing.assert_allclose((low, high), expected, rtol=1e-12)


def test_columns_have_their_own_half_widths():
    table = RNG.normal(size=(7, 4))
    for column, half in zip(table.T, half_width(table), strict=True):
        assert half == pytest.approx(mean_interval(column).high - column.mean(), rel=1e-12)


@pytest.mark.parametrize(("m", "n"), [(2, 2), (3, 40), (25, 25)])
def test_a_difference_has_welchs_interval(m, n):
    a, b = RNG.normal(1.0, 1.0, m), RNG.normal(0.0, 5.0, n)
    mean, low, high = difference_interval(a, b)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert mean == a.mean() - b.mean()
    np.testing.assert_allclose((low, high), expected, rtol=1e-10)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (1, 1), (470, 1000)])
def test_a_share_has_wilsons_interval(successes, trials):
    share, z = successes / trials, stats.norm.ppf(0.975)
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    half = z / (1 + z**2 / trials) * spread
    interval = share_interval(successes, trials)
    np.testing.assert_allclose(interval, (share, centre - half, centre + half), atol=1e-12)
    assert 0.0 <= interval.low <= share <= interval.high <= 1.0


def test_one_value_has_no_interval():
    assert mean_interval([3.0]).mean == 3.0
    assert np.isnan(mean_interval([3.0])[1:]).all()
    assert np.isnan(difference_interval([3.0], [1.0, 2.0])[1:]).all()
    assert np.isnan(half_width(np.ones((1, 3)))).all()
    assert str(mean_interval([3.0])) == "3 ± ?"


def test_equal_values_have_an_interval_of_one_point():
    assert mean_interval([2.0] * 5) == (2.0, 2.0, 2.0)
    assert difference_interval([2.0] * 5, [1.0] * 3) == (1.0, 1.0, 1.0)


def test_nineteen_of_twenty_intervals_hold_the_mean():
    samples = np.random.default_rng(1).normal(1.0, 2.0, (5, 4000))
    inside = np.abs(samples.mean(axis=0) - 1.0) <= half_width(samples)
    # Within four standard errors of 0.95.
    assert abs(inside.mean() - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)
