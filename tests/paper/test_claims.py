import math

import numpy as np
import pytest

from rblspi.experiments.judging import Evidence, judge
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi_paper import chain
from rblspi_paper import figures as paper
from rblspi_paper.claims import CLAIMS, OPTIMAL_CHAIN, chain_differences, improvements_needed
from rblspi_paper.figures import FIGURES
from tests.support.experiments import records

BY_ID = {claim.id: claim for claim in CLAIMS}


def evidence(lengths, returns=lambda curve: 0.0, runs=20, noise=1.0, tables=()):
    """Runs whose mean is a function of the curve, with noise between runs."""
    rng = np.random.default_rng(0)

    def result(curve):
        shape = (runs, curve.episodes)
        length, returned = (
            mean(curve) + noise * rng.normal(size=(runs, 1)) + np.zeros(shape)
            for mean in (lengths, returns)
        )
        arrays = {"length": length, "return": returned, "under_limit": length < 500}
        return CurveResult(curve, records(range(runs)), arrays, tables, True)

    figures = [
        FigureResult(figure, [result(curve) for curve in figure.curves])
        for figure in FIGURES.values()
    ]
    return Evidence(figures)


def verdict(claim, *arguments, **keywords):
    return judge(BY_ID[claim], evidence(*arguments, **keywords)).verdict


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
            return on if curve.settings.get("on_policy") else off

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
        tables = tuple(other if seed == 1 else same for seed in seeds)
        results.append(CurveResult(curve, records(seeds), {}, tables, True))
    figure = FigureResult(FIGURES["chain"], results)
    found = judge(BY_ID["chain-2"], Evidence([figure])).findings
    assert [finding.measured.mean for finding in found] == [0.0, 1.0]
    assert chain.typical_seed(results) in (0, 2)


def test_histories_of_the_chain_that_never_get_there_have_no_number_of_improvements():
    wrong = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)[None]
    judgement = judge(BY_ID["chain-1"], evidence(lambda c: 1.0, runs=2, tables=(wrong, wrong)))
    assert judgement.verdict == "does not hold"
    assert [finding.runs for finding in judgement.findings] == [2, 2, 0, 0]
    assert all(np.isnan(finding.measured.mean) for finding in judgement.findings[2:])
