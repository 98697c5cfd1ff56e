"""Following a policy in a log: from a transition to another one that starts near where it led.

From a first state, take a logged transition that starts near it with the action of the policy, go
to where that one led, and repeat. Each decision counts with its discount. Where the log ends before
the policy does, the paths go round in a few rows at the edge of the data, or jump to rows that are
far away.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from rblspi.core.types import Integers, Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.observed_space import are_states
from rblspi.policies.given import PolicyFunction

#: paths that are followed: the error of a share is at most 3%
PATHS = 300
#: neighbours from which the next transition is drawn; with more, paths blur
NEIGHBOURS = 3
#: paths end where what follows is worth this share of the whole
REST = 0.01
#: decisions of a path at the most, which is enough for a discount of 0.995
LONGEST = 1000
#: a decision is extrapolated if it is further from the log than this share of the log's own rows
USUAL = 0.99


class Paths(NamedTuple):
    """Where the policy leads in the log."""

    weights: Vector  # how often every row is used, discounted, (N,)
    returns: Vector  # the discounted sum of rewards of every path
    extrapolated: float  # the discounted share of decisions that are far from the log
    distance: float  # their mean distance, in the usual one between rows of the log


def follow(
    policy: PolicyFunction,
    log: Transitions,
    discount: float,
    seed: int,
    first_observations: NDArray[Any] | None = None,
) -> Paths:
    """Follow the policy from transition to transition of the log."""
    near, rng = Neighbours.of(log), np.random.default_rng(seed)
    firsts = first_observations
    if firsts is None:
        firsts = log.observations[log.starts()]
    at = firsts[rng.choice(len(firsts), PATHS)]
    typical, relative = relative_discounts(log, discount)
    shares = typical ** np.arange(horizon(typical))
    weights, far, lost, distances = np.zeros(log.size), 0.0, 0.0, 0.0
    path, returns = np.arange(PATHS), np.zeros(PATHS)
    early = np.ones(PATHS)  # the discounts of the paths, relative to a share
    for t, share in enumerate(shares):
        rows, distance = near.draw(at, np.asarray(policy(at)), rng)
        known = np.isfinite(distance)
        lost += float(early[~known].sum() * shares[t:].sum())  # nor is what follows known
        rows, distance, path, early = rows[known], distance[known], path[known], early[known]
        returns[path] += share * early * log.rewards[rows]
        far += share * float(early[distance > near.limit].sum())
        distances += share * float((early * distance).sum())
        np.add.at(weights, rows, share * early)
        going = ~log.terminated[rows]
        at, path = log.next_observations[rows[going]], path[going]
        early = early[going] * relative[rows[going]]
        if not len(at):
            break
    usual = near.typical * weights.sum()
    extrapolated = (far + lost) / (weights.sum() + lost)
    return Paths(weights, returns, extrapolated, distances / usual if usual else 0.0)


def follow_log(log: Transitions, discount: float, seed: int) -> Paths:
    """The paths of the log's own policy, whose action is that of any transition nearby."""
    one = log._replace(actions=np.zeros_like(log.actions))
    return follow(lambda at: np.zeros(len(at), np.int64), one, discount, seed)


def relative_discounts(log: Transitions, discount: float) -> tuple[float, Vector]:
    """The mean discount of a transition, and that of every one relative to it, (N,): usually 1."""
    discounts = log.discounts(discount)
    if isinstance(discounts, np.ndarray):
        typical = float(discounts[~log.terminated].mean())
        return typical, discounts / typical
    return float(discounts), np.ones(log.size)


def horizon(discount: float) -> int:
    """The number of decisions after which the rest counts little."""
    if discount == 0.0:
        return 1
    return LONGEST if discount == 1.0 else min(LONGEST, math.ceil(math.log(REST, discount)))


class Neighbours(NamedTuple):
    """The logged transitions near an observation, for each action.

    Continuous observations are compared in units of their standard deviations, discrete ones have
    to be the same.
    """

    scale: Vector
    trees: dict[int, tuple[KDTree, Integers, Integers]]  # of places; rows by place; how many each
    limit: float  # a distance that few rows of the log have from their nearest neighbour
    typical: float  # the mean of those distances

    @classmethod
    def of(cls, log: Transitions) -> Neighbours:
        """A tree of the different observations for every action."""
        flat = log.observations.reshape(log.size, -1).astype(np.float64)
        scale = flat.std(axis=0)
        scale[scale == 0.0] = 1.0
        trees, distances = {}, [np.zeros(1)]  # one place has no distance
        for action in np.unique(log.actions):
            rows = np.flatnonzero(log.actions == action)
            places, group, counts = np.unique(
                flat[rows] / scale, axis=0, return_inverse=True, return_counts=True
            )
            tree = KDTree(places)
            trees[int(action)] = (tree, rows[np.argsort(group.ravel(), kind="stable")], counts)
            if len(places) > 1:
                distances.append(tree.query(places, 2)[0][:, 1])
        if are_states(log.observations):
            return cls(scale, trees, 0.0, 0.0)
        apart = np.concatenate(distances)
        return cls(scale, trees, float(np.quantile(apart, USUAL)), float(apart.mean()))

    def draw(
        self, observations: NDArray[Any], actions: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Vector]:
        """A row near every observation, and the distance of the nearest one, perhaps infinite."""
        places = observations.reshape(len(observations), -1) / self.scale
        rows, nearest = np.zeros(len(places), np.int64), np.full(len(places), np.inf)
        for action in set(actions.tolist()) & self.trees.keys():
            tree, by_place, counts = self.trees[action]
            here, count = actions == action, min(NEIGHBOURS if self.limit else 1, tree.n)
            distance, index = tree.query(places[here], range(1, count + 1))
            drawn = index[np.arange(len(index)), rng.integers(count, size=len(index))]
            ends = np.cumsum(counts)[drawn]
            rows[here] = by_place[ends - rng.integers(1, counts[drawn] + 1)]
            exact = self.limit > 0.0 or np.isclose(distance[:, 0], 0.0)
            nearest[here] = np.where(exact, distance[:, 0], np.inf)
        return rows, nearest
