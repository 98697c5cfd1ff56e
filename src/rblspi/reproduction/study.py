"""The claims under every reading: verdicts, what moves them most, and what to combine next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from rblspi.core.intervals import Interval, shift_interval
from rblspi.experiments.judging import (
    Claim,
    Evidence,
    Judgement,
    Verdict,
    in_words,
    judge,
)
from rblspi.experiments.results import CurveResult, FigureResult, read
from rblspi.experiments.results_store import Store
from rblspi.reproduction.design import Design, needed_by, parts
from rblspi.reproduction.readings import DEFAULT, Level, Reading, name_of

#: factors that are combined for a claim: half of all combinations of four are eight cells
MOST_COMBINED = 4


class Cell(NamedTuple):
    """A claim under a reading."""

    claim: Claim
    reading: Reading
    judgement: Judgement
    curves: tuple[str, ...]  # digests of what the claim is judged on
    own: bool  # whether these, or the rule, are others than under the default
    runs: int  # the fewest runs of a curve behind it

    @property
    def verdict(self) -> Verdict | None:
        """None where there is nothing to judge by: one run alone has no interval."""
        return self.judgement.verdict if self.runs > 1 and self.judgement.findings else None


class Shift(NamedTuple):
    """How far a reading moves a number that a claim is judged by."""

    reading: Reading
    place: int  # of the number among the findings
    what: str
    by: Interval
    among: int  # numbers of the claim, of which this one is moved most
    runs: int  # behind either number, at least

    @property
    def size(self) -> float:
        """In units of the distance to the end of the interval that is nearer to 0.

        The interval is widened for the choice among several numbers, as Bonferroni did: above 1, it
        does not contain 0. Degrees of freedom are those of the smaller sample, which is cautious.
        """
        from scipy.special import stdtrit

        mean, low, high = self.by
        distance = mean - low if mean > 0.0 else high - mean
        if mean == 0.0 or not math.isfinite(distance):
            return 0.0
        one, several = (stdtrit(self.runs - 1, 1.0 - 0.025 / n) for n in (1, self.among))
        return float(abs(mean) / distance * one / several) if distance > 0.0 else math.inf


@dataclass(frozen=True)
class Study:
    """A design with what its runs say."""

    design: Design
    results: tuple[FigureResult, ...]
    cells: dict[str, tuple[Cell, ...]]  # by claim, in the order of the readings
    combined: tuple[Study, ...] = ()  # one for every claim that several factors move

    def shifts(self, claim: str) -> list[Shift]:
        """How far each reading moves the numbers of a claim, the largest of its shifts."""
        default, *others = _distinct(self.cells[claim])
        found = []
        for cell in others:
            if cell.verdict is None or default.verdict is None:
                continue
            pairs = zip(cell.judgement.findings, default.judgement.findings, strict=True)
            decisive = [(i, *pair) for i, pair in enumerate(pairs) if any(f.counts for f in pair)]
            shifts = [
                Shift(
                    *(cell.reading, i, was.what),
                    *(shift_interval(now.measured, was.measured), len(decisive)),
                    min(now.runs, was.runs),
                )
                for i, now, was in decisive
            ]
            found.append(max(shifts, key=lambda shift: shift.size))
        return sorted(found, key=lambda shift: -shift.size)

    def moved_by(self, claim: str) -> list[Shift]:
        """The shifts by single factors whose interval excludes 0, the clearest first."""
        return [s for s in self.shifts(claim) if s.size > 1.0 and len(s.reading) == 1]

    def all_cells(self, claim: str) -> list[Cell]:
        """A claim under the default, readings that change something for it, and combinations.

        Of readings that come to the same for the claim, the first stands for all.
        """
        studies = (self, *(study for study in self.combined if claim in study.cells))
        return _distinct(cell for study in studies for cell in study.cells[claim])

    def verdicts(self, claim: str) -> dict[str, Verdict]:
        """Verdicts by reading, for all cells of a claim that have runs."""
        return {
            name_of(cell.reading): cell.verdict
            for cell in self.all_cells(claim)
            if cell.verdict is not None
        }

    @property
    def all_results(self) -> list[FigureResult]:
        """The runs of all readings, combinations included."""
        return [result for study in (self, *self.combined) for result in study.results]

    def sentences(self) -> Iterator[str]:
        """One line for each claim."""
        for claim in self.cells:
            yield f"{claim:12} {self.in_words(claim)}"

    def in_words(self, claim: str) -> str:
        """Under which readings a claim holds; combinations are counted."""
        judged, cells = self.verdicts(claim), self.all_cells(claim)
        alone = [name_of(cell.reading) for cell in cells if not self.combines(cell)]
        single = {name: judged[name] for name in alone if name in judged}
        return in_words(single, len(alone), {n: v for n, v in judged.items() if n not in alone})

    def combines(self, cell: Cell) -> bool:
        """Whether a cell belongs to a design that follows from this one."""
        return cell.reading not in self.design.readings


def _distinct(cells: Iterable[Cell]) -> list[Cell]:
    """The first of all cells that are judged by the same rule on the same curves."""
    found: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        found.setdefault((cell.claim.judged_by, *cell.curves), cell)
    return list(found.values())


def read_study(store: Store, design: Design) -> Study:
    """Read the runs of a design and of what follows from it, and judge the claims by them."""
    study = _read(store, design)
    return replace(study, combined=tuple(_read(store, more) for more in follow_ups(study)))


def _read(store: Store, design: Design) -> Study:
    results = tuple(read(store, figure, runs) for figure, runs in parts([design]))
    by_digest = {d: curve for result in results for d, curve in result.curves.items()}
    by_reading = [design.judged(reading) for reading in design.readings]
    cells = {
        claim.id: tuple(
            _cell(design, claim, as_read, reading, results, by_digest)
            for as_read, reading in zip(variants, design.readings, strict=True)
        )
        for claim, *variants in zip(design.judged(), *by_reading, strict=True)
    }
    return Study(design, results, cells)


def _cell(
    design: Design,
    default: Claim,
    claim: Claim,
    reading: Reading,
    results: tuple[FigureResult, ...],
    by_digest: Mapping[str, CurveResult],
) -> Cell:
    """A claim under a reading, which may change its rule."""
    needed = needed_by(claim)
    instead = {curve.digest: design.curve(reading, curve) for curve in needed}
    curves = tuple(curve.digest for curve in instead.values())
    own = claim.judged_by != default.judged_by or curves != tuple(
        design.curve(DEFAULT, curve).digest for curve in needed
    )
    runs = min(by_digest[digest].runs for digest in curves)
    return Cell(claim, reading, judge(claim, Evidence(results, instead)), curves, own, runs)


# Combinations -------------------------------------------------------------------------------------


def follow_ups(study: Study) -> list[Design]:
    """For every claim that several factors move, a design that combines the strongest of them.

    It has all combinations in which an even number of factors differ from the default, half of the
    full factorial design. With the single changes, which are there already, it shows for every pair
    of factors how far their joint effect is from the sum of the two.
    """
    found = []
    for claim in study.cells:
        levels = _strongest(study, claim)
        if len(levels) < 2:
            continue
        numbers = (1, *range(2, len(levels) + 1, 2))
        changed = [dict(chosen) for n in numbers for chosen in combinations(levels.items(), n)]
        found.append(replace(study.design, claims=(claim,), readings=(DEFAULT, *changed)))
    return found


def _strongest(study: Study, claim: str) -> dict[str, Level]:
    """The factors that move a claim, the strongest first, each at the level that moves it most."""
    levels: dict[str, Level] = {}
    for shift in study.moved_by(claim):
        for factor, level in shift.reading.items():
            if len(levels) < MOST_COMBINED:
                levels.setdefault(factor, level)
    return levels


def interaction(study: Study, claim: str, pair: Reading, place: int) -> Interval:
    """How far the effect of two changes is from the sum of their effects, on one number.

    y(a, b) - y(a) - y(b) + y(default)
    """
    cells = {name_of(cell.reading): cell for cell in study.cells[claim]}
    first, second = ({factor: level} for factor, level in pair.items())
    together, a, b, none = (
        cells[name_of(reading)].judgement.findings[place].measured
        for reading in (pair, first, second, DEFAULT)
    )
    return shift_interval(shift_interval(together, a), shift_interval(b, none))
