"""The basis and the ridge of a policy from logs, chosen by held-out episodes.

Every candidate finds a policy by fitted Q iteration on one half of the episodes, and the other half
tells what that policy is worth; then the halves change places. The first candidate is the default.
Another one is taken only if its policy is worth more in both halves.

TD errors would not do as a criterion: they measure how well values are represented, not how good
the policy is, and contain the noise of the transitions. Where the data are too few for a `Judge`,
as they are in many dimensions, the default is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi.core.types import Mask, Vector
from rblspi.data.transitions import Transitions, concatenated
from rblspi.features import Basis, OneHot, RBFGrid, TileCoding
from rblspi.features.default import basis_over, table_basis
from rblspi.offline.accumulation import Problem, conformed, not_empty, over_chunks
from rblspi.offline.fitted_q import fitted_q_iteration, greedy_in, on_observations
from rblspi.offline.judge import Judge
from rblspi.offline.observed_space import are_states
from rblspi.policies.given import PolicyFunction

#: the default ridge of fitted Q iteration, relative to the mean diagonal element of the Gram matrix
RIDGE = 1e-4
#: the number of Gaussians and of tiles in the other candidates, with 1, 2, 3 dimensions
OTHERS = {1: (6, 50), 2: (6, 20), 3: (3, 10)}
#: standard deviations on either side of the mean that a basis covers
REACH = 3.0
#: transitions that are used for the choice
MOST_ROWS = 50_000


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
    default_alone = Selection(offered[0].basis, offered[0].ridge, offered[:1])
    if len(offered) == 1 or not half.any():  # a single short episode has no other half
        return default_alone
    judges = [Judge.of(_part(log, held), actions, discount) for held in (half, ~half)]
    if not all(judge.can_tell for judge in judges):
        return default_alone
    tried = [
        candidate._replace(
            values=tuple(
                judge.value(_learnt(candidate, _part(log, learnt), actions, discount))
                for judge, learnt in zip(judges, (~half, half), strict=True)
            )
        )
        for candidate in offered
    ]
    default = np.array(tried[0].values)
    best = max(tried, key=lambda candidate: float((np.array(candidate.values) - default).min()))
    return Selection(best.basis, best.ridge, tried)


def _learnt(
    candidate: Candidate, log: Transitions, actions: int, discount: float
) -> PolicyFunction:
    """The policy that a candidate learns from a half of the log."""
    everywhere = gym.spaces.Box(-np.inf, np.inf, log.observations.shape[1:], np.float64)
    problem = Problem(candidate.basis.build(everywhere), everywhere, actions, discount)
    found = fitted_q_iteration(problem, [log], candidate.ridge, 300, 3e-3)
    return on_observations(greedy_in(found.weights, problem), problem.features)


def candidates(chunks: Iterable[Transitions], space: gym.Space[Any] | None) -> list[Candidate]:
    """The bases that are compared; the first is the default."""
    first = conformed(not_empty(next(iter(chunks), None), chunks))
    table = OneHot() if space is None and are_states(first.observations) else None
    if space is not None:
        table = table_basis(space)
    if table is not None:
        return [Candidate(table, RIDGE)]
    moments = over_chunks(chunks, _moments_of_chunk, Moments.merge)
    low, high = moments.box(REACH)
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


class Moments(NamedTuple):
    """Of the observations: their number, sum, sum of squares and range."""

    rows: int
    total: Vector
    squares: Vector
    low: Vector
    high: Vector

    def merge(self, other: Moments) -> Moments:
        """The same for both sets of transitions."""
        return Moments(
            self.rows + other.rows,
            self.total + other.total,
            self.squares + other.squares,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def box(self, reach: float) -> tuple[Vector, Vector]:
        """The range of the observations, without what is far from most of them."""
        mean = self.total / self.rows
        deviation = np.sqrt(np.maximum(self.squares / self.rows - mean**2, 0.0))
        low = np.maximum(self.low, mean - reach * deviation)
        high = np.minimum(self.high, mean + reach * deviation)
        constant = ~(low < high)  # a dimension of zero width cannot be scaled
        return np.where(constant, low - 0.5, low), np.where(constant, low + 0.5, high)


def _moments_of_chunk(chunk: Transitions) -> Moments:
    rows = chunk.observations.reshape(chunk.size, -1).astype(np.float64)
    return Moments(
        len(rows), rows.sum(axis=0), (rows**2).sum(axis=0), rows.min(axis=0), rows.max(axis=0)
    )


def first_rows(chunks: Iterable[Transitions]) -> Transitions:
    """The first transitions, as many as are used for the choice."""
    taken: list[Transitions] = []
    for chunk in chunks:
        taken.append(conformed(chunk))
        if sum(part.size for part in taken) >= MOST_ROWS:
            break
    return concatenated(taken).rows(0, MOST_ROWS)


def halves(log: Transitions) -> Mask:
    """Every other episode; every other segment of a long one."""
    half: Mask = log.segments() % 2 == 1
    return half


def _part(log: Transitions, rows: Mask) -> Transitions:
    return log.select(rows)
