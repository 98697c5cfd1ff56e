"""What policies are worth, by averages over cells of the observations.

Averages over the transitions of a cell and an action are a contraction: repeating them converges
for every policy, whatever policy collected the data. Least squares in features that overlap has no
such guarantee. The price is the number of cells, which grows with the dimension.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Integers, Vector
from rblspi.data.transitions import Transitions
from rblspi.policies.given import PolicyFunction

#: transitions for every cell and action, and the fewest and the most bins of a dimension
ROWS_A_CELL, LEAST_BINS, MOST_BINS = 10, 8, 50
#: averages that are taken at most; enough for a discount of 0.999
REPETITIONS = 10_000


class Judge(NamedTuple):
    """Evaluates policies by averages over cells of the observations.

    Every dimension is cut into bins that hold as many observations each.
    """

    log: Transitions
    edges: list[Vector]  # of the bins of every dimension
    actions: int
    discount: float

    @classmethod
    def of(cls, log: Transitions, actions: int, discount: float) -> Judge:
        """Make the bins as narrow as the number of transitions allows."""
        columns = log.observations.reshape(log.size, -1).T
        bins = int((log.size / (ROWS_A_CELL * actions)) ** (1.0 / len(columns)))
        shares = np.arange(1, min(bins, MOST_BINS)) / min(max(bins, 1), MOST_BINS)
        return cls(log, [np.quantile(x, shares) for x in columns], actions, discount)

    @property
    def can_tell(self) -> bool:
        """Whether the bins are narrow enough."""
        return all(len(edges) + 1 >= LEAST_BINS for edges in self.edges)

    def value(self, policy: PolicyFunction) -> float:
        """The mean value of a policy in the first states of the episodes."""
        log = self.log
        values = self._values(np.asarray(policy(log.next_observations)))
        firsts = log.observations[log.starts()]
        return float(values[self._places(firsts, np.asarray(policy(firsts)))].mean())

    def _places(self, observations: NDArray[Any], actions: Integers) -> Integers:
        """The number of the cell and action."""
        place = np.zeros(len(observations), np.int64)
        for edges, x in zip(self.edges, observations.reshape(len(place), -1).T, strict=True):
            place = place * (len(edges) + 1) + np.searchsorted(edges, x)
        return place * self.actions + actions

    def _values(self, ahead: Integers) -> Vector:
        """The values of every cell and action under a policy with these actions in the next states.

        Where there are no transitions, the value is the lowest of all.
        """
        log = self.log
        here, after = (
            self._places(log.observations, log.actions),
            self._places(log.next_observations, ahead),
        )
        size = self.actions * int(np.prod([len(edges) + 1 for edges in self.edges]))
        count = np.bincount(here, minlength=size)
        values = np.zeros(size)
        discounts = log.discounts(self.discount)
        for _ in range(REPETITIONS):
            targets = log.rewards + discounts * np.where(log.terminated, 0.0, values[after])
            means = np.bincount(here, targets, size) / np.maximum(count, 1)
            means[count == 0] = means[count > 0].min()
            before, values = values, means
            if np.abs(values - before).max() <= 1e-3 * values.std():
                break
        return values
