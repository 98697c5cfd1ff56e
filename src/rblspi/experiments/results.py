"""The runs of a figure, read from the results store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rblspi.core.types import Array
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Figure, Measure
from rblspi.experiments.results_store import Store, StoreError
from rblspi.experiments.summary import UNBOUNDED, Range, Summary, block_means, summarise
from rblspi.experiments.tasks import (
    SERIES,
    Arrays,
    Record,
    checkpoints,
    greedy_name,
    longest_episode,
)


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
        """The same of the greedy policy, for curves whose runs were evaluated on the way."""
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
    """The range of a measure: an episode has at least one step and at most those of its limit."""
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
        Whether a curve may mix runs of different versions of the code. Otherwise it has those of
        the present version or, if there are none, of the version that ran last.
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
    """The versions of the code whose runs of a curve are read; of a seed, the last one counts."""
    present = code_version(curve)
    codes = sorted(store.codes(curve), key=lambda code: code == present)  # the present version last
    return codes if any_code else codes[-1:]


def require_block(curve: Curve, known: int, wanted: int) -> None:
    """Raise an error if means of so many episodes do not make blocks of the wanted length."""
    if wanted % known:
        raise StoreError(
            f"runs of {curve.name} are known by means of {known} episodes, of which no blocks of "
            f"{wanted} can be made: import a table of --export-episodes, or choose another --out"
        )
