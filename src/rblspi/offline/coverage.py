"""Coverage: in which states the data have narrowed the posterior, compared with the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.policies.values import LITTLE_KNOWN, narrowing

if TYPE_CHECKING:
    from rblspi.offline.lspi import BLSPI


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
    ratios = narrowing(estimator.posterior_, x, estimator.policy()(batch))
    return Coverage(float((ratios > threshold).mean()), ratios)
