"""What the paper claims about its figures, and which measurements decide each claim.

Every claim stands above the function that measures it. The rules of `rblspi.experiments.judging`
turn what it finds into a verdict. They were written before the runs were made.

*Final* steps and returns are means over the last 100 episodes of a run. *Overall* ones are means
over all its episodes, which is the height of the learning curve. Where the paper says "better" or
"best" it does not say by which of them: claims that compare settings are judged by the overall ones
unless their scope says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from rblspi.core.intervals import Interval
from rblspi.core.types import Array
from rblspi.experiments.definitions import Curve, Measure
from rblspi.experiments.judging import (
    Claim,
    Evidence,
    Finding,
    Sample,
    above,
    below,
    less,
    more,
    share,
)
from rblspi.experiments.results import possible
from rblspi_paper import figures as paper
from rblspi_paper.figures import CAR, CART_POLE, PERIODS, PUDDLES, SPARSE_CAR, Domain, Period

#: episodes at the end of a run that count as its final performance
FINAL = 100
#: steps of a car that is always pushed in the direction of its velocity
PUSHED_ALONG = 119.4
#: the best mean return in the puddle world, by dynamic programming
BEST_PUDDLE_RETURN = -18.7
#: the optimal policy of the chain walk: left in the first half, right in the second
OPTIMAL_CHAIN = (0,) * 10 + (1,) * 10


Performance = Literal["overall", "final"]


@dataclass(frozen=True)
class Scope:
    """On how much of the paper a claim is judged: on all of it, or on less where runs are dear.

    ``performance`` is what settings are compared by.
    """

    periods: Mapping[str, tuple[Period, ...]] = field(default_factory=dict)  # by environment
    grids: tuple[int, ...] = (3, 5)  # of the pendulum
    performance: Performance = "overall"

    def periods_of(self, domain: Domain) -> tuple[Period, ...]:
        """The values of K in a domain, in order; all of them unless there is a choice."""
        return self.periods.get(domain.environment, PERIODS)

    def pendula(self) -> dict[str, Domain]:
        """The pendulum on every grid, by the grid's name."""
        return {f"{cells} × {cells}": paper.pendulum(cells) for cells in self.grids}


#: measures on what a scope comprises
Rule = Callable[[Evidence, Scope], Iterator[Finding]]
Key = TypeVar("Key")


#: all claims, as functions of the scope that they are judged on
_CLAIMS: list[Callable[[Scope], Claim]] = []


def claims_within(scope: Scope) -> list[Claim]:
    """All claims, each judged on what the scope comprises."""
    return [claim(scope) for claim in _CLAIMS]


def _claim(
    name: str, figure: str, says: str, judged_by: str, episodes: int = 0
) -> Callable[[Rule], Rule]:
    """Add a claim that is judged by the decorated function, from runs of so many episodes."""

    def add(rule: Rule) -> Rule:
        def within(scope: Scope) -> Claim:
            words = _in_words(judged_by, scope.performance)
            return Claim(
                name, figure, says, words, lambda evidence: rule(evidence, scope), episodes
            )

        _CLAIMS.append(within)
        return rule

    return add


def _in_words(rule: str, performance: Performance) -> str:
    """A rule that names the performance by which settings are compared."""
    return rule.replace("{Overall}", performance.capitalize()).replace("{overall}", performance)


def _final(evidence: Evidence, curve: Curve, measure: Measure = "length") -> Sample:
    """Mean over the final episodes, one number per seed."""
    return _mean_from(-FINAL, evidence, [curve], measure)


def _performance(
    evidence: Evidence, scope: Scope, *curves: Curve, measure: Measure = "length"
) -> Sample:
    """Mean over all episodes, or over the final ones, and over curves, one number per seed."""
    first = 0 if scope.performance == "overall" else -FINAL
    return _mean_from(first, evidence, curves, measure)


def _mean_from(first: int, evidence: Evidence, curves: Sequence[Curve], measure: Measure) -> Sample:
    means = evidence.common(curves, lambda curve: evidence.mean(curve, measure, first))
    return Sample(means, *possible(curves[0], measure))


def _grid(
    domain: Domain, periods: Sequence[Period], alphas: Sequence[float], betas: Sequence[float]
) -> list[Curve]:
    return [paper.rblspi(domain, k, a, b) for k in periods for a in alphas for b in betas]


def _k(period: Period) -> str:
    return "K = 500" if period == "episode" else f"K = {period}"


def _alpha(evidence: Evidence, curve: Curve) -> str:
    """The α of the runs, which under a reading may differ from the α of the figure."""
    return f"α = {evidence.run_for(curve).settings['prior_precision']:g}"


def _setting(evidence: Evidence, curve: Curve) -> str:
    beta = evidence.run_for(curve).settings["noise_precision"]
    return f"{_alpha(evidence, curve)}, β = {beta:g}"


def _best(samples: Mapping[Key, Sample], choose: Callable[..., Key]) -> Key:
    """The key of the sample with the lowest (``min``) or the highest mean (``max``)."""
    return choose(samples, key=lambda key: float(samples[key].values.mean()))


# Chain walk ----------------------------------------------------------------------------------


def improvements_needed(values: Array) -> float:
    """Policy improvements until the policy stays optimal; infinite if the last is not optimal.

    Parameters
    ----------
    values : ndarray, shape (iterations, states, actions)
    """
    optimal = (values.argmax(axis=2) == OPTIMAL_CHAIN).all(axis=1)
    if not optimal[-1]:
        return math.inf
    wrong = np.flatnonzero(~optimal)
    return float(wrong[-1] + 2) if len(wrong) else 1.0


@_claim(
    *("chain-1", "chain"),
    "From the same 5000 samples, BLSPI and LSPI both arrive at the optimal policy of the chain "
    "within six policy improvements.",
    "In more than 9 of 10 fresh sample sets, for either algorithm.",
)
def _chain_optimal(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    needed = {
        curve.label: np.array([improvements_needed(values) for values in evidence.of(curve).tables])
        for curve in (paper.BLSPI, paper.LSPI)
    }
    for name, numbers in needed.items():
        what = f"{name}: share of sample sets with the optimal policy within 6 improvements"
        yield share(what, numbers <= 6, 0.9, above=True)
    for name, numbers in needed.items():
        reached = Sample(numbers[np.isfinite(numbers)], least=1.0)
        what = f"{name}: improvements needed, where it gets there"
        if len(reached.values):
            yield below(what, reached, 6, counts=False)
        else:
            yield Finding(what, Interval(math.nan, math.nan, math.nan), 6, False, 0, counts=False)


def chain_differences(bayesian: Array, plain: Array) -> tuple[Array, Array]:
    """Compare two histories of policy iteration, iteration by iteration.

    The shorter history has converged, so its last values are repeated.

    Returns
    -------
    values : ndarray, shape (iterations,)
        Largest difference between values of a state, relative to the largest value.
    policies : ndarray, shape (iterations,)
        Share of states with the same improved policy.
    """
    length = max(len(bayesian), len(plain))
    a, b = (values[np.minimum(np.arange(length), len(values) - 1)] for values in (bayesian, plain))
    va, vb = a.max(axis=2), b.max(axis=2)
    difference = np.abs(va - vb).max(axis=1) / np.abs(vb).max(axis=1)
    return difference, (a.argmax(axis=2) == b.argmax(axis=2)).mean(axis=1)


@_claim(
    *("chain-2", "chain"),
    "Values and policies of BLSPI stay close to those of LSPI throughout.",
    "At the worst iteration, on average over sample sets: values differ by less than 5% of the "
    "largest, and the policies agree in more than 95% of the states. (In the paper's own figure, "
    "with other samples, values differ by 26% at the second iteration, and the policies agree in "
    "all states throughout.)",
)
def _chain_close(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    bayesian, plain = (evidence.of(c).tables_by_seed for c in (paper.BLSPI, paper.LSPI))
    seeds = sorted(bayesian.keys() & plain.keys())
    compared = [chain_differences(bayesian[seed], plain[seed]) for seed in seeds]
    yield below(
        "largest difference of values at any iteration, relative to the largest value",
        Sample(np.array([difference.max() for difference, _ in compared]), least=0.0),
        0.05,
    )
    yield above(
        "share of states with the same policy, at the worst iteration",
        Sample(np.array([agreement.min() for _, agreement in compared]), 0.0, 1.0),
        0.95,
    )


# Mountain cars -------------------------------------------------------------------------------

CARS = ((CAR, 0.1, "standard"), (SPARSE_CAR, 1000.0, "sparse"))
_UNDER_110 = "Final steps below 110 with the best α; the other α are shown beside it."


def _under_110(domain: Domain, beta: float) -> Rule:
    def findings(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
        curves = _grid(domain, [20], paper.CAR_ALPHAS, [beta])
        finals = {_alpha(evidence, curve): _final(evidence, curve) for curve in curves}
        best = _best(finals, min)
        for alpha, values in finals.items():
            yield below(f"final steps, K = 20, {alpha}", values, 110.0, alpha == best)

    return findings


_claim(
    *("car-1", "main"),
    "On the standard car, RBLSPI (K = 20, β = 0.1) comes to reach the goal in fewer than 110 "
    "steps on average.",
    _UNDER_110,
)(_under_110(CAR, 0.1))


@_claim(
    *("car-2", "mountain-car"),
    "The more often policies are improved, the better: small K is best, for RBLSPI and for online "
    "LSPI.",
    "{Overall} steps at K = 20 are below those at every larger K, for both algorithms (RBLSPI: "
    "β = 0.1, mean over α).",
)
def _small_period_car(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for period in scope.periods_of(CAR)[1:]:
        ours = [_grid(CAR, [k], paper.CAR_ALPHAS, [0.1]) for k in (20, period)]
        theirs = [[paper.online_lspi(CAR, k)] for k in (20, period)]
        for what, curves in (("RBLSPI", ours), ("online LSPI", theirs)):
            small, large = (_performance(evidence, scope, *group) for group in curves)
            yield less(
                f"{what}: {scope.performance} steps, K = 20 minus {_k(period)}", small, large
            )


@_claim(
    *("car-3", "main"),
    "Even when it improves its policy only at the end of an episode (K = 500), RBLSPI reaches the "
    "goal on both cars.",
    "More than half of the final episodes reach the goal, with every α.",
)
def _goal_at_end_of_episode(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for curve in _grid(domain, ["episode"], paper.CAR_ALPHAS, [beta]):
            reached = evidence.mean(curve, "under_limit", -FINAL)
            alpha = _alpha(evidence, curve)
            what = f"{name} car, K = 500, {alpha}: share of final episodes at the goal"
            yield above(what, Sample(reached, 0.0, 1.0), 0.5)


@_claim(
    *("car-4", "main"),
    "A lower α is preferable unless K = 500; still, policies are good whatever α is.",
    "For K below 500, {overall} steps are lower at the lowest α than at the highest; and at "
    f"K = 20, with every α, final steps are below the {PUSHED_ALONG} of always pushing along the "
    "velocity.",
)
def _low_alpha(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for period in scope.periods_of(domain):
            if period == "episode":
                continue
            low, *_, high = _grid(domain, [period], paper.CAR_ALPHAS, [beta])
            alphas = " minus ".join(_alpha(evidence, curve) for curve in (low, high))
            yield less(
                f"{name} car, {_k(period)}: {scope.performance} steps, {alphas}",
                _performance(evidence, scope, low),
                _performance(evidence, scope, high),
            )
    for domain, beta, name in CARS:
        for curve in _grid(domain, [20], paper.CAR_ALPHAS, [beta]):
            what = f"{name} car, K = 20, {_alpha(evidence, curve)}: final steps"
            yield below(what, _final(evidence, curve), PUSHED_ALONG)


def _best_beta(domain: Domain, better: float, worse: float) -> Rule:
    def findings(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
        every = scope.periods_of(domain)
        words = "all K" if every == PERIODS else " and ".join(map(_k, every))
        for periods, what in {(20,): "K = 20", every: words}.items():
            a, b = (
                _performance(evidence, scope, *_grid(domain, periods, paper.CAR_ALPHAS, [beta]))
                for beta in (better, worse)
            )
            yield less(
                f"{what}: {scope.performance} steps, β = {better:g} minus β = {worse:g}", a, b
            )

    return findings


_claim(
    *("car-5", "mountain-car"),
    "On the standard car β = 0.1 does best.",
    "{Overall} steps, mean over α, are lower at β = 0.1 than at β = 1, at K = 20 and over all K.",
)(_best_beta(CAR, 0.1, 1.0))


@_claim(
    *("car-6", "main"),
    "RBLSPI outperforms online LSPI on both cars.",
    "At every K, {overall} steps of RBLSPI with its best α are below those of online LSPI.",
)
def _beats_online_car(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for domain, beta, name in CARS:
        for period in scope.periods_of(domain):
            ours = {
                _alpha(evidence, curve): _performance(evidence, scope, curve)
                for curve in _grid(domain, [period], paper.CAR_ALPHAS, [beta])
            }
            best = _best(ours, min)
            yield less(
                f"{name} car, {_k(period)}: {scope.performance} steps, RBLSPI ({best}) minus "
                "online LSPI",
                ours[best],
                _performance(evidence, scope, paper.online_lspi(domain, period)),
            )


_claim(
    *("sparse-1", "main"),
    "On the sparse car, RBLSPI (K = 20, β = 1000) comes to reach the goal in fewer than 110 steps "
    "on average.",
    _UNDER_110,
)(_under_110(SPARSE_CAR, 1000.0))


@_claim(
    *("sparse-2", "sparse-mountain-car"),
    "On the sparse car online LSPI stays in the valley: no run ever reaches the goal.",
    "One run that reaches the goal is enough against it; if none does, it holds once fewer than "
    "5% can be expected to.",
)
def _online_stuck(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for period in scope.periods_of(SPARSE_CAR):
        # Every step is worth 0 but the one to the goal.
        reached = evidence.mean(paper.online_lspi(SPARSE_CAR, period), "return") > 0
        # One run refutes "never"; if there is none, Wilson's interval bounds how rare they are.
        line = 0.0 if reached.any() else 0.05
        yield share(f"{_k(period)}: share of runs that ever reach the goal", reached, line, False)


_claim(
    *("sparse-3", "sparse-mountain-car"),
    "The sparse car needs a high β.",
    "{Overall} steps, mean over α, are lower at β = 1000 than at β = 100, at K = 20 and over all "
    "K.",
)(_best_beta(SPARSE_CAR, 1000.0, 100.0))


# Inverted pendulum -----------------------------------------------------------------------------


@_claim(
    *("pendulum-1", "pendulum"),
    "RBLSPI ends with an optimal or nearly optimal policy for every α and β, on both grids.",
    "Final steps above 2700 of 3000 in all twelve settings.",
)
def _pendulum_always(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for grid, domain in scope.pendula().items():
        for curve in _grid(domain, [20], paper.ALPHAS, [1.0, 10.0]):
            what = f"{grid}, {_setting(evidence, curve)}: final steps"
            yield above(what, _final(evidence, curve), 2700.0)


@_claim(
    *("pendulum-2", "pendulum"),
    "β = 10 is much better than β = 1, and the high α = 0.1 is the best.",
    "On both grids, {overall} steps are higher at β = 10 (mean over α), and at α = 0.1 than at "
    "either other α (mean over β).",
)
def _pendulum_settings(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for grid, domain in scope.pendula().items():
        ten, one = (
            _performance(evidence, scope, *_grid(domain, [20], paper.ALPHAS, [beta]))
            for beta in (10.0, 1.0)
        )
        yield more(f"{grid}: {scope.performance} steps, β = 10 minus β = 1", ten, one)
        for alpha in paper.ALPHAS[:-1]:
            best, other = (
                _performance(evidence, scope, *_grid(domain, [20], [a], [1.0, 10.0]))
                for a in (0.1, alpha)
            )
            yield more(
                f"{grid}: {scope.performance} steps, α = 0.1 minus α = {alpha:g}", best, other
            )


@_claim(
    *("pendulum-3", "pendulum"),
    "With β = 10, RBLSPI balances for all 3000 steps after about 200 episodes.",
    "Above 2850 steps in episodes 201-300 with α = 0.1, on both grids; the other α are shown "
    "beside it.",
    episodes=300,
)
def _pendulum_soon(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for grid, domain in scope.pendula().items():
        for curve in _grid(domain, [20], paper.ALPHAS, [10.0]):
            early = evidence.mean(curve, "length", 200, 300)
            what = f"{grid}, {_setting(evidence, curve)}: steps in episodes 201-300"
            counts = curve.settings["prior_precision"] == 0.1
            steps = Sample(early, *possible(curve, "length"))
            yield above(what, steps, 2850.0, counts)


@_claim(
    *("pendulum-4", "pendulum"),
    "Online LSPI has not found the optimal policy even after 2000 episodes.",
    "Final steps below 2850, on both grids.",
)
def _pendulum_online(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for grid, domain in scope.pendula().items():
        final = _final(evidence, paper.online_lspi(domain, 20))
        yield below(f"{grid}, online LSPI: final steps", final, 2850.0)


# Cart pole ---------------------------------------------------------------------------------


@_claim(
    *("pole-1", "cart-pole"),
    "RBLSPI keeps the pole up for more than 480 of 500 steps.",
    "Final steps above 480 in the best setting; the others are shown beside it.",
)
def _pole_balances(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    curves = _grid(CART_POLE, [20], paper.ALPHAS, [0.1, 1.0])
    finals = {_setting(evidence, curve): _final(evidence, curve) for curve in curves}
    best = _best(finals, max)
    for setting, final in finals.items():
        yield above(f"{setting}: final steps", final, 480.0, setting == best)


@_claim(
    *("pole-2", "cart-pole"),
    "β = 0.1 is better than β = 1, and RBLSPI does better than online LSPI.",
    "{Overall} steps: β = 0.1 above β = 1, mean over α; and RBLSPI (β = 0.1, best α) above online "
    "LSPI.",
)
def _pole_settings(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    low, high = (_grid(CART_POLE, [20], paper.ALPHAS, [beta]) for beta in (0.1, 1.0))
    what = f"{scope.performance} steps, β = 0.1 minus β = 1"
    yield more(what, _performance(evidence, scope, *low), _performance(evidence, scope, *high))
    ours = {_setting(evidence, curve): _performance(evidence, scope, curve) for curve in low}
    best = _best(ours, max)
    yield more(
        f"{scope.performance} steps, RBLSPI ({best}) minus online LSPI",
        ours[best],
        _performance(evidence, scope, paper.online_lspi(CART_POLE, 20)),
    )


# Puddle world ------------------------------------------------------------------------------


@_claim(
    *("puddle-1", "puddle-world"),
    "In the puddle world, on-policy online LSPI is about as good as RBLSPI, or better.",
    "At every K, its final return is at most 5 below that of RBLSPI in its best setting.",
)
def _puddle_on_policy(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for period in scope.periods_of(PUDDLES):
        curves = _grid(PUDDLES, [period], paper.ALPHAS, [0.1, 1.0])
        finals = {_setting(evidence, curve): _final(evidence, curve, "return") for curve in curves}
        best = _best(finals, max)
        theirs = _final(evidence, paper.online_lspi(PUDDLES, period), "return")
        what = f"{_k(period)}: final return, on-policy minus RBLSPI ({best})"
        yield more(what, theirs, finals[best], margin=5.0)


@_claim(
    *("puddle-2", "puddle-world"),
    "Off-policy online LSPI stays poor, however long it learns.",
    f"At every K, its final return is below {2 * BEST_PUDDLE_RETURN:g}, twice the best possible "
    "loss, and below that of the on-policy variant.",
)
def _puddle_off_policy(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for period in scope.periods_of(PUDDLES):
        on, off = (
            _final(evidence, paper.online_lspi(PUDDLES, period, on_policy), "return")
            for on_policy in (True, False)
        )
        yield below(f"{_k(period)}: final return, off-policy", off, 2 * BEST_PUDDLE_RETURN)
        yield less(f"{_k(period)}: final return, off-policy minus on-policy", off, on)


@_claim(
    *("puddle-3", "puddle-world"),
    "Frequent policy improvements (small K) help RBLSPI in the puddle world.",
    "{Overall} return, mean over α and β, is higher at K = 20 than at every larger K.",
)
def _puddle_small_period(evidence: Evidence, scope: Scope) -> Iterator[Finding]:
    for period in scope.periods_of(PUDDLES)[1:]:
        small, large = (
            _performance(
                evidence, scope, *_grid(PUDDLES, [k], paper.ALPHAS, [0.1, 1.0]), measure="return"
            )
            for k in (20, period)
        )
        yield more(f"{scope.performance} return, K = 20 minus {_k(period)}", small, large)


#: all claims, judged on all of the paper
CLAIMS = claims_within(Scope())
