"""An estimate of a value, with an interval from the influence of every episode on it.

To first order an estimate is the true value plus a sum of independent terms, one for each episode:
its influences. Their variance is estimated by their spread, whatever the noise is like within an
episode.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from rblspi.core.types import Vector


class Estimate(NamedTuple):
    """What a policy is worth in its first states, by one method."""

    method: str
    mean: float  # nan if the method gives none
    low: float
    high: float
    effective: float = math.nan  # effective sample size
    size: int = 0  # the number of episodes or transitions of which this is a part
    unit: str = ""  # "episodes" or "transitions"
    note: str = ""  # what limits the estimate, in words

    @property
    def known(self) -> bool:
        """Whether there is an estimate."""
        return math.isfinite(self.mean)

    def noted(self, note: str) -> Estimate:
        """The same with another note."""
        return self._replace(note="; ".join(filter(None, [self.note, note])))


def estimate(
    method: str, mean: float, influences: Vector, confidence: float, weights: Vector
) -> Estimate:
    """An estimate with the interval of its influences; the weights are of transitions."""
    half, effective = half_width(influences, confidence), effective_size(weights)
    return Estimate(method, mean, mean - half, mean + half, effective, len(weights), "transitions")


def unknown(method: str, why: str) -> Estimate:
    """No estimate, because the method does not apply to these data."""
    return Estimate(method, math.nan, -math.inf, math.inf, note=why)


def standard_error(influences: Vector) -> float:
    """The standard deviation of a sum of independent influences; infinite if there is only one."""
    count = len(influences)
    return math.sqrt(count) * float(influences.std(ddof=1)) if count > 1 else math.inf


def reach(count: int, confidence: float) -> float:
    """Half of the interval in standard errors that are known from so many influences."""
    return float(stdtrit(max(count - 1, 1), 0.5 + confidence / 2.0))


def half_width(influences: Vector, confidence: float) -> float:
    """Half of the interval of a sum of independent influences; infinite if there is only one."""
    return reach(len(influences), confidence) * standard_error(influences)


def effective_size(weights: Vector) -> float:
    """Kish's effective sample size, (sum w)^2 / sum w^2: how many equal weights tell as much."""
    largest = float(np.abs(weights).max())
    if largest == 0.0:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / (scaled**2).sum())
