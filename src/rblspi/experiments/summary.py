"""Statistics over runs: arrays in, arrays out.

Shapes: R runs, E episodes, B blocks of episodes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.intervals import CONFIDENCE, half_width
from rblspi.core.types import Array

#: the smallest and the largest number that a measurement can be
Range = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)

#: bootstrap resamples for the interval of an interquartile mean, and the seed they are drawn with
RESAMPLES = 2000
BOOTSTRAP_SEED = 0


class Summary(NamedTuple):
    """A learning curve averaged over runs; every array has shape (B,)."""

    runs: int
    episodes: Array  # number of the last episode in each block
    mean: Array
    low: Array  # 95% confidence interval of the mean, cut where numbers become impossible
    high: Array
    percentile_5: Array  # over runs
    percentile_95: Array
    iqm: Array  # interquartile mean
    iqm_low: Array  # its 95% bootstrap interval
    iqm_high: Array
    clipped: Array  # 1 where the interval of the mean was cut, else 0


def block_means(values: ArrayLike, block: int) -> Array:
    """Average over blocks of episodes, from shape (R, E) to (R, B).

    Episodes after the last whole block are dropped. Fewer episodes than a block make one block.
    """
    array = np.asarray(values, dtype=np.float64)
    runs, episodes = array.shape
    block = min(block, episodes)
    blocks = episodes // block
    return np.asarray(array[:, : blocks * block].reshape(runs, blocks, block).mean(axis=2))


def summarise(values: ArrayLike, block: int, possible: Range = UNBOUNDED) -> Summary:
    """Summarise the episodes of many runs, shape (R, E), by means and by interquartile means.

    Percentiles and interquartile means lie among the runs, and so within what is ``possible``. The
    interval of the mean, by Student's t distribution, may reach beyond it and is cut there.
    """
    array = np.asarray(values, dtype=np.float64)
    means = block_means(array, block)
    runs, blocks = means.shape
    mean = means.mean(axis=0)
    half = half_width(means)
    low, high = mean - half, mean + half
    return Summary(
        runs,
        np.minimum(block * np.arange(1, blocks + 1), array.shape[1]).astype(np.float64),
        mean,
        np.maximum(low, possible[0]),
        np.minimum(high, possible[1]),
        *_percentiles(means, 5.0),
        *interquartile_mean(means),
        ((low < possible[0]) | (high > possible[1])).astype(np.float64),
    )


def interquartile_mean(values: Array) -> tuple[Array, Array, Array]:
    """Mean of the middle half of the runs, from shape (R, B) to (B,), and its bootstrap interval.

    Resampling runs and sorting them is the same as drawing ranks and sorting the ranks. A resample
    is therefore a row of weights on the sorted runs, which all blocks share.
    """
    ordered = np.sort(values, axis=0)
    own, resampled = _middle_weights(len(values))
    if len(values) < 2:
        unknown = np.full(values.shape[1], np.nan)
        return own @ ordered, unknown, unknown
    return own @ ordered, *_percentiles(resampled @ ordered, 50.0 * (1.0 - CONFIDENCE))


def _percentiles(values: Array, tail: float) -> tuple[Array, Array]:
    low, high = np.percentile(values, [tail, 100.0 - tail], axis=0)
    return low, high


@cache
def _middle_weights(runs: int) -> tuple[Array, Array]:
    """Weights of sorted runs in the interquartile mean: of all runs, and of each resample."""
    cut = runs // 4
    own = np.zeros(runs)
    own[cut : runs - cut] = 1.0 / (runs - 2 * cut)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    ranks = np.sort(rng.integers(runs, size=(RESAMPLES, runs)), axis=1)[:, cut : runs - cut]
    resampled = np.zeros((RESAMPLES, runs))
    np.add.at(resampled, (np.arange(RESAMPLES)[:, None], ranks), 1.0 / ranks.shape[1])
    return own, resampled
