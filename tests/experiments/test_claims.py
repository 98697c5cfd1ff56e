import math

import numpy as np
import pytest

from rblspi.experiments import paper
from rblspi.experiments.claims import (
    CLAIMS,
    OPTIMAL_CHAIN,
    Evidence,
    Finding,
    chain_differences,
    combine,
    improvements_needed,
    judge,
)
from rblspi.experiments.paper import FIGURES
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.store import Record
from rblspi.experiments.summary import Interval
from rblspi.report import chain

BY_ID = {claim.id: claim for claim in CLAIMS}


def evidence(lengths, returns=lambda curve: 0.0, runs=20, noise=1.0, tables=()):
    """Runs whose mean is a function of the curve, with noise between runs."""
    rng = np.random.default_rng(0)

    def result(curve):
        records = tuple(Record(i, i, "code", 1.0, 100, (), {}, "2026-01-01") for i in range(runs))
        shape = (runs, curve.episodes)
        arrays = {
            "length": lengths(curve) + noise * rng.normal(size=(runs, 1)) + np.zeros(shape),
            "return": returns(curve) + noise * rng.normal(size=(runs, 1)) + np.zeros(shape),
        }
        return CurveResult(curve, records, arrays, tables, True)

    figures = [
        FigureResult(figure, [result(curve) for curve in figure.curves])
        for figure in FIGURES.values()
    ]
    return Evidence(figures)


def verdict(claim, *arguments, **keywords):
    return judge(BY_ID[claim], evidence(*arguments, **keywords)).verdict


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((5, 4, 6), "does not hold"),
        ((5, 2, 8), "undecided"),
        ((1, 0, 2), "holds"),
        ((1, math.nan, math.nan), "undecided"),
    ],
)
def test_an_interval_is_on_one_side_of_the_line_or_on_neither(interval, expected):
    below = Finding("x", Interval(*interval), 3.0, above=False, runs=5)
    assert below.verdict == expected
    opposite = {"holds": "does not hold", "does not hold": "holds"}.get(expected, expected)
    assert below._replace(above=True).verdict == opposite


def test_one_finding_against_it_is_enough_and_all_have_to_hold():
    assert combine(["holds", "undecided", "does not hold"]) == "does not hold"
    assert combine(["holds", "undecided"]) == "undecided"
    assert combine(["holds", "holds"]) == "holds"
    assert combine([]) == "undecided"


@pytest.mark.parametrize(
    ("steps", "noise", "expected"),
    [(105, 1.0, "holds"), (115, 1.0, "does not hold"), (110.1, 5.0, "undecided")],
)
def test_under_110_steps(steps, noise, expected):
    assert verdict("car-1", lambda curve: steps, noise=noise) == expected
    assert verdict("sparse-1", lambda curve: steps, noise=noise) == expected


def test_only_the_best_alpha_counts_where_the_rule_says_so():
    def steps(curve):
        return 105.0 if curve.settings.get("prior_precision") == 0.01 else 300.0

    judgement = judge(BY_ID["car-1"], evidence(steps))
    assert judgement.verdict == "holds"
    assert [finding.counts for finding in judgement.findings] == [False, True, False, False]


def period(curve):
    every = curve.settings.get("update_every", 0)
    return 500 if every == "episode" else every


def test_small_periods():
    assert verdict("car-2", lambda curve: 100.0 + period(curve)) == "holds"
    assert verdict("car-2", lambda curve: 900.0 - period(curve)) == "does not hold"
    assert verdict("car-2", lambda curve: 100.0) == "undecided"
    returns = {"holds": lambda c: -period(c), "does not hold": period, "undecided": lambda c: 0.0}
    for expected, function in returns.items():
        assert verdict("puddle-3", lambda curve: 1.0, function) == expected


def test_small_periods_have_to_help_both_algorithms():
    def steps(curve):
        return 100.0 + period(curve) * (1 if curve.algorithm == "rblspi" else -0.1)

    assert verdict("car-2", steps) == "does not hold"


def test_reaching_the_goal():
    assert verdict("car-3", lambda curve: 200.0) == "holds"
    assert verdict("car-3", lambda curve: 500.0, noise=0.0) == "does not hold"


def test_never_is_refuted_by_one_run_and_confirmed_by_many_without():
    def one_run(curve):
        return (np.arange(100) == 17)[:, None] * 1.0

    assert verdict("sparse-2", lambda c: 500.0, one_run, runs=100, noise=0.0) == "does not hold"
    assert verdict("sparse-2", lambda c: 500.0, runs=100, noise=0.0) == "holds"
    assert verdict("sparse-2", lambda c: 500.0, runs=5, noise=0.0) == "undecided"


def test_comparisons_with_online_lspi():
    def better(by):
        return lambda curve: 200.0 - (by if curve.algorithm == "rblspi" else 0.0)

    assert verdict("car-6", better(50.0)) == "holds"
    assert verdict("car-6", better(-50.0)) == "does not hold"
    assert verdict("car-6", better(0.0), noise=20.0) == "undecided"


def test_pendulum():
    assert verdict("pendulum-1", lambda curve: 2950.0) == "holds"
    assert verdict("pendulum-4", lambda curve: 2950.0) == "does not hold"
    assert verdict("pendulum-4", lambda curve: 1500.0) == "holds"

    def by_settings(curve):
        settings = curve.settings
        return 10 * settings.get("noise_precision", 0) + 100 * settings.get("prior_precision", 0)

    assert verdict("pendulum-2", by_settings) == "holds"
    assert verdict("pendulum-2", lambda curve: -by_settings(curve)) == "does not hold"
    assert verdict("pendulum-3", lambda curve: 2900.0) == "holds"


def test_puddles():
    def returns(on, off, ours):
        def function(curve):
            if curve.algorithm == "rblspi":
                return ours
            return on if curve.settings.get("policy") == "on" else off

        return function

    steps = lambda curve: 20.0  # noqa: E731
    assert verdict("puddle-1", steps, returns(-27.0, -90.0, -25.0)) == "holds"
    assert verdict("puddle-1", steps, returns(-40.0, -90.0, -25.0)) == "does not hold"
    assert verdict("puddle-2", steps, returns(-27.0, -90.0, -25.0)) == "holds"
    assert verdict("puddle-2", steps, returns(-27.0, -30.0, -25.0)) == "does not hold"


def test_without_runs_nothing_is_decided():
    for claim in CLAIMS:
        judgement = judge(claim, Evidence([]))
        assert judgement.verdict == "undecided"
        assert "no runs yet" in judgement.note


def test_shorter_runs_decide_nothing_but_are_shown():
    judgement = judge(BY_ID["car-1"], evidence(lambda curve: 100.0), "short runs")
    assert judgement.verdict == "undecided"
    assert judgement.note == "short runs; so far it holds"
    assert judgement.findings[0].measured.mean == pytest.approx(100.0, abs=1.0)


def history(*policies):
    """Action values whose greedy policies are these."""
    return np.stack([np.eye(2)[list(policy)] for policy in policies])


LEFT = (0,) * 20
ALMOST = (*OPTIMAL_CHAIN[:-1], 0)


def test_improvements_are_counted_until_the_policy_stays_optimal():
    assert improvements_needed(history(OPTIMAL_CHAIN)) == 1
    assert improvements_needed(history(LEFT, OPTIMAL_CHAIN, OPTIMAL_CHAIN)) == 2
    assert improvements_needed(history(OPTIMAL_CHAIN, LEFT, OPTIMAL_CHAIN)) == 3
    assert improvements_needed(history(OPTIMAL_CHAIN, LEFT)) == math.inf


def test_a_converged_history_goes_on_as_it_ended():
    short, long = history(LEFT, OPTIMAL_CHAIN), history(LEFT, OPTIMAL_CHAIN, ALMOST)
    values, policies = chain_differences(1.1 * short, long)
    np.testing.assert_allclose(values, [0.1, 0.1, 0.1])
    np.testing.assert_allclose(policies, [1.0, 1.0, 0.95])


def test_the_chain():
    quickly = [history(LEFT, OPTIMAL_CHAIN)] * 100
    slowly = [history(*[LEFT] * 6, OPTIMAL_CHAIN)] * 100
    steps = lambda curve: 0.0  # noqa: E731
    assert verdict("chain-1", steps, tables=quickly) == "holds"
    assert verdict("chain-1", steps, tables=slowly) == "does not hold"
    assert verdict("chain-1", steps, tables=quickly[:3]) == "undecided"
    assert verdict("chain-2", steps, tables=quickly[:20]) == "holds"


def test_algorithms_are_compared_on_the_same_samples():
    """Of the sample sets 0, 2 and 0, 1, 2 the first and the last are shared."""
    same, other = history(LEFT, OPTIMAL_CHAIN), history(OPTIMAL_CHAIN, LEFT)
    results = []
    for curve, seeds in ((paper.BLSPI, (0, 2)), (paper.LSPI, (0, 1, 2))):
        records = tuple(Record(s, s, "c", 1.0, 1, (), {}, "") for s in seeds)
        tables = tuple(other if seed == 1 else same for seed in seeds)
        results.append(CurveResult(curve, records, {}, tables, True))
    figure = FigureResult(FIGURES["chain"], results)
    found = judge(BY_ID["chain-2"], Evidence([figure])).findings
    assert [finding.measured.mean for finding in found] == [0.0, 1.0]
    assert chain.typical_seed(results) in (0, 2)


def test_averages_over_curves_are_over_the_seeds_they_share():
    curves = [paper.rblspi(paper.CAR, 20, alpha, 0.1) for alpha in (0.001, 0.01)]
    results = []
    for curve, seeds in zip(curves, [(0, 1, 2), (1, 2, 5)], strict=True):
        records = tuple(Record(s, s, "c", 1.0, 1, (), {}, "") for s in seeds)
        values = np.array(seeds, float)[:, None] + np.zeros((3, 4))
        results.append(CurveResult(curve, records, {"length": values}, (), True))
    found = Evidence([FigureResult(FIGURES["main"], results)])
    means = found.common(curves, lambda curve: found.lengths(curve).mean(axis=1))
    np.testing.assert_array_equal(means, [1.0, 2.0])
