"""95% confidence intervals of means, differences and proportions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.types import Array

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and its 95% confidence interval; the ends are nan if there is only one value."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """As ``mean ± half the interval``."""
        half = self.high - self.mean
        return f"{self.mean:.4g} ± {half:.2g}" if math.isfinite(half) else f"{self.mean:.4g} ± ?"


def half_width(values: Array) -> Array:
    """Half of the interval of the mean over the first axis, by Student's t distribution."""
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.nan)
    error = values.std(axis=0, ddof=1) / math.sqrt(count)
    half: Array = stdtrit(count - 1, 0.5 + CONFIDENCE / 2) * error
    return half


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of independent numbers, shape (N,)."""
    array = np.asarray(values, dtype=np.float64)
    mean, half = float(array.mean()), float(half_width(array))
    return Interval(mean, mean - half, mean + half)


def difference_interval(a: ArrayLike, b: ArrayLike) -> Interval:
    """Mean of a minus mean of b, for independent numbers of unequal variance (Welch)."""
    from scipy.special import stdtrit

    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    difference = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Interval(difference, math.nan, math.nan)
    parts = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
    variance = float(parts.sum())
    if variance == 0.0:
        return Interval(difference, difference, difference)
    freedom = variance**2 / float((parts**2 / [len(a) - 1, len(b) - 1]).sum())
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance)
    return Interval(difference, difference - half, difference + half)


def share_interval(successes: int, trials: int) -> Interval:
    """Proportion of trials that succeeded, with Wilson's interval, which stays within [0, 1]."""
    from scipy import stats

    bounds = stats.binomtest(successes, trials).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(successes / trials, float(bounds.low), float(bounds.high))
