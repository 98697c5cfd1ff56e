"""Does a log contain what a policy would do? It can only speak for what it contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.influence import effective_size
from rblspi.offline.local_model import follow_in_model
from rblspi.offline.paths import Paths, first_states, follow
from rblspi.offline.problem import are_states
from rblspi.policies.given import PolicyFunction
from rblspi.policies.values import LITTLE_KNOWN

if TYPE_CHECKING:
    from rblspi.offline.lspi import BLSPI

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

    @classmethod
    def of(cls, name: str, value: float, word: str, advice: str) -> Self:
        """A finding with advice unless it is good."""
        return cls(name, value, word, "" if word == GOOD else advice)


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
    advice, found = "log what this policy does, or stay closer to the log's own", []
    if are_states(log.observations):
        sample = effective_size(paths.weights)
        found.append(Finding.of("effective sample", sample, word(-sample, -SOME, -FEW), advice))
    beyond = word(paths.beyond, LITTLE, MUCH)
    return [*found, Finding.of("beyond the log", paths.beyond, beyond, advice)]


def word(value: float, doubtful: float, bad: float) -> str:
    """The word for a value that should be small."""
    return GOOD if value <= doubtful else DOUBTFUL if value <= bad else BAD  # nan is bad


def worst(findings: list[Finding] | tuple[Finding, ...]) -> str:
    """The worst word of all findings."""
    return max((finding.word for finding in findings), key=WORDS.index)


# What the data say about states -----------------------------------------------------------------


class Coverage(NamedTuple):
    """How much the data say about the states that a policy visits.

    The ratios are the posterior standard deviation of Q(s, pi(s)) divided by that of the prior: 1
    where the data say nothing.
    """

    share: float  # of states in which the posterior is close to the prior
    ratios: Vector  # one for every state, (N,)

    def __str__(self) -> str:
        """The result in one sentence."""
        return (
            f"in {self.share:.1%} of {len(self.ratios):,} states the data say little about the "
            "action that the policy takes"
        )


def coverage(
    estimator: BLSPI, observations: ArrayLike, threshold: float = LITTLE_KNOWN
) -> Coverage:
    """Measure how much the data say about the values in these states.

    Parameters
    ----------
    estimator : BLSPI
        A fitted estimator.
    observations : array-like, shape (N, ...)
        States that its policy visits.
    threshold : float
        The posterior counts as close to the prior where its standard deviation exceeds this share
        of the prior's.
    """
    check.fraction("threshold", threshold)
    batch = np.asarray(observations)
    x = np.atleast_2d(estimator.features_(batch))
    std = estimator.posterior_.predict(x)[1][np.arange(len(x)), estimator.policy()(batch)]
    before = np.linalg.norm(x, axis=1) / np.sqrt(estimator.posterior_.prior_precision)
    # The level of all values, of which the prior says nothing, makes the ratio exceed 1.
    ratios = np.minimum(std / np.maximum(before, np.finfo(np.float64).tiny), 1.0)
    return Coverage(float((ratios > threshold).mean()), ratios)
