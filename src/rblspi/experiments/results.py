"""The runs of a figure, read from the results store, and their learning curves.

Shapes: R runs, E episodes, B blocks of episodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.intervals import CONFIDENCE, half_width
from rblspi.core.types import Array
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Figure, Measure
from rblspi.experiments.results_store import Store, StoreError
from rblspi.experiments.tasks import (
    SERIES,
    Arrays,
    Record,
    checkpoints,
    greedy_name,
    longest_episode,
)

#: the smallest and the largest number that a measurement can be
Range = tuple[float, float]
UNBOUNDED: Range = (-math.inf, math.inf)

#: bootstrap resamples for the interval of an interquartile mean, and their seed
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


@dataclass(frozen=True)
class CurveResult:
    """The runs of one curve."""

    curve: Curve
    records: tuple[Record, ...]  # one for each run, in the order of seeds
    arrays: Arrays  # SERIES of online runs, each of shape (R, E / block)
    tables: tuple[Array, ...]  # of offline runs: action values, (iterations, states, actions)
    present_code: bool  # whether the installed version of the code made all the runs
    block: int = 1  # episodes behind an entry; more than 1 where runs were imported as means

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.records)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the runs, in order."""
        return tuple(record.seed for record in self.records)

    @property
    def tables_by_seed(self) -> dict[int, Array]:
        """Tables of offline runs by the seed of their samples."""
        return dict(zip(self.seeds, self.tables, strict=True))

    @property
    def seconds(self) -> float:
        """Processor time of all runs together."""
        return sum(record.seconds for record in self.records)

    @property
    def steps(self) -> int:
        """Number of transitions in all runs together."""
        return sum(record.steps for record in self.records)


class FigureResult:
    """A figure with the runs of its curves."""

    def __init__(self, figure: Figure, curves: Sequence[CurveResult]) -> None:
        self.figure = figure
        self.curves = {result.curve.digest: result for result in curves}

    def __getitem__(self, curve: Curve) -> CurveResult:
        return self.curves[curve.digest]

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Learning curves by digest, for online curves that have runs."""
        found = {}
        for digest, result in self.curves.items():
            if result.runs and result.curve.episodes:
                block = self.figure.block_of(result.curve.episodes)
                require_block(result.curve, result.block, block)
                summary = self._summary(result, self.figure.measure, block // result.block)
                found[digest] = summary._replace(episodes=summary.episodes * result.block)
        return found

    @cached_property
    def greedy(self) -> dict[str, Summary]:
        """Learning curves of the greedy policy, for curves with evaluations."""
        found = {}
        for digest, result in self.curves.items():
            if result.runs and result.curve.evaluation:
                summary = self._summary(result, greedy_name(self.figure.measure), 1)
                places = np.array(checkpoints(result.curve.episodes), dtype=np.float64)
                found[digest] = summary._replace(episodes=places)
        return found

    def _summary(self, result: CurveResult, name: str, block: int) -> Summary:
        limits = possible(result.curve, self.figure.measure)
        return summarise(result.arrays[name], block, limits)


def possible(curve: Curve, measure: Measure) -> Range:
    """The range of a measure: an episode has at least one step, and the step limit at most."""
    return (1.0, longest_episode(curve)) if measure == "length" else UNBOUNDED


def read(
    store: Store, figure: Figure, most: int | None = None, any_code: bool = False
) -> FigureResult:
    """Read the runs of a figure.

    Parameters
    ----------
    store : Store
    figure : Figure
    most : int, optional
        Read only runs whose seed is below this number.
    any_code : bool
        Whether a curve may mix runs of different versions of the code. Otherwise it has the runs
        of the present version or, if there are none, of the version that ran last.
    """
    curves = [_curve(store, curve, most, any_code) for curve in figure.curves]
    return FigureResult(figure, curves)


def _curve(store: Store, curve: Curve, most: int | None, any_code: bool) -> CurveResult:
    by_seed = {
        record.seed: (record, arrays)
        for code in codes_to_read(store, curve, any_code)
        for record, arrays in store.runs(curve, code)
        if most is None or record.seed < most
    }
    runs = [by_seed[seed] for seed in sorted(by_seed)]
    records = tuple(record for record, _ in runs)
    present = all(record.code == code_version(curve) for record in records)
    if not curve.episodes:
        tables = tuple(arrays["action_values"] for _, arrays in runs)
        return CurveResult(curve, records, {}, tables, present)
    block = math.lcm(*(record.block for record in records))
    rows: dict[str, list[Array]] = {}
    for record, arrays in runs:
        for name, array in arrays.items():
            if name in SERIES:
                array = block_means(array[None], block // record.block)[0]
            rows.setdefault(name, []).append(array)
    stacked = {name: np.stack(each) for name, each in rows.items()}
    return CurveResult(curve, records, stacked, (), present, block)


def codes_to_read(store: Store, curve: Curve, any_code: bool) -> list[str]:
    """The versions of the code whose runs of a curve are read; per seed, the last one counts."""
    present = code_version(curve)
    codes = sorted(store.codes(curve), key=lambda code: code == present)  # the present version last
    return codes if any_code else codes[-1:]


def require_block(curve: Curve, known: int, wanted: int) -> None:
    """Raise an error if means of so many episodes do not make blocks of the wanted length."""
    if wanted % known:
        raise StoreError(
            f"runs of {curve.name} are known by means of {known} episodes, of which no blocks of "
            f"{wanted} can be made: import a table with such blocks, or choose another --out"
        )


# Statistics over runs ---------------------------------------------------------------------------


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

    Percentiles and interquartile means lie among the runs, and so in the range ``possible``. The
    interval of the mean, by Student's t distribution, may exceed this range and is cut to it.
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
