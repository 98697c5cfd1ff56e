"""What the paper says of its figures, and how each statement is judged.

A claim is a list of findings: a number, its 95% interval, and a line it should be on one side
of. A finding holds if the whole interval is on the right side, does not hold if the whole
interval is on the wrong side, and is undecided otherwise. A claim holds if all its findings do,
and does not hold if one of them does not. The rules were written before the runs were made.

*Final* steps or returns are those of the last 100 episodes of a run; *overall* ones are means
over all its episodes: the height of the learning curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.experiments import paper
from rblspi.experiments.definitions import Curve
from rblspi.experiments.paper import CAR, CART_POLE, PERIODS, PUDDLES, SPARSE_CAR, Domain, Period
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.summary import (
    Interval,
    difference_interval,
    mean_interval,
    share_interval,
)

Verdict = Literal["holds", "does not hold", "undecided"]
Array = NDArray[np.float64]

#: episodes at the end of a run that count as its final performance
FINAL = 100
#: steps of a car that is always pushed in the direction of its velocity
PUSHED_ALONG = 119.4
#: the best mean return in the puddle world, by dynamic programming
BEST_PUDDLE_RETURN = -18.7


class Missing(LookupError):
    """There are no runs yet of a curve that a claim needs."""


class Finding(NamedTuple):
    """One measured number and the line it should be above or below."""

    what: str
    measured: Interval
    line: float
    above: bool
    runs: int
    counts: bool = True  # whether the verdict depends on it

    @property
    def verdict(self) -> Verdict:
        """On which side of the line the interval lies."""
        _, low, high = self.measured
        if not (math.isfinite(low) and math.isfinite(high)):
            return "undecided"
        if low > self.line or (high < self.line):
            return "holds" if (low > self.line) == self.above else "does not hold"
        return "undecided"


class Judgement(NamedTuple):
    """A claim with what was measured."""

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    note: str

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "id": self.claim.id,
            "figure": self.claim.figure,
            "says": self.claim.says,
            "judged_by": self.claim.judged_by,
            "verdict": self.verdict,
            "note": self.note,
            "findings": [
                {
                    "what": finding.what,
                    "mean": _rounded(finding.measured.mean),
                    "interval": [_rounded(end) for end in finding.measured[1:]],
                    "should_be": "above" if finding.above else "below",
                    "line": finding.line,
                    "runs": finding.runs,
                    "verdict": finding.verdict,
                    "counts": finding.counts,
                }
                for finding in self.findings
            ],
        }


@dataclass(frozen=True)
class Claim:
    """A statement of the paper.

    Attributes
    ----------
    id : str
    figure : str
        Where the paper shows it.
    says : str
        The statement, in our words.
    judged_by : str
        The rule that turns numbers into a verdict.
    findings : callable
        From `Evidence` to findings; raises `Missing` where there are no runs.
    """

    id: str
    figure: str
    says: str
    judged_by: str
    findings: Callable[[Evidence], Iterable[Finding]]


class Evidence:
    """Runs by curve, whatever the figure, with the small questions that claims ask of them.

    Parameters
    ----------
    figures : iterable of FigureResult
    shortened : mapping
        By digest of the paper's curve, the curve that was run in its place.
    """

    def __init__(
        self, figures: Iterable[FigureResult], shortened: Mapping[str, Curve] | None = None
    ) -> None:
        self._results = {d: r for figure in figures for d, r in figure.curves.items()}
        self._shortened = shortened or {}

    def of(self, curve: Curve) -> CurveResult:
        """The runs of one of the paper's curves."""
        instead = self._shortened.get(curve.digest, curve)
        result = self._results.get(instead.digest)
        if result is None or not result.runs:
            raise Missing(curve.name)
        return result

    def lengths(self, curve: Curve) -> Array:
        """Steps of every episode, shape (R, E)."""
        return np.asarray(self.of(curve).arrays["length"], dtype=np.float64)

    def returns(self, curve: Curve) -> Array:
        """Returns of every episode, shape (R, E)."""
        return np.asarray(self.of(curve).arrays["return"], dtype=np.float64)

    def common(self, curves: Sequence[Curve], number: Callable[[Curve], Array]) -> Array:
        """One number per run, averaged over curves; of the seeds that all of them have."""
        seeds = set.intersection(*(set(self.of(curve).seeds) for curve in curves))
        if not seeds:
            raise Missing(f"runs with common seeds of {curves[0].name} and others")
        rows = [number(curve)[[seed in seeds for seed in self.of(curve).seeds]] for curve in curves]
        mean: Array = np.mean(rows, axis=0)
        return mean


def judge(claim: Claim, evidence: Evidence, shortened: str = "") -> Judgement:
    """Give a verdict.

    Parameters
    ----------
    claim : Claim
    evidence : Evidence
    shortened : str
        How the runs fall short of the paper's, if they do: then they decide nothing.
    """
    try:
        findings = tuple(claim.findings(evidence))
    except Missing as missing:
        return Judgement(claim, "undecided", (), f"no runs yet: {missing}")
    verdict = combine(finding.verdict for finding in findings if finding.counts)
    note = ""
    if shortened:
        so_far = {"holds": "it holds", "does not hold": "it does not", "undecided": "it is open"}
        note = f"{shortened}; so far {so_far[verdict]}"
        verdict = "undecided"
    return Judgement(claim, verdict, findings, note)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """All have to hold; one that does not is enough against."""
    found = set(verdicts)
    if "does not hold" in found:
        return "does not hold"
    return "undecided" if "undecided" in found or not found else "holds"


# Words that claims are made of ---------------------------------------------------------------


def below(what: str, values: Array, line: float, counts: bool = True) -> Finding:
    """The mean over runs is below a line."""
    return Finding(what, mean_interval(values), line, False, len(values), counts)


def above(what: str, values: Array, line: float, counts: bool = True) -> Finding:
    """The mean over runs is above a line."""
    return Finding(what, mean_interval(values), line, True, len(values), counts)


def less(what: str, a: Array, b: Array) -> Finding:
    """The first is smaller on average than the second."""
    return Finding(what, difference_interval(a, b), 0.0, False, min(len(a), len(b)))


def more(what: str, a: Array, b: Array, margin: float = 0.0) -> Finding:
    """The first is larger on average than the second, or smaller by no more than a margin."""
    return Finding(what, difference_interval(a, b), 0.0 - margin, True, min(len(a), len(b)))


def share(what: str, happened: NDArray[np.bool_], line: float, above: bool) -> Finding:
    """The share of runs in which something happened lies above, or below, a line."""
    interval = share_interval(int(happened.sum()), len(happened))
    return Finding(what, interval, line, above, len(happened))


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _k(period: Period) -> str:
    return "K = 500" if period == "episode" else f"K = {period}"


def _final_steps(evidence: Evidence, curve: Curve) -> Array:
    steps: Array = evidence.lengths(curve)[:, -FINAL:].mean(axis=1)
    return steps


def _final_return(evidence: Evidence, curve: Curve) -> Array:
    earned: Array = evidence.returns(curve)[:, -FINAL:].mean(axis=1)
    return earned


def _overall(evidence: Evidence, curves: Sequence[Curve], measure: str = "length") -> Array:
    """Mean over all episodes, and over curves, one number per seed."""
    return evidence.common(
        curves,
        lambda curve: np.asarray(evidence.of(curve).arrays[measure], np.float64).mean(axis=1),
    )


def _grid(
    domain: Domain, periods: Sequence[Period], alphas: Sequence[float], betas: Sequence[float]
) -> list[Curve]:
    return [paper.rblspi(domain, k, a, b) for k in periods for a in alphas for b in betas]


def _alpha(curve: Curve) -> str:
    return f"α = {curve.settings['prior_precision']:g}"


def _setting(curve: Curve) -> str:
    return f"{_alpha(curve)}, β = {curve.settings['noise_precision']:g}"


# Chain walk ----------------------------------------------------------------------------------

OPTIMAL_CHAIN = (0,) * 10 + (1,) * 10


def improvements_needed(values: Array) -> float:
    """Policy improvements until the policy is optimal and stays so; infinite if it never is.

    Parameters
    ----------
    values : ndarray, shape (iterations, states, actions)
    """
    optimal = (values.argmax(axis=2) == OPTIMAL_CHAIN).all(axis=1)
    if not optimal[-1]:
        return math.inf
    wrong = np.flatnonzero(~optimal)
    return float(wrong[-1] + 2) if len(wrong) else 1.0


def _chain_optimal(evidence: Evidence) -> Iterator[Finding]:
    for curve in (paper.BLSPI, paper.LSPI):
        needed = np.array([improvements_needed(values) for values in evidence.of(curve).tables])
        yield share(
            f"{curve.label}: share of sample sets with the optimal policy within 6 improvements",
            needed <= 6,
            0.9,
            above=True,
        )
        reached = needed[np.isfinite(needed)]
        if len(reached):
            yield below(
                f"{curve.label}: improvements needed, where it gets there", reached, 6, False
            )


def chain_differences(bayesian: Array, plain: Array) -> tuple[Array, Array]:
    """How far two histories of policy iteration are apart, over the iterations of the longer.

    The shorter one has converged: it would repeat its last values.

    Returns
    -------
    values : ndarray, shape (iterations,)
        Largest difference of a state's value, relative to the largest value.
    policies : ndarray, shape (iterations,)
        Share of states with the same improved policy.
    """
    length = max(len(bayesian), len(plain))
    a, b = (values[np.minimum(np.arange(length), len(values) - 1)] for values in (bayesian, plain))
    va, vb = a.max(axis=2), b.max(axis=2)
    difference = np.abs(va - vb).max(axis=1) / np.abs(vb).max(axis=1)
    return difference, (a.argmax(axis=2) == b.argmax(axis=2)).mean(axis=1)


def _chain_close(evidence: Evidence) -> Iterator[Finding]:
    bayesian, plain = (evidence.of(c).tables_by_seed for c in (paper.BLSPI, paper.LSPI))
    differences, agreements = [], []
    for seed in sorted(bayesian.keys() & plain.keys()):
        difference, agreement = chain_differences(bayesian[seed], plain[seed])
        differences.append(difference.max())
        agreements.append(agreement.min())
    yield below(
        "largest difference of values at any iteration, relative to the largest value",
        np.array(differences),
        0.05,
    )
    yield above(
        "share of states with the same policy, at the worst iteration", np.array(agreements), 0.95
    )


# Mountain cars -------------------------------------------------------------------------------


def _under_110(domain: Domain, beta: float) -> Callable[[Evidence], Iterator[Finding]]:
    def findings(evidence: Evidence) -> Iterator[Finding]:
        curves = _grid(domain, [20], paper.CAR_ALPHAS, [beta])
        finals = {_alpha(curve): _final_steps(evidence, curve) for curve in curves}
        best = min(finals, key=lambda alpha: float(finals[alpha].mean()))
        for alpha, values in finals.items():
            yield below(f"final steps, K = 20, {alpha}", values, 110.0, alpha == best)

    return findings


CARS = ((CAR, 0.1, "standard"), (SPARSE_CAR, 1000.0, "sparse"))


def _small_period_car(evidence: Evidence) -> Iterator[Finding]:
    for period in PERIODS[1:]:
        ours, theirs = (
            [_grid(CAR, [k], paper.CAR_ALPHAS, [0.1]) for k in (20, period)],
            [[paper.online_lspi(CAR, k)] for k in (20, period)],
        )
        for what, (small, large) in (("RBLSPI", ours), ("online LSPI", theirs)):
            yield less(
                f"{what}: overall steps, K = 20 minus {_k(period)}",
                _overall(evidence, small),
                _overall(evidence, large),
            )


def _goal_at_end_of_episode(evidence: Evidence) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for curve in _grid(domain, ["episode"], paper.CAR_ALPHAS, [beta]):
            reached = (evidence.lengths(curve)[:, -FINAL:] < 500).mean(axis=1)
            yield above(
                f"{name} car, K = 500, {_alpha(curve)}: share of final episodes at the goal",
                reached,
                0.5,
            )


def _low_alpha(evidence: Evidence) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for period in PERIODS[:-1]:
            low, high = (
                _overall(evidence, [paper.rblspi(domain, period, alpha, beta)])
                for alpha in (paper.CAR_ALPHAS[0], paper.CAR_ALPHAS[-1])
            )
            yield less(f"{name} car, {_k(period)}: overall steps, α = 0.001 minus α = 1", low, high)
    for domain, beta, name in CARS:
        for curve in _grid(domain, [20], paper.CAR_ALPHAS, [beta]):
            yield below(
                f"{name} car, K = 20, {_alpha(curve)}: final steps",
                _final_steps(evidence, curve),
                PUSHED_ALONG,
            )


def _best_beta(
    domain: Domain, better: float, worse: float
) -> Callable[[Evidence], Iterator[Finding]]:
    def findings(evidence: Evidence) -> Iterator[Finding]:
        for periods, what in (((20,), "K = 20"), (PERIODS, "all K")):
            a, b = (
                _overall(evidence, _grid(domain, periods, paper.CAR_ALPHAS, [beta]))
                for beta in (better, worse)
            )
            yield less(f"{what}: overall steps, β = {better:g} minus β = {worse:g}", a, b)

    return findings


def _beats_online_car(evidence: Evidence) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for period in PERIODS:
            curves = _grid(domain, [period], paper.CAR_ALPHAS, [beta])
            best = min(curves, key=lambda c: float(_overall(evidence, [c]).mean()))
            yield less(
                f"{name} car, {_k(period)}: overall steps, RBLSPI ({_alpha(best)}) minus online "
                "LSPI",
                _overall(evidence, [best]),
                _overall(evidence, [paper.online_lspi(domain, period)]),
            )


def _online_stuck(evidence: Evidence) -> Iterator[Finding]:
    for period in PERIODS:
        returns = evidence.returns(paper.online_lspi(SPARSE_CAR, period))
        reached = returns.max(axis=1) > 0
        # "Never" is refuted by one run; without any, Wilson's interval says how rare it is.
        found = share(f"{_k(period)}: share of runs that ever reach the goal", reached, 0.0, False)
        if not reached.any():
            found = found._replace(line=0.05)
        yield found


# Inverted pendulum -----------------------------------------------------------------------------


def _pendulum_always(evidence: Evidence) -> Iterator[Finding]:
    for cells in (3, 5):
        for curve in _grid(paper.pendulum(cells), [20], paper.ALPHAS, [1.0, 10.0]):
            yield above(
                f"{cells} × {cells}, {_setting(curve)}: final steps",
                _final_steps(evidence, curve),
                2700.0,
            )


def _pendulum_settings(evidence: Evidence) -> Iterator[Finding]:
    for cells in (3, 5):
        domain = paper.pendulum(cells)
        ten, one = (
            _overall(evidence, _grid(domain, [20], paper.ALPHAS, [beta])) for beta in (10.0, 1.0)
        )
        yield more(f"{cells} × {cells}: overall steps, β = 10 minus β = 1", ten, one)
        for alpha in paper.ALPHAS[:-1]:
            best, other = (
                _overall(evidence, _grid(domain, [20], [a], [1.0, 10.0])) for a in (0.1, alpha)
            )
            yield more(
                f"{cells} × {cells}: overall steps, α = 0.1 minus α = {alpha:g}", best, other
            )


def _pendulum_soon(evidence: Evidence) -> Iterator[Finding]:
    for cells in (3, 5):
        for curve in _grid(paper.pendulum(cells), [20], paper.ALPHAS, [10.0]):
            early = evidence.lengths(curve)[:, 200:300]
            if not early.size:
                raise Missing("episodes 201 to 300 of the pendulum")
            yield above(
                f"{cells} × {cells}, {_setting(curve)}: steps in episodes 201-300",
                early.mean(axis=1),
                2850.0,
                counts=curve.settings["prior_precision"] == 0.1,
            )


def _pendulum_online(evidence: Evidence) -> Iterator[Finding]:
    for cells in (3, 5):
        final = _final_steps(evidence, paper.online_lspi(paper.pendulum(cells), 20))
        yield below(f"{cells} × {cells}, online LSPI: final steps", final, 2850.0)


# Cart pole ---------------------------------------------------------------------------------


def _pole_balances(evidence: Evidence) -> Iterator[Finding]:
    curves = _grid(CART_POLE, [20], paper.ALPHAS, [0.1, 1.0])
    best = max(curves, key=lambda curve: float(_final_steps(evidence, curve).mean()))
    for curve in curves:
        final = _final_steps(evidence, curve)
        yield above(f"{_setting(curve)}: final steps", final, 480.0, curve is best)


def _pole_settings(evidence: Evidence) -> Iterator[Finding]:
    curves = {beta: _grid(CART_POLE, [20], paper.ALPHAS, [beta]) for beta in (0.1, 1.0)}
    yield more(
        "overall steps, β = 0.1 minus β = 1",
        _overall(evidence, curves[0.1]),
        _overall(evidence, curves[1.0]),
    )
    best = max(curves[0.1], key=lambda c: float(_overall(evidence, [c]).mean()))
    yield more(
        f"overall steps, RBLSPI ({_setting(best)}) minus online LSPI",
        _overall(evidence, [best]),
        _overall(evidence, [paper.online_lspi(CART_POLE, 20)]),
    )


# Puddle world ------------------------------------------------------------------------------


def _puddle_on_policy(evidence: Evidence) -> Iterator[Finding]:
    for period in PERIODS:
        curves = _grid(PUDDLES, [period], paper.ALPHAS, [0.1, 1.0])
        best = max(curves, key=lambda c: float(_final_return(evidence, c).mean()))
        yield more(
            f"{_k(period)}: final return, on-policy minus RBLSPI ({_setting(best)})",
            _final_return(evidence, paper.online_lspi(PUDDLES, period)),
            _final_return(evidence, best),
            margin=5.0,
        )


def _puddle_off_policy(evidence: Evidence) -> Iterator[Finding]:
    for period in PERIODS:
        on, off = (
            _final_return(evidence, paper.online_lspi(PUDDLES, period, policy))
            for policy in ("on", "off")
        )
        yield below(f"{_k(period)}: final return, off-policy", off, 2 * BEST_PUDDLE_RETURN)
        yield less(f"{_k(period)}: final return, off-policy minus on-policy", off, on)


def _puddle_small_period(evidence: Evidence) -> Iterator[Finding]:
    for period in PERIODS[1:]:
        small, large = (
            _overall(evidence, _grid(PUDDLES, [k], paper.ALPHAS, [0.1, 1.0]), "return")
            for k in (20, period)
        )
        yield more(f"overall return, K = 20 minus {_k(period)}", small, large)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "chain-1",
        "chain",
        "From the same 5000 samples, BLSPI and LSPI both arrive at the optimal policy of the "
        "chain within six policy improvements.",
        "In more than 9 of 10 fresh sample sets, for either algorithm.",
        _chain_optimal,
    ),
    Claim(
        "chain-2",
        "chain",
        "Values and policies of BLSPI stay close to those of LSPI throughout.",
        "At the worst iteration, on average over sample sets: values differ by less than 5% of "
        "the largest, and the policies agree in more than 95% of the states. (In the paper's own "
        "figure, with other samples, values differ by 26% at the second iteration, and the "
        "policies agree in all states throughout.)",
        _chain_close,
    ),
    Claim(
        "car-1",
        "main",
        "On the standard car, RBLSPI (K = 20, β = 0.1) comes to reach the goal in fewer than 110 "
        "steps on average.",
        "Final steps below 110 with the best α; the other α are shown beside it.",
        _under_110(CAR, 0.1),
    ),
    Claim(
        "car-2",
        "mountain-car",
        "The more often policies are improved, the better: small K is best, for RBLSPI and for "
        "online LSPI.",
        "Overall steps at K = 20 are below those at every larger K, for both algorithms (RBLSPI: "
        "β = 0.1, mean over α).",
        _small_period_car,
    ),
    Claim(
        "car-3",
        "main",
        "Even when it improves its policy only at the end of an episode (K = 500), RBLSPI reaches "
        "the goal on both cars.",
        "More than half of the final episodes reach the goal, with every α.",
        _goal_at_end_of_episode,
    ),
    Claim(
        "car-4",
        "main",
        "A lower α is preferable unless K = 500; still, policies are good whatever α is.",
        "For K below 500, overall steps are lower at α = 0.001 than at α = 1; and at K = 20, with "
        f"every α, final steps are below the {PUSHED_ALONG} of always pushing along the velocity.",
        _low_alpha,
    ),
    Claim(
        "car-5",
        "mountain-car",
        "On the standard car β = 0.1 does best.",
        "Overall steps, mean over α, are lower at β = 0.1 than at β = 1, at K = 20 and over all K.",
        _best_beta(CAR, 0.1, 1.0),
    ),
    Claim(
        "car-6",
        "main",
        "RBLSPI outperforms online LSPI on both cars.",
        "At every K, overall steps of RBLSPI with its best α are below those of online LSPI.",
        _beats_online_car,
    ),
    Claim(
        "sparse-1",
        "main",
        "On the sparse car, RBLSPI (K = 20, β = 1000) comes to reach the goal in fewer than 110 "
        "steps on average.",
        "Final steps below 110 with the best α; the other α are shown beside it.",
        _under_110(SPARSE_CAR, 1000.0),
    ),
    Claim(
        "sparse-2",
        "sparse-mountain-car",
        "On the sparse car online LSPI stays in the valley: no run ever reaches the goal.",
        "One run that reaches the goal is enough against it; if none does, it holds once fewer "
        "than 5% can be expected to.",
        _online_stuck,
    ),
    Claim(
        "sparse-3",
        "sparse-mountain-car",
        "The sparse car needs a high β.",
        "Overall steps, mean over α, are lower at β = 1000 than at β = 100, at K = 20 and over "
        "all K.",
        _best_beta(SPARSE_CAR, 1000.0, 100.0),
    ),
    Claim(
        "pendulum-1",
        "pendulum",
        "RBLSPI ends with an optimal or nearly optimal policy for every α and β, on both grids.",
        "Final steps above 2700 of 3000 in all twelve settings.",
        _pendulum_always,
    ),
    Claim(
        "pendulum-2",
        "pendulum",
        "β = 10 is much better than β = 1, and the high α = 0.1 is the best.",
        "On both grids, overall steps are higher at β = 10 (mean over α), and at α = 0.1 than at "
        "either other α (mean over β).",
        _pendulum_settings,
    ),
    Claim(
        "pendulum-3",
        "pendulum",
        "With β = 10, RBLSPI balances for all 3000 steps after about 200 episodes.",
        "Above 2850 steps in episodes 201-300 with α = 0.1, on both grids; the other α are shown "
        "beside it.",
        _pendulum_soon,
    ),
    Claim(
        "pendulum-4",
        "pendulum",
        "Online LSPI has not found the optimal policy even after 2000 episodes.",
        "Final steps below 2850, on both grids.",
        _pendulum_online,
    ),
    Claim(
        "pole-1",
        "cart-pole",
        "RBLSPI keeps the pole up for more than 480 of 500 steps.",
        "Final steps above 480 in the best setting; the others are shown beside it.",
        _pole_balances,
    ),
    Claim(
        "pole-2",
        "cart-pole",
        "β = 0.1 is better than β = 1, and RBLSPI does better than online LSPI.",
        "Overall steps: β = 0.1 above β = 1, mean over α; and RBLSPI (β = 0.1, best α) above "
        "online LSPI.",
        _pole_settings,
    ),
    Claim(
        "puddle-1",
        "puddle-world",
        "In the puddle world, on-policy online LSPI is about as good as RBLSPI, or better.",
        "At every K, its final return is at most 5 below that of RBLSPI in its best setting.",
        _puddle_on_policy,
    ),
    Claim(
        "puddle-2",
        "puddle-world",
        "Off-policy online LSPI stays poor, however long it learns.",
        f"At every K, its final return is below {2 * BEST_PUDDLE_RETURN:g}, twice the best "
        "possible loss, and below that of the on-policy variant.",
        _puddle_off_policy,
    ),
    Claim(
        "puddle-3",
        "puddle-world",
        "Frequent policy improvements (small K) help RBLSPI in the puddle world.",
        "Overall return, mean over α and β, is higher at K = 20 than at every larger K.",
        _puddle_small_period,
    ),
)
