"""Does a log contain what a policy would do? It can only speak for what it contains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.data.transitions import Transitions
from rblspi.offline.paths import Paths, follow
from rblspi.policies.given import PolicyFunction

GOOD, DOUBTFUL, BAD = WORDS = ("good", "doubtful", "bad")

#: effective rows: a mean of fewer than 40 is off by a sixth of a standard deviation, of 100 by 10%
FEW, SOME = 40.0, 100.0
#: shares of extrapolated decisions: a usual row is extrapolated with 1%
SELDOM, OFTEN = 0.05, 0.2
#: mean distances of decisions from the log, in those of its own rows from one another
NEAR, FAR = 1.5, 2.0


class Finding(NamedTuple):
    """One reason to trust a policy or to doubt it."""

    name: str
    value: float
    word: str  # "good", "doubtful" or "bad"
    advice: str  # what to do; empty if it is good


def support(
    policy: PolicyFunction,
    log: Transitions,
    *,
    discount: float,
    first_observations: NDArray[Any] | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Does the log contain what the policy would do? Three findings, without any basis.

    The policy is followed in the log from first observations, by default those of the log, see
    `paths`. With the discounted number of times w that each row is used by the paths, the effective
    sample is (sum w)^2 / sum w^2 rows.
    """
    return support_of(follow(policy, log, discount, seed, first_observations))


def support_of(paths: Paths) -> list[Finding]:
    """The findings from paths in a log."""
    total, squares = paths.weights.sum(), np.square(paths.weights).sum()
    sample = float(total**2 / squares) if total else 0.0
    advice = "log what this policy does, or stay closer to the log's own"
    rows = [
        ("effective sample", sample, word(-sample, -SOME, -FEW)),
        ("extrapolated share", paths.extrapolated, word(paths.extrapolated, SELDOM, OFTEN)),
        ("distance from the log", paths.distance, word(paths.distance, NEAR, FAR)),
    ]
    return [Finding(*row, "" if row[2] == GOOD else advice) for row in rows]


def word(value: float, doubtful: float, bad: float) -> str:
    """The word for a value that should be small."""
    return GOOD if value <= doubtful else DOUBTFUL if value <= bad else BAD  # nan is bad


def worst(findings: list[Finding] | tuple[Finding, ...]) -> str:
    """The worst word of all findings."""
    return max((finding.word for finding in findings), key=WORDS.index)
