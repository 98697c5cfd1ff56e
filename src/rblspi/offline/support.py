"""Does a log contain what a policy would do? It can only speak for what it contains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.data.transitions import Transitions
from rblspi.offline.local_model import follow_in_model
from rblspi.offline.paths import Paths, first_states, follow
from rblspi.offline.problem import are_states
from rblspi.policies.given import PolicyFunction

GOOD, DOUBTFUL, BAD = WORDS = ("good", "doubtful", "bad")

#: effective rows: a mean of fewer than 40 is off by a sixth of a standard deviation, of 100 by 10%
FEW, SOME = 40.0, 100.0
#: shares of a value that may be missing; chosen on logs of three domains, see docs/offline.md
LITTLE, MUCH = 0.05, 0.15


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
    """Does the log contain what the policy would do? Findings without any basis.

    The policy is followed in the log from first observations, by default those of the log. What is
    beyond the log is the discounted share of the policy's future of which the log says nothing. In
    discrete states, each of which has to be known by its own rows, there is also the effective
    sample: with the discounted number of times w that each row is used by the paths, it is
    (sum w)^2 / sum w^2 rows.
    """
    firsts = first_states(log) if first_observations is None else first_observations
    return support_of(followed(policy, log, discount, firsts, seed), log)


def followed(
    policy: PolicyFunction, log: Transitions, discount: float, firsts: NDArray[Any], seed: int = 0
) -> Paths:
    """Follow a policy in a log: from row to row in discrete states, else in a local model."""
    if are_states(log.observations):
        return follow(policy, log, discount, seed, firsts)
    return follow_in_model(policy, log, discount, firsts)


def support_of(paths: Paths, log: Transitions) -> list[Finding]:
    """The findings from paths in a log."""
    advice = "log what this policy does, or stay closer to the log's own"
    rows = [("beyond the log", paths.beyond, word(paths.beyond, LITTLE, MUCH))]
    if are_states(log.observations):
        total, squares = paths.weights.sum(), np.square(paths.weights).sum()
        sample = float(total**2 / squares) if total else 0.0
        rows.insert(0, ("effective sample", sample, word(-sample, -SOME, -FEW)))
    return [Finding(*row, "" if row[2] == GOOD else advice) for row in rows]


def word(value: float, doubtful: float, bad: float) -> str:
    """The word for a value that should be small."""
    return GOOD if value <= doubtful else DOUBTFUL if value <= bad else BAD  # nan is bad


def worst(findings: list[Finding] | tuple[Finding, ...]) -> str:
    """The worst word of all findings."""
    return max((finding.word for finding in findings), key=WORDS.index)
