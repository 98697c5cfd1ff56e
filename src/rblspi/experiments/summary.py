"""Numbers over runs: arrays in, arrays out, nothing drawn.

Shapes: R runs, E episodes, B blocks of episodes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]

CONFIDENCE = 0.95
#: resamples behind the interval of an interquartile mean, and the seed they are drawn with
RESAMPLES = 2000
BOOTSTRAP_SEED = 0


class Interval(NamedTuple):
    """A mean and the interval that holds it with 95% confidence; unknown (nan) for one run."""

    mean: float
    low: float
    high: float


class Summary(NamedTuple):
    """A learning curve over runs; every array has shape (B,)."""

    runs: int
    episodes: Array  # the last episode of every block
    mean: Array
    low: Array  # 95% confidence interval of the mean
    high: Array
    percentile_5: Array  # of the runs
    percentile_95: Array
    iqm: Array  # interquartile mean
    iqm_low: Array  # its 95% bootstrap interval
    iqm_high: Array


def block_means(values: ArrayLike, block: int) -> Array:
    """Means over blocks of episodes, shape (R, E) to (R, B).

    Episodes after the last whole block are left out; fewer than a block make one block.
    """
    array = np.asarray(values, dtype=np.float64)
    runs, episodes = array.shape
    if episodes < block:
        block = episodes
    blocks = episodes // block
    means: Array = array[:, : blocks * block].reshape(runs, blocks, block).mean(axis=2)
    return means


def summarise(values: ArrayLike, block: int) -> Summary:
    """Sum up episodes of many runs, shape (R, E), as the paper does, and robustly as well."""
    array = np.asarray(values, dtype=np.float64)
    means = block_means(array, block)
    runs, blocks = means.shape
    mean = means.mean(axis=0)
    half = half_width(means)
    low, high = np.percentile(means, [5.0, 95.0], axis=0)
    return Summary(
        runs,
        np.minimum(block * np.arange(1, blocks + 1), array.shape[1]).astype(np.float64),
        mean,
        mean - half,
        mean + half,
        low,
        high,
        *interquartile_mean(means),
    )


def half_width(values: Array) -> Array:
    """Half of the 95% confidence interval of the mean over the first axis, by Student's t."""
    runs = len(values)
    if runs < 2:
        return np.full(values.shape[1:], np.nan)
    error = values.std(axis=0, ddof=1) / math.sqrt(runs)
    half: Array = stats.t.ppf(0.5 + CONFIDENCE / 2, runs - 1) * error
    return half


def interquartile_mean(values: Array) -> tuple[Array, Array, Array]:
    """Mean of the middle half over runs, shape (R, B) to (B,), with its bootstrap interval.

    Resampling runs and sorting them is the same as drawing ranks and sorting those: a resample
    is a row of weights on the sorted runs, the same for every block.
    """
    ordered = np.sort(values, axis=0)
    own, resampled = _middle_weights(len(values))
    if len(values) < 2:
        unknown = np.full(values.shape[1], np.nan)
        return own @ ordered, unknown, unknown
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(resampled @ ordered, [tail, 100.0 - tail], axis=0)
    return own @ ordered, low, high


@cache
def _middle_weights(runs: int) -> tuple[Array, Array]:
    """Weights of sorted runs in the mean of the middle half: of all, and of resamples of them."""
    cut = runs // 4
    own = np.zeros(runs)
    own[cut : runs - cut] = 1.0 / (runs - 2 * cut)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    ranks = np.sort(rng.integers(runs, size=(RESAMPLES, runs)), axis=1)[:, cut : runs - cut]
    resampled = np.zeros((RESAMPLES, runs))
    np.add.at(resampled, (np.arange(RESAMPLES)[:, None], ranks), 1.0 / ranks.shape[1])
    return own, resampled


# Single numbers, for claims -----------------------------------------------------------------


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of one number per run, shape (R,), with its confidence interval."""
    array = np.asarray(values, dtype=np.float64)
    mean, half = float(array.mean()), float(half_width(array))
    return Interval(mean, mean - half, mean + half)


def difference_interval(a: ArrayLike, b: ArrayLike) -> Interval:
    """Mean of a minus mean of b, for independent runs of unequal variance (Welch)."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    difference = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Interval(difference, math.nan, math.nan)
    parts = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
    variance = float(parts.sum())
    if variance == 0.0:
        return Interval(difference, difference, difference)
    freedom = variance**2 / float((parts**2 / [len(a) - 1, len(b) - 1]).sum())
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(variance)
    return Interval(difference, difference - half, difference + half)


def share_interval(successes: int, runs: int) -> Interval:
    """Share of runs in which something happened, with Wilson's interval."""
    bounds = stats.binomtest(successes, runs).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(successes / runs, float(bounds.low), float(bounds.high))
