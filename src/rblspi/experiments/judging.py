"""Verdicts on claims: whether measurements support a statement.

A claim is judged by findings. A finding is a number with its 95% confidence interval and a line
that the number should be above or below. It holds if the whole interval is on the right side of the
line, does not hold if the whole interval is on the wrong side, and is undecided otherwise. A claim
holds if all its findings hold, and does not hold if one of them does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rblspi.core.intervals import Interval, difference_interval, mean_interval, share_interval
from rblspi.core.types import Array, Mask
from rblspi.experiments.definitions import Curve, Measure
from rblspi.experiments.results import CurveResult, FigureResult

Verdict = Literal["holds", "does not hold", "undecided"]
VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "undecided")


#: error rates of verdicts, in words
CHANCE = (
    "A claim whose n numbers are all at their lines is refuted by chance in up to n times 2.5% of "
    "cases, and a claim that is wrong is confirmed in 2.5% at most. Where a number is about the "
    "best of m settings, that one is chosen on the same runs, and chance is on its side in up to m "
    "times as many cases. Intervals of differences (Welch's) take runs as independent, although "
    "settings share their seeds."
)


class Missing(LookupError):
    """The stored runs do not suffice for a claim; the message says why."""


class Sample(NamedTuple):
    """One number per run, and the range in which such a number must lie."""

    values: Array
    least: float = -math.inf
    most: float = math.inf


class Finding(NamedTuple):
    """A measured number and the line that it should be above or below."""

    what: str
    measured: Interval
    line: float
    above: bool
    runs: int
    counts: bool = True  # whether the verdict depends on it
    clipped: bool = False  # whether the interval was cut where numbers become impossible

    @property
    def verdict(self) -> Verdict:
        """On which side of the line the interval lies."""
        _, low, high = self.measured
        if not (math.isfinite(low) and math.isfinite(high)):
            return "undecided"
        if low > self.line or high < self.line:
            return "holds" if (low > self.line) == self.above else "does not hold"
        return "undecided"

    def within(self, least: float, most: float) -> Finding:
        """The same finding with its interval cut to the numbers that are possible."""
        mean, low, high = self.measured
        cut = Interval(mean, max(low, least), min(high, most))
        return self._replace(measured=cut, clipped=low < least or high > most)

    @property
    def plain(self) -> dict[str, Any]:
        """The finding as data for JSON."""
        mean, *interval = rounded(self.measured)
        return {
            "what": self.what,
            "mean": mean,
            "interval": interval,
            "should_be": "above" if self.above else "below",
            "line": self.line,
            "runs": self.runs,
            "verdict": self.verdict,
            "counts": self.counts,
            "clipped": self.clipped,
        }


def rounded(interval: Interval) -> list[float | None]:
    """Mean and ends of an interval for JSON, which has no infinities, to six digits."""
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in interval]


@dataclass(frozen=True)
class Claim:
    """A statement that experiments can support or refute."""

    id: str
    figure: str  # id of the figure that shows it
    says: str
    judged_by: str  # the rule that turns numbers into a verdict, in words
    findings: Callable[[Evidence], Iterable[Finding]]  # the rule; raises `Missing` without runs
    episodes: int = 0  # episodes of a run that decide it; by default all of the figure


class Judgement(NamedTuple):
    """A claim, its verdict and the findings behind it."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    note: str

    @property
    def plain(self) -> dict[str, Any]:
        """The judgement as data for JSON."""
        return {
            "id": self.claim.id,
            "figure": self.claim.figure,
            "says": self.claim.says,
            "judged_by": self.claim.judged_by,
            "verdict": self.verdict,
            "note": self.note,
            "findings": [finding.plain for finding in self.findings],
        }


class Evidence:
    """The runs of several figures, found by their curve.

    ``instead`` maps the digest of a curve to the curve that was run in its place.
    """

    def __init__(
        self, figures: Iterable[FigureResult], instead: Mapping[str, Curve] | None = None
    ) -> None:
        self._results = {d: r for figure in figures for d, r in figure.curves.items()}
        self._instead = instead or {}

    def run_for(self, curve: Curve) -> Curve:
        """The curve that was run in place of this one, or this one."""
        return self._instead.get(curve.digest, curve)

    def of(self, curve: Curve) -> CurveResult:
        """The runs of a curve, or of the curve that was run in its place."""
        result = self._results.get(self.run_for(curve).digest)
        if result is None or not result.runs:
            raise Missing(f"no runs yet of {curve.name}")
        return result

    def mean(
        self,
        curve: Curve,
        measure: Measure | Literal["under_limit"] = "length",
        first: int = 0,
        stop: int | None = None,
    ) -> Array:
        """Mean over some episodes of every run, shape (R,).

        The episodes are those from ``first`` up to ``stop``, as in a slice. Where only means of
        blocks are known, they have to be whole blocks.
        """
        result = self.of(curve)
        episodes = result.curve.episodes
        start, end, _ = slice(first, stop).indices(episodes)
        if stop is not None and stop > episodes:
            raise Missing(f"runs of {curve.name} have {episodes} episodes, and not {stop}")
        if start % result.block or end % result.block:
            raise Missing(
                f"runs of {curve.name} are known by means of {result.block} episodes, which do not "
                f"tell episodes {start + 1} to {end}"
            )
        chosen = result.arrays[measure][:, start // result.block : end // result.block]
        return np.asarray(chosen.mean(axis=1, dtype=np.float64))

    def common(self, curves: Sequence[Curve], number: Callable[[Curve], Array]) -> Array:
        """One number per seed, averaged over curves, for the seeds that all curves have."""
        seeds = set.intersection(*(set(self.of(curve).seeds) for curve in curves))
        if not seeds:
            raise Missing(f"{curves[0].name} has no seed in common with other settings")
        rows = [number(curve)[[seed in seeds for seed in self.of(curve).seeds]] for curve in curves]
        return np.asarray(np.mean(rows, axis=0))


def judge(claim: Claim, evidence: Evidence, shortened: str = "") -> Judgement:
    """Judge a claim; ``shortened`` says why runs are too short to decide anything, if they are."""
    try:
        findings = tuple(claim.findings(evidence))
    except Missing as missing:
        return Judgement(claim, "undecided", (), str(missing))
    verdict = combine(finding.verdict for finding in findings if finding.counts)
    if not shortened:
        note = "the line is in the interval" if verdict == "undecided" else ""
        return Judgement(claim, verdict, findings, note)
    so_far = {"holds": "it holds", "does not hold": "it does not", "undecided": "it is open"}
    return Judgement(claim, "undecided", findings, f"{shortened}; so far {so_far[verdict]}")


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim: it holds if all findings hold, and one refuted finding refutes it."""
    found = set(verdicts)
    if "does not hold" in found:
        return "does not hold"
    return "undecided" if "undecided" in found or not found else "holds"


def counted(found: Mapping[str, Verdict]) -> str:
    """Count the readings of a claim by verdict."""
    numbers = {verdict: list(found.values()).count(verdict) for verdict in VERDICTS}
    return ", ".join(f"{verdict} under {n}" for verdict, n in numbers.items() if n)


# Findings of the common kinds -----------------------------------------------------------------


def below(what: str, sample: Sample, line: float, counts: bool = True) -> Finding:
    """The mean over runs is below a line."""
    values, least, most = sample
    finding = Finding(what, mean_interval(values), line, False, len(values), counts)
    return finding.within(least, most)


def above(what: str, sample: Sample, line: float, counts: bool = True) -> Finding:
    """The mean over runs is above a line."""
    return below(what, sample, line, counts)._replace(above=True)


def less(what: str, a: Sample, b: Sample) -> Finding:
    """The mean of the first sample is smaller than the mean of the second."""
    runs = min(len(a.values), len(b.values))
    finding = Finding(what, difference_interval(a.values, b.values), 0.0, False, runs)
    return finding.within(a.least - b.most, a.most - b.least)


def more(what: str, a: Sample, b: Sample, margin: float = 0.0) -> Finding:
    """The mean of the first sample is larger than the mean of the second minus a margin."""
    return less(what, a, b)._replace(line=0.0 - margin, above=True)


def share(what: str, happened: Mask, line: float, above: bool) -> Finding:
    """The share of runs in which something happened lies above, or below, a line."""
    interval = share_interval(int(happened.sum()), len(happened))
    return Finding(what, interval, line, above, len(happened))
