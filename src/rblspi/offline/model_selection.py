"""The basis and the ridge of a policy from logs, chosen by held-out episodes.

Every candidate finds a policy by fitted Q iteration on one half of the episodes, and a `Judge`
estimates the value of that policy from the other half; then the halves change places. The first
candidate is the default. Another one is taken only if its policy is worth more in both halves.

TD errors would not do as a criterion: they measure how well values are represented, not how good
the policy is, and contain the noise of the transitions. Where the data are too few for a `Judge`,
as they are in many dimensions, the default is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Integers, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import Basis, OneHot, RBFGrid, TileCoding
from rblspi.features.default import basis_over, table_basis
from rblspi.offline.accumulation import first_chunks, first_rows, halves, over_chunks
from rblspi.offline.fitted_q import fitted_q_iteration
from rblspi.offline.problem import Problem, are_states
from rblspi.policies.given import PolicyFunction

#: the default ridge of fitted Q iteration, relative to the mean diagonal element of the Gram matrix
RIDGE = 1e-4
#: the number of Gaussians and of tiles in the other candidates, with 1, 2, 3 dimensions
OTHERS = {1: (6, 50), 2: (6, 20), 3: (3, 10)}
#: standard deviations on either side of the mean that a basis covers
REACH = 3.0
#: transitions for every cell and action, and the fewest and the most bins of a dimension
ROWS_A_CELL, LEAST_BINS, MOST_BINS = 10, 8, 50
#: averages that are taken at most; enough for a discount of 0.999
REPETITIONS = 10_000


class Candidate(NamedTuple):
    """A basis and a ridge, and what its policies are worth in the half that was held out."""

    basis: Basis
    ridge: float
    values: tuple[float, ...] = ()  # empty if there was nothing to choose


class Selection(NamedTuple):
    """The choice of a basis and a ridge."""

    basis: Basis
    ridge: float
    candidates: list[Candidate]  # the first is the default


def select(
    chunks: Iterable[Transitions],
    actions: int,
    discount: float,
    space: gym.Space[Any] | None = None,
) -> Selection:
    """Choose a basis and a ridge for these transitions."""
    offered = candidates(chunks, space)
    log = first_rows(chunks)
    half = halves(log)
    default = Selection(offered[0].basis, offered[0].ridge, offered[:1])
    if len(offered) == 1 or not half.any():  # a single short episode has no other half
        return default
    parts = [log.select(~half), log.select(half)]
    judges = [Judge.of(held, actions, discount) for held in reversed(parts)]
    if not all(judge.can_tell for judge in judges):
        return default
    for place, candidate in enumerate(offered):
        policies = [_learnt(candidate, part, actions, discount) for part in parts]
        values = (judge.value(policy) for judge, policy in zip(judges, policies, strict=True))
        offered[place] = candidate._replace(values=tuple(values))
    of_default = np.array(offered[0].values)
    best = max(offered, key=lambda tried: float((np.array(tried.values) - of_default).min()))
    return Selection(best.basis, best.ridge, offered)


def _learnt(
    candidate: Candidate, log: Transitions, actions: int, discount: float
) -> PolicyFunction:
    """The policy that a candidate learns from a half of the log."""
    everywhere = gym.spaces.Box(-np.inf, np.inf, log.observations.shape[1:], np.float64)
    problem = Problem(candidate.basis.build(everywhere), everywhere, actions, discount)
    found = fitted_q_iteration(problem, [log], candidate.ridge, 300, 3e-3)
    return problem.greedy_function(found.weights)


# The bases that are compared ----------------------------------------------------------------------


def candidates(chunks: Iterable[Transitions], space: gym.Space[Any] | None) -> list[Candidate]:
    """The bases that are compared; the first is the default."""
    first = first_chunks(chunks, 1)[0]
    table = OneHot() if space is None and are_states(first.observations) else None
    if space is not None:
        table = table_basis(space)
    if table is not None:
        return [Candidate(table, RIDGE)]
    low, high = _usual_range(chunks)
    default = basis_over(low, high)
    if len(low) not in OTHERS:
        return [Candidate(default, RIDGE)]
    coarse, tiles = OTHERS[len(low)]
    box: dict[str, Any] = {"low": low.tolist(), "high": high.tolist()}
    return [
        Candidate(default, RIDGE),
        Candidate(default, 100 * RIDGE),
        Candidate(RBFGrid(coarse, **box), RIDGE),
        Candidate(TileCoding(tiles, tilings=1, **box), RIDGE),
    ]


def _usual_range(chunks: Iterable[Transitions]) -> tuple[Vector, Vector]:
    """The range of the observations, without what is far from most of them."""
    rows, total, squares, least, greatest = over_chunks(chunks, _moments, _merged)
    mean = total / rows
    deviation = np.sqrt(np.maximum(squares / rows - mean**2, 0.0))
    low = np.maximum(least, mean - REACH * deviation)
    high = np.minimum(greatest, mean + REACH * deviation)
    constant = ~(low < high)  # a dimension of zero width cannot be scaled
    return np.where(constant, low - 0.5, low), np.where(constant, low + 0.5, high)


def _moments(chunk: Transitions) -> tuple[Any, ...]:
    """Of the observations: their number, sum, sum of squares, and range."""
    rows = chunk.observations.reshape(chunk.size, -1).astype(np.float64)
    return len(rows), rows.sum(axis=0), (rows**2).sum(axis=0), rows.min(axis=0), rows.max(axis=0)


def _merged(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    sums = map(add, one[:3], other[:3])
    return *sums, np.minimum(one[3], other[3]), np.maximum(one[4], other[4])


# The value of a policy ----------------------------------------------------------------------------


class Judge(NamedTuple):
    """Evaluates policies by averages over cells of the observations.

    Averages over the transitions of a cell and an action are a contraction: repeating them
    converges for every policy, whatever policy collected the data. Least squares in features that
    overlap has no such guarantee. The price is the number of cells, which grows with the dimension.
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
        """The mean value of a policy in the first states of the episodes.

        Where a cell and action has no transitions, the value is the lowest of all.
        """
        log = self.log
        here = self._places(log.observations, log.actions)
        after = self._places(log.next_observations, np.asarray(policy(log.next_observations)))
        size = self.actions * int(np.prod([len(edges) + 1 for edges in self.edges]))
        count, discounts = np.bincount(here, minlength=size), log.discounts(self.discount)
        values = np.zeros(size)
        for _ in range(REPETITIONS):
            targets = log.rewards + discounts * np.where(log.terminated, 0.0, values[after])
            means = np.bincount(here, targets, size) / np.maximum(count, 1)
            means[count == 0] = means[count > 0].min()
            before, values = values, means
            if np.abs(values - before).max() <= 1e-3 * values.std():
                break
        firsts = log.observations[log.starts()]
        return float(values[self._places(firsts, np.asarray(policy(firsts)))].mean())

    def _places(self, observations: NDArray[Any], actions: Integers) -> Integers:
        """The number of the cell and action."""
        columns = observations.reshape(len(observations), -1).T
        places = [np.searchsorted(e, x) for e, x in zip(self.edges, columns, strict=True)]
        shape = (*(len(edges) + 1 for edges in self.edges), self.actions)
        return np.ravel_multi_index((*places, actions), shape)
