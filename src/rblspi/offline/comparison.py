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
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.features import BasisLike, as_basis
from rblspi.features.refinement import finer
from rblspi.offline.accumulation import Data
from rblspi.offline.episodes import Episodes, episodes_of
from rblspi.offline.influence import reach, standard_error
from rblspi.offline.linear_values import LinearValues, solve, sums, unsupported
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
    mine = episodes_of(
        transitions, policy, basis, actions, discount, first_observations, observation_space
    )
    theirs = mine.of_states() if baseline is None else mine.under(baseline)
    (model, missing), (other, missing_there) = (_solved(side, ridge) for side in (mine, theirs))
    mean, influences = model.value - other.value, model.influences() - other.influences()
    sampling_std, basis_std = standard_error(influences), 0.0
    sample = mine.log.observations[:: math.ceil(mine.log.size / SAMPLE)]
    for finer_basis in finer(as_basis(basis), mine.problem.space, sample):
        one, two = (_solved(side.in_basis(finer_basis), ridge)[0] for side in (mine, theirs))
        basis_std = max(basis_std, abs(one.value - two.value - mean))
    half = reach(len(influences), confidence) * math.hypot(sampling_std, basis_std)
    low, high = mine.widened(mean - half, mean + half, missing)
    least, greatest = theirs.widened(-high, -low, missing_there)
    return Comparison(
        mean=mean,
        low=-greatest,
        high=-least,
        value=model.value,
        baseline=other.value,
        sampling_std=sampling_std,
        basis_std=basis_std,
        unsupported=missing,
    )


def _solved(episodes: Episodes, ridge: float) -> tuple[LinearValues, float]:
    """The values of one policy, and the share of them that has no data."""
    statistics = sums(episodes)
    return solve(episodes, statistics, ridge), unsupported(episodes, statistics)
