"""The runs of a figure, read from the results store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Array
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Figure, Measure, canonical
from rblspi.experiments.results_store import ADVICE, Arrays, Record, Store, StoreError
from rblspi.experiments.summary import UNBOUNDED, Range, Summary, block_means, summarise
from rblspi.experiments.tasks import checkpoints, greedy_name

#: what is known of every episode of an online run, or of a block of them by its mean: the length,
#: the return, and whether it was shorter than the step limit
SERIES = ("length", "return", "under_limit")


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
        return {
            digest: self._summary(result)
            for digest, result in self.curves.items()
            if result.runs and result.curve.episodes
        }

    def _summary(self, result: CurveResult) -> Summary:
        block = self.figure.block_of(result.curve.episodes)
        require_block(result.curve, result.block, block)
        limits = possible(result.curve, self.figure.measure)
        entries = result.arrays[self.figure.measure]
        summary = summarise(entries, block // result.block, limits)
        return summary._replace(episodes=summary.episodes * result.block)

    @cached_property
    def greedy(self) -> dict[str, Summary]:
        """The same of the greedy policy, for curves whose runs were evaluated on the way."""
        found = {}
        for digest, result in self.curves.items():
            if result.runs and result.curve.evaluation:
                measure = self.figure.measure
                limits = possible(result.curve, measure)
                summary = summarise(result.arrays[greedy_name(measure)], 1, limits)
                episodes = np.array(checkpoints(result.curve.episodes), dtype=np.float64)
                found[digest] = summary._replace(episodes=episodes)
        return found


def possible(curve: Curve, measure: Measure) -> Range:
    """The range of a measure: an episode has at least one step and at most those of its limit."""
    if measure != "length":
        return UNBOUNDED
    return 1.0, _longest(curve.environment, canonical(dict(curve.arguments)))


@cache
def _longest(environment: str, arguments: str) -> float:
    """The step limit of an environment, whose arguments are given as JSON."""
    from rblspi.environments.base import step_limit
    from rblspi.environments.lookup import make

    limit = step_limit(make(environment, **json.loads(arguments)))
    return float(limit) if limit > 0 else math.inf


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
    by_seed = {
        record.seed: (record, arrays)
        for code in codes_to_read(store, curve, any_code)
        for record, arrays in store.runs(curve, code)
        if most is None or record.seed < most
    }
    runs = [by_seed[seed] for seed in sorted(by_seed)]
    records = tuple(record for record, _ in runs)
    present_code = all(record.code == present for record in records)
    for _, arrays in runs:
        if not _is_complete(curve, arrays):
            raise StoreError(
                f"{store.path}: a run of {curve.name} does not have what it should: {ADVICE}"
            )
    found = [arrays for _, arrays in runs]
    if not curve.episodes:
        tables = tuple(arrays["action_values"] for arrays in found)
        return CurveResult(curve, records, {}, tables, present_code)
    block = common_block(curve, (len(arrays["length"]) for arrays in found))
    return CurveResult(curve, records, _stacked(curve, found, block), (), present_code, block)


def codes_to_read(store: Store, curve: Curve, any_code: bool) -> list[str]:
    """The versions of the code whose runs of a curve are read; of a seed, the last one counts."""
    present = code_version(curve)
    codes = sorted(store.codes(curve), key=lambda code: code == present)  # the present version last
    return codes if any_code else codes[-1:]


def common_block(curve: Curve, entries: Iterable[int]) -> int:
    """Episodes in the shortest blocks that runs with so many entries have in common."""
    return math.lcm(*(curve.episodes // number for number in entries))


def require_block(curve: Curve, known: int, wanted: int) -> None:
    """Raise an error if means of so many episodes do not make blocks of the wanted length."""
    if wanted % known:
        raise StoreError(
            f"runs of {curve.name} are known by means of {known} episodes, of which no blocks of "
            f"{wanted} can be made: import a table of --export-episodes, or choose another --out"
        )


def _is_complete(curve: Curve, arrays: Arrays) -> bool:
    """Whether these are the arrays of a run: its episodes, means of all of them, or its tables."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if not curve.episodes:
        return shapes.keys() == {"action_values"}
    whole: dict[str, tuple[int, ...]] = dict.fromkeys(("length", "return"), (curve.episodes,))
    if curve.evaluation:
        places = (len(checkpoints(curve.episodes)),)
        whole |= {greedy_name("length"): places, greedy_name("return"): places}
        return shapes == whole
    entries = shapes.get("length", ())
    means = len(entries) == 1 and entries[0] > 0 and curve.episodes % entries[0] == 0
    return shapes == whole or (means and shapes == dict.fromkeys(SERIES, entries))


def _stacked(curve: Curve, found: Sequence[Arrays], block: int) -> Arrays:
    """The arrays of all runs, by means of so many episodes."""
    limit = possible(curve, "length")[1]
    rows: dict[str, list[NDArray[Any]]] = {}
    for arrays in found:
        known = {"under_limit": arrays["length"] < limit, **arrays}
        for name, array in known.items():
            if name in SERIES and len(array) > curve.episodes // block:
                array = block_means(array[None], block * len(array) // curve.episodes)[0]
            rows.setdefault(name, []).append(array)
    return {name: np.stack(each) for name, each in rows.items()}
