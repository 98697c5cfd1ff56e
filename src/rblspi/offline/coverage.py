"""Coverage: in which states the data have narrowed the posterior, compared with the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.types import Vector

if TYPE_CHECKING:
    from rblspi.offline.blspi import BLSPI


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


def coverage(estimator: BLSPI, observations: ArrayLike, threshold: float = 0.5) -> Coverage:
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
    _, std = estimator.predict(batch, estimator.act(batch), return_std=True)
    before = np.linalg.norm(estimator.features_(batch), axis=1) / np.sqrt(
        estimator.posterior_.prior_precision
    )
    # The level of all values, of which the prior says nothing, makes the ratio exceed 1.
    ratios: Vector = np.minimum(std / np.maximum(before, np.finfo(np.float64).tiny), 1.0)
    return Coverage(float((ratios > threshold).mean()), ratios)
