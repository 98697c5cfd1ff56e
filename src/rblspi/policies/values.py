"""What actions are worth: draws of value functions, and everything that is stated of them.

A policy acts by the mean of the draws. Means, deviations, intervals, gaps between actions and the
probability that an action is the best are statistics of the same draws, so that a policy acts as
it states. Errors of two actions in one state are correlated. A gap is therefore a difference within
one draw, and never follows from two intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from rblspi.core import check
from rblspi.core.intervals import CONFIDENCE
from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.model.posterior import Posterior

#: where a standard deviation exceeds this share of that of an unknown value, the data say little
LITTLE_KNOWN = 0.5
#: value functions that are drawn from a Gaussian: their standard deviation is known to 11%
DRAWS = 40
#: rankings behind a probability p, whose standard error is then at most 0.016
RANKINGS = 1000
#: numbers that are ranked at a time: 64 MB
AT_A_TIME = 2**23


class Draws(NamedTuple):
    """Value functions, relative to their mean, which is the one that a policy acts by.

    Attributes
    ----------
    deviations : ndarray of float32, shape (B, actions, n)
        Weights of every draw less those of the policy.
    common : ndarray of float32, shape (n,)
        Weights of the standard deviation of an error that all draws and all actions share.
    unknown : float
        Standard deviation of a value of which nothing is known.
    """

    deviations: NDArray[np.float32]
    common: NDArray[np.float32]
    unknown: float

    @classmethod
    def around(cls, weights: Array, unknown: float, common: Vector | None = None) -> Draws:
        """Draws from their weights, shape (B, actions, n), without the mean."""
        deviations = weights - weights.mean(axis=0)
        common = np.zeros(weights.shape[2]) if common is None else common
        return cls(deviations.astype(np.float32), common.astype(np.float32), float(unknown))

    @classmethod
    def of_posterior(cls, posterior: Posterior) -> Draws:
        """Draws from N(m, S); of what is unknown, the prior knows as much."""
        sampled = posterior.sample(np.random.default_rng(0), DRAWS)
        weights = sampled.reshape(DRAWS, posterior.actions, -1)
        return cls.around(weights, posterior.prior_precision**-0.5)

    def little_known(self, values: ActionValues, actions: Integers) -> Mask:
        """Whether the data say little about an action in each state."""
        assert values.std is not None
        std = np.take_along_axis(values.std, np.asarray(actions)[:, None], axis=-1)[:, 0]
        little: Mask = std > LITTLE_KNOWN * self.unknown
        return little

    def at(self, x: Matrix, mean: Matrix) -> ActionValues:
        """The values at features of shape (N, n), whose means are given, (N, actions)."""
        count, actions = self.deviations.shape[:2]
        used = np.flatnonzero(x.any(axis=0)) if len(x) == 1 else slice(None)
        columns = x[:, used].astype(np.float32)
        apart = columns @ self.deviations[:, :, used].reshape(count * actions, -1).T
        drawn = mean + apart.reshape(-1, count, actions).transpose(1, 0, 2)
        return ActionValues(mean, drawn, (columns @ self.common[used]).astype(np.float64))


class ActionValues(NamedTuple):
    """Values of every action in one state, shape (actions,), or in a batch, (N, actions).

    Attributes
    ----------
    mean : ndarray
    draws : ndarray or None
        Shape (B, actions) or (B, N, actions). A draw is one value function, the same for all
        states and actions. None where there are none.
    common : ndarray or None
        Standard deviation of an error that all draws share, shape () or (N,).
    """

    mean: Array
    draws: Array | None = None
    common: Array | None = None

    def row(self, place: int) -> ActionValues:
        """The values in one state of a batch."""
        if self.draws is None or self.common is None:
            return ActionValues(self.mean[place])
        return ActionValues(self.mean[place], self.draws[:, place], self.common[place])

    @classmethod
    def joined(cls, parts: Sequence[ActionValues]) -> ActionValues:
        """One batch from several."""
        mean = np.concatenate([part.mean for part in parts])
        drawn = [(part.draws, part.common) for part in parts if part.draws is not None]
        if not drawn:
            return cls(mean)
        draws, common = zip(*drawn, strict=True)
        return cls(mean, np.concatenate(draws, axis=1), np.concatenate(common))

    @property
    def std(self) -> Array | None:
        """Standard deviation of the error of the mean, as the value of the policy."""
        if self.draws is None or self.common is None:
            return None
        std: Array = np.hypot(self.draws.std(axis=0, ddof=1), self.common[..., None])
        return std

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
        """The lower and the upper end of the interval of every value."""
        drawn = self._drawn()
        half = reach(len(drawn), confidence) * self.std
        return self.mean - half, self.mean + half

    def gap(self, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
        """The interval of how much better the action with the highest mean is than the next one.

        There is nothing to choose among fewer than two actions, and no gap.
        """
        drawn = self._drawn()
        order = np.argsort(-self.mean, axis=-1)[..., :2]
        mean = np.take_along_axis(self.mean, order, axis=-1)
        best = np.take_along_axis(drawn, order[None], axis=-1)
        half = reach(len(drawn), confidence) * (best[..., 0] - best[..., 1]).std(axis=0, ddof=1)
        middle = mean[..., 0] - mean[..., 1]
        return middle - half, middle + half

    def probability_best(self) -> Array:
        """How likely each action is the best one, in the shape of the mean.

        A ranking is that of one value function from Student's distribution with the mean and the
        covariance of the draws.
        """
        drawn = self._drawn()
        actions = self.mean.shape[-1]
        mean, apart = self.mean.reshape(-1, actions), drawn - self.mean
        apart = apart.reshape(len(drawn), -1, actions)
        weights, rows = _rankings(len(drawn)), max(1, AT_A_TIME // (RANKINGS * actions))
        found = np.empty_like(mean)
        for start in range(0, len(mean), rows):
            part = slice(start, start + rows)
            values = np.tensordot(weights, apart[:, part], axes=1) + mean[part]
            best = values.argmax(axis=2)
            found[part] = np.stack([(best == a).mean(axis=0) for a in range(actions)], axis=1)
        return found.reshape(self.mean.shape)

    def told_apart(self, confidence: float = CONFIDENCE) -> Mask:
        """Whether one action is the best with this probability."""
        likely: Array = self.probability_best().max(axis=-1)
        return likely >= check.fraction("confidence", confidence)

    def _drawn(self) -> Array:
        if self.draws is None:
            raise ValueError(
                "nothing is known of the errors of these values: learn first, or use an "
                "algorithm with a posterior"
            )
        return self.draws


def reach(count: int, confidence: Any) -> Any:
    """Half of the interval in standard deviations of so many draws: Student's, if they are few."""
    return stdtrit(count - 1, 0.5 + 0.5 * confidence) * math.sqrt(1.0 + 1.0 / count)


@lru_cache(maxsize=8)
def _rankings(count: int) -> Matrix:
    """Weights of the draws in every ranking, shape (rankings, B): the same at every call."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((RANKINGS, count))
    weights: Matrix = normal / np.sqrt(rng.chisquare(count - 1, (RANKINGS, 1)))
    return weights
