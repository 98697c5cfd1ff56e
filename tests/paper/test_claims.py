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


def period(curve):
    every = curve.settings.get("update_every", 0)
    return 500 if every == "episode" else every


def by_period(ours, theirs):
    """Steps that grow with the period, by so much for RBLSPI and for online LSPI."""
    return lambda c: 900.0 + period(c) * (ours if c.algorithm == "rblspi" else theirs)


def better(by):
    return lambda curve: 200.0 - (by if curve.algorithm == "rblspi" else 0.0)


def precise(sign):
    def steps(curve):
        settings = curve.settings.get
        return sign * (10 * settings("noise_precision", 0) + 100 * settings("prior_precision", 0))

    return steps


def with_returns(on, off):
    """Returns of online LSPI on and off policy; those of RBLSPI are -25."""
    kinds = {True: on, False: off, None: off}
    return {
        "returns": lambda c: (
            -25.0 if c.algorithm == "rblspi" else kinds[c.settings.get("on_policy")]
        )
    }


def always(steps):
    return lambda curve: steps


FEW = always(20.0)


@pytest.mark.parametrize(
    ("claim", "steps", "given", "expected"),
    [
        ("car-1", always(105.0), {}, "holds"),
        ("car-1", always(115.0), {}, "does not hold"),
        ("car-1", always(110.1), {"noise": 5.0}, "undecided"),
        ("car-2", by_period(1.0, 1.0), {}, "holds"),
        ("car-2", by_period(-1.0, -1.0), {}, "does not hold"),
        ("car-2", by_period(1.0, -0.1), {}, "does not hold"),
        ("car-2", by_period(0.0, 0.0), {}, "undecided"),
        ("car-3", always(200.0), {}, "holds"),
        ("car-3", always(500.0), {"noise": 0.0}, "does not hold"),
        ("car-6", better(50.0), {}, "holds"),
        ("car-6", better(-50.0), {}, "does not hold"),
        ("car-6", better(0.0), {"noise": 20.0}, "undecided"),
        ("sparse-1", always(105.0), {}, "holds"),
        ("sparse-1", always(115.0), {}, "does not hold"),
        ("pendulum-1", always(2950.0), {}, "holds"),
        ("pendulum-2", precise(1), {}, "holds"),
        ("pendulum-2", precise(-1), {}, "does not hold"),
        ("pendulum-3", always(2900.0), {}, "holds"),
        ("pendulum-4", always(2950.0), {}, "does not hold"),
        ("pendulum-4", always(1500.0), {}, "holds"),
        ("puddle-1", FEW, with_returns(-27.0, -90.0), "holds"),
        ("puddle-1", FEW, with_returns(-40.0, -90.0), "does not hold"),
        ("puddle-2", FEW, with_returns(-27.0, -90.0), "holds"),
        ("puddle-2", FEW, with_returns(-27.0, -30.0), "does not hold"),
        ("puddle-3", FEW, {"returns": lambda c: -period(c)}, "holds"),
        ("puddle-3", FEW, {"returns": period}, "does not hold"),
        ("puddle-3", FEW, {}, "undecided"),
    ],
)
def test_a_verdict_follows_from_the_runs(claim, steps, given, expected):
    assert verdict(claim, steps, **given) == expected


def test_only_the_best_alpha_counts_where_the_rule_says_so():
    def steps(curve):
        return 105.0 if curve.settings.get("prior_precision") == 0.01 else 300.0

    judgement = judge(BY_ID["car-1"], evidence(steps))
    assert judgement.verdict == "holds"
    assert [finding.counts for finding in judgement.findings] == [False, True, False, False]


def test_never_is_refuted_by_one_run_and_confirmed_by_many_without():
    def one_run(curve):
        return (np.arange(100) == 17)[:, None] * 1.0

    assert verdict("sparse-2", always(500.0), one_run, runs=100, noise=0.0) == "does not hold"
    assert verdict("sparse-2", always(500.0), runs=100, noise=0.0) == "holds"
    assert verdict("sparse-2", always(500.0), runs=5, noise=0.0) == "undecided"


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
    steps = always(0.0)
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
