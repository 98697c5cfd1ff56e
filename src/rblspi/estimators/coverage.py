"""Where the data say nothing: how near a posterior still is to its prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check

if TYPE_CHECKING:
    from rblspi.estimators.blspi import BLSPI

Vector = NDArray[np.float64]


class Coverage(NamedTuple):
    """How much the data tell of the states that a policy visits.

    Attributes
    ----------
    share : float
        Of the states, those in which the posterior is near the prior.
    ratios : ndarray, shape (N,)
        Standard deviation of Q(s, pi(s)) as a share of what it was before any data: 1 where the
        data say nothing.
    """

    share: float
    ratios: Vector

    def __str__(self) -> str:
        """One sentence."""
        return (
            f"in {self.share:.1%} of {len(self.ratios):,} states the data say little about the "
            "action that the policy takes"
        )


def coverage(estimator: BLSPI, observations: ArrayLike, threshold: float = 0.5) -> Coverage:
    """How much the data tell of the values in these states.

    Parameters
    ----------
    estimator : BLSPI
        Fitted.
    observations : array-like, shape (N, ...)
        States that its policy visits.
    threshold : float
        A posterior is near the prior where its standard deviation is above this share of the
        prior's.
    """
    check.fraction("threshold", threshold)
    batch = np.asarray(observations)
    _, std = estimator.predict(batch, estimator.act(batch), return_std=True)
    before = np.linalg.norm(estimator.features_(batch), axis=1) / np.sqrt(estimator.prior_precision)
    ratios: Vector = std / np.maximum(before, np.finfo(np.float64).tiny)
    return Coverage(float((ratios > threshold).mean()), ratios)
