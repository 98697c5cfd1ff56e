"""The runs of a figure, read from the results store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Array
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Figure, Measure
from rblspi.experiments.results_store import ADVICE, Record, Store, StoreError
from rblspi.experiments.summary import UNBOUNDED, Range, Summary, summarise
from rblspi.experiments.tasks import checkpoints, greedy_name


@dataclass(frozen=True)
class CurveResult:
    """The runs of one curve."""

    curve: Curve
    records: tuple[Record, ...]  # one for each run, in the order of seeds
    arrays: dict[str, NDArray[Any]]  # length and return of online runs, each of shape (R, E)
    tables: tuple[Array, ...]  # of offline runs: action values, (iterations, states, actions)
    present_code: bool  # whether the installed version of the code made all the runs

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
        return {
            digest: summarise(
                result.arrays[self.figure.measure],
                self.figure.block_of(result.curve.episodes),
                possible(result.curve.environment, self.figure.measure),
            )
            for digest, result in self.curves.items()
            if result.runs and result.curve.episodes
        }

    @cached_property
    def greedy(self) -> dict[str, Summary]:
        """The same of the greedy policy, for curves whose runs were evaluated on the way."""
        found = {}
        for digest, result in self.curves.items():
            if result.runs and result.curve.evaluation:
                measure = self.figure.measure
                limits = possible(result.curve.environment, measure)
                summary = summarise(result.arrays[greedy_name(measure)], 1, limits)
                episodes = np.array(checkpoints(result.curve.episodes), dtype=np.float64)
                found[digest] = summary._replace(episodes=episodes)
        return found


@cache
def possible(environment: str, measure: Measure) -> Range:
    """The range of a measure: an episode has at least one step and at most those of its limit."""
    from rblspi.environments.base import step_limit
    from rblspi.environments.lookup import make

    if measure != "length":
        return UNBOUNDED
    limit = step_limit(make(environment))
    return 1.0, float(limit) if limit > 0 else math.inf


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
    present = code_version(curve)
    codes = sorted(store.codes(curve), key=lambda code: code == present)  # the present version last
    by_seed = {
        record.seed: (record, arrays)
        for code in (codes if any_code else codes[-1:])
        for record, arrays in store.runs(curve, code)
        if most is None or record.seed < most
    }
    runs = [by_seed[seed] for seed in sorted(by_seed)]
    records = tuple(record for record, _ in runs)
    present_code = all(record.code == present for record in records)
    shapes = _shapes(curve)
    names = tuple(shapes) or ("action_values",)
    for _, arrays in runs:
        wrong = any(arrays[n].shape != shapes[n] for n in names if n in arrays and n in shapes)
        if arrays.keys() != set(names) or wrong:
            raise StoreError(
                f"{store.path}: a run of {curve.name} does not have what it should: {ADVICE}"
            )
    rows = {name: [arrays[name] for _, arrays in runs] for name in names}
    if not curve.episodes:
        return CurveResult(curve, records, {}, tuple(rows["action_values"]), present_code)
    stacked = {
        name: np.stack(found) if found else np.empty((0, *shapes[name]))
        for name, found in rows.items()
    }
    return CurveResult(curve, records, stacked, (), present_code)


def _shapes(curve: Curve) -> dict[str, tuple[int, ...]]:
    """The shapes of what an online run stores, by name; none for an offline run."""
    if not curve.episodes:
        return {}
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("length", "return"), (curve.episodes,))
    if curve.evaluation:
        places = (len(checkpoints(curve.episodes)),)
        shapes |= {greedy_name("length"): places, greedy_name("return"): places}
    return shapes
