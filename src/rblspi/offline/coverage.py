"""Coverage: in which states the data have narrowed the posterior, compared with the prior."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.types import Array, Integers, Vector
from rblspi.model.posterior import Posterior

if TYPE_CHECKING:
    from rblspi.offline.blspi import BLSPI


#: where the standard deviation exceeds this share of the prior's, the data say little
THRESHOLD = 0.5


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


def coverage(estimator: BLSPI, observations: ArrayLike, threshold: float = THRESHOLD) -> Coverage:
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


def uniform_std(limits: tuple[float, float]) -> float:
    """Standard deviation of what may be anything between two limits; if they differ, that is."""
    least, most = limits
    return (most - least) / math.sqrt(12.0) if most > least else math.inf


def narrowing(
    posterior: Posterior,
    x: Array,
    actions: Integers,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Vector:
    """Posterior over prior standard deviation of Q(s, a): 1 where the data say nothing.

    Parameters
    ----------
    posterior : Posterior
    x : ndarray, shape (N, n)
        Features of the states.
    actions : ndarray of int, shape (N,)
    limits : (float, float)
        Between which values are known to be beforehand. The prior of the weights may be far wider.
    """
    _, std = posterior.predict(x)
    after = np.take_along_axis(std, np.asarray(actions)[:, None], axis=1)[:, 0]
    before = np.linalg.norm(x, axis=1) / np.sqrt(posterior.prior_precision)
    before = np.minimum(before, uniform_std(limits))
    # The level of all values, of which the prior says nothing, makes the ratio exceed 1.
    ratios: Vector = np.minimum(after / np.maximum(before, np.finfo(np.float64).tiny), 1.0)
    return ratios
