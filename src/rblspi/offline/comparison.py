"""Is a policy better than another, or than the one that logged the data? Estimated in pairs.

The difference of two values is estimated from the same transitions, so that what both have in
common cancels: every episode has one influence on the difference, its influence on the one value
less that on the other (see `linear_values`). As in `policy_value`, the largest change of the
difference in a finer basis is taken for the standard deviation of the error of the basis. What a
policy does that is not in the data lowers its value as far as the rewards of the log allow.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.features import BasisLike, as_basis
from rblspi.features.refinement import finer
from rblspi.offline.accumulation import Data
from rblspi.offline.episodes import Episodes, episodes_of
from rblspi.offline.linear_values import solve, sums, unsupported
from rblspi.policies.given import PolicyFunction

#: observations from which finer versions of a basis are made
SAMPLE = 2000


class Comparison(NamedTuple):
    """The value of a policy less that of a baseline, in this basis, from these data."""

    mean: float
    low: float  # from low to high: the interval for the requested confidence
    high: float
    value: float  # of the policy
    baseline: float  # the value of the baseline
    sampling_std: float  # of the difference, by the variation between episodes
    basis_std: float  # the largest change of the difference in a finer basis
    unsupported: float  # the share of the policy's value that has no data

    @property
    def deploy(self) -> bool:
        """Whether the policy is better, as far as one can tell."""
        return self.low > 0.0

    def __str__(self) -> str:
        """The difference, its interval and what follows."""
        verdict = "deploy" if self.deploy else "do not deploy: it may be no better"
        if self.high < 0.0:
            verdict = "do not deploy: it is worse"
        return (
            f"the policy is worth {self.mean:+.4g} (between {self.low:+.4g} and {self.high:+.4g}) "
            f"compared with {self.baseline:.4g}: {verdict}"
        )


class _Side(NamedTuple):
    """One of the two values."""

    value: float
    influences: Vector  # of all segments
    below: float  # how much lower, and higher, the value may be because data are missing
    above: float
    unsupported: float


def compare(
    policy: PolicyFunction,
    baseline: PolicyFunction | None,
    transitions: Data,
    basis: BasisLike,
    actions: int,
    *,
    discount: float = 0.99,
    first_observations: ArrayLike | None = None,
    confidence: float = 0.95,
    ridge: float = 0.01,
    observation_space: gym.Space[Any] | None = None,
) -> Comparison:
    """Estimate how much better a policy is than a baseline, from one log.

    The policy should come from other episodes than these. If it was learnt from the same ones, it
    is the best for their chance events too, and looks better than it is.

    Parameters
    ----------
    policy : callable
        Maps a batch of observations to actions.
    baseline : callable or None
        The same; None stands for the policy that logged the data, whatever it is.
    transitions, basis, actions, discount, first_observations, observation_space
        As for `policy_value`.
    confidence : float
        Of the interval, which is two-sided: a policy that is no better is deployed with at most
        half of the remaining probability.
    ridge : float
        As for `estimates`.
    """
    confidence, ridge = check.fraction("confidence", confidence), check.positive("ridge", ridge)
    settings = (actions, discount, first_observations)
    candidate = episodes_of(transitions, policy, basis, *settings, observation_space)
    log, space = candidate.log, candidate.problem.space

    def sides(mine: Episodes, basis: BasisLike) -> tuple[_Side, _Side]:
        theirs = mine.of_states()
        if baseline is not None:
            theirs = episodes_of(log, baseline, basis, *settings, space)
        return _side(mine, ridge), _side(theirs, ridge)

    mine, theirs = sides(candidate, basis)
    mean, influences = mine.value - theirs.value, mine.influences - theirs.influences
    sample = np.asarray(log.observations[:: math.ceil(log.size / SAMPLE)])
    others = (
        sides(episodes_of(log, policy, other, *settings, space), other)
        for other in finer(as_basis(basis), space, sample)
    )
    changes = (abs(one.value - other.value - mean) for one, other in others)
    basis_std, count = max(changes, default=0.0), len(influences)
    sampling_std = math.sqrt(count) * float(influences.std(ddof=1)) if count > 1 else math.inf
    half = math.hypot(sampling_std, basis_std)
    half *= float(stdtrit(max(count - 1, 1), 0.5 + confidence / 2.0))
    low, high = mean - half - mine.below - theirs.above, mean + half + mine.above + theirs.below
    stds = sampling_std, basis_std
    return Comparison(mean, low, high, mine.value, theirs.value, *stds, mine.unsupported)


def _side(episodes: Episodes, ridge: float) -> _Side:
    statistics = sums(episodes, np.ones(episodes.log.size))
    model, missing = solve(statistics, ridge), unsupported(episodes, statistics)
    below, above = (missing * room if missing else 0.0 for room in episodes.room)
    return _Side(model.value(episodes), model.influences(episodes), below, above, missing)
