import math
from dataclasses import replace

import numpy as np
import pytest

from rblspi.core.intervals import Interval, mean_interval
from rblspi.experiments import judging
from rblspi.experiments.judging import Claim, Evidence, Finding, Sample, above, below, less
from rblspi.experiments.results import CurveResult, FigureResult
from tests.support.experiments import CURVES, FIGURE, invented, records


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
    assert judging.combine(["holds", "undecided", "does not hold"]) == "does not hold"
    assert judging.combine(["holds", "undecided"]) == "undecided"
    assert judging.combine(["holds", "holds"]) == "holds"
    assert judging.combine([]) == "undecided"


def steps(evidence):
    return Sample(evidence.mean(CURVES[0]))


CLAIM = Claim(
    "short-1",
    "small",
    "Episodes have fewer than 600 steps.",
    "The mean over all episodes is below 600.",
    lambda evidence: [below("steps", steps(evidence), 600.0)],
)


def test_a_claim_is_judged_by_its_findings():
    judgement = judging.judge(CLAIM, Evidence([invented(FIGURE)]))
    assert (judgement.verdict, judgement.note) == ("holds", "")
    assert judgement.plain["findings"][0]["should_be"] == "below"


def test_a_claim_that_runs_leave_undecided_says_why():
    line = float(np.mean(steps(Evidence([invented(FIGURE)])).values))
    claim = replace(CLAIM, findings=lambda evidence: [below("steps", steps(evidence), line)])
    judgement = judging.judge(claim, Evidence([invented(FIGURE)]))
    assert (judgement.verdict, judgement.note) == ("undecided", "the line is in the interval")


def test_a_claim_without_runs_is_undecided():
    judgement = judging.judge(CLAIM, Evidence([invented(FIGURE, runs=0)]))
    assert (judgement.verdict, judgement.findings) == ("undecided", ())
    assert CURVES[0].name in judgement.note


def test_averages_over_curves_are_over_the_seeds_they_share():
    curves = CURVES[:2]
    results = []
    for curve, seeds in zip(curves, [(0, 1, 2), (1, 2, 5)], strict=True):
        values = np.array(seeds, float)[:, None] + np.zeros((3, 4))
        results.append(CurveResult(curve, records(seeds), {"length": values}, (), True))
    found = Evidence([FigureResult(FIGURE, results)])
    means = found.common(curves, lambda curve: found.mean(curve))
    np.testing.assert_array_equal(means, [1.0, 2.0])


def test_an_interval_ends_where_numbers_become_impossible():
    """Student's t interval of two shares, 0 and 1, would reach from -5.9 to 6.9."""
    share = Sample(np.array([0.0, 1.0]), 0.0, 1.0)
    finding = above("share", share, 0.5)
    assert (finding.measured, finding.clipped) == ((0.5, 0.0, 1.0), True)
    assert finding.verdict == "undecided"
    difference = less("shares", share, share)
    assert (difference.measured, difference.clipped) == ((0.0, -1.0, 1.0), True)


def test_an_interval_of_possible_numbers_stays_as_it_is():
    values = np.array([0.4, 0.5, 0.6])
    finding = above("share", Sample(values, 0.0, 1.0), 0.5)
    assert (finding.measured, finding.clipped) == (mean_interval(values), False)
    one = below("share", Sample(values[:1], 0.0, 1.0), 0.5)
    assert (math.isnan(one.measured.low), one.clipped) == (True, False)
