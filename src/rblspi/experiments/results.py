"""The runs of a figure, read from the results store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Array
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Figure
from rblspi.experiments.results_store import ADVICE, Record, Store, StoreError
from rblspi.experiments.summary import Summary, summarise


@dataclass(frozen=True)
class CurveResult:
    """The runs of one curve.

    Attributes
    ----------
    curve : Curve
    records : tuple of Record
        One for each run, in the order of seeds.
    arrays : dict of ndarray
        ``length`` and ``return`` of online runs, each of shape (R, E).
    tables : tuple of ndarray
        Action values of offline runs, each of shape (iterations, states, actions).
    present_code : bool
        Whether the installed version of the code made all the runs.
    """

    curve: Curve
    records: tuple[Record, ...]
    arrays: dict[str, NDArray[Any]]
    tables: tuple[Array, ...]
    present_code: bool

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
            digest: summarise(result.arrays[self.figure.measure], self.figure.block)
            for digest, result in self.curves.items()
            if result.runs and result.curve.episodes
        }


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
        record.seed: record
        for code in (codes if any_code else codes[-1:])
        for record in store.records(curve, code)
        if most is None or record.seed < most
    }
    records = tuple(by_seed[seed] for seed in sorted(by_seed))
    arrays: dict[str, NDArray[Any]] = {}
    tables: tuple[Array, ...] = ()
    if curve.episodes:
        for name in ("length", "return"):
            rows = [store.array(record, name) for record in records]
            if any(row.shape != (curve.episodes,) for row in rows):
                raise StoreError(
                    f"{store.path}: a run of {curve.name} does not have {curve.episodes} episodes: "
                    f"{ADVICE}"
                )
            arrays[name] = np.stack(rows) if rows else np.empty((0, curve.episodes))
    else:
        tables = tuple(store.array(record, "action_values") for record in records)
    present_code = all(record.code == present for record in records)
    return CurveResult(curve, records, arrays, tables, present_code)
