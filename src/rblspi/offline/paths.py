"""Following a policy in a log: from a transition to another one that starts near where it led.

From a first state, take a logged transition that starts near it with the action of the policy, go
to where that one led, and repeat. Each decision counts with its discount. A path ends where the
log has no such transition.

In continuous states a path jumps from row to row, and goes round in a few rows at the edge of the
data where the policy would leave them: `local_model` follows a policy without jumps.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from rblspi.core.types import Integers, Mask, Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.problem import are_states
from rblspi.policies.given import PolicyFunction

#: paths that are followed: the error of a share is at most 3%
PATHS = 300
#: neighbours from which the next transition is drawn; with more, paths blur
NEIGHBOURS = 3
#: paths end where what follows is worth this share of the whole
REST = 0.01
#: decisions of a path at the most, which is enough for a discount of 0.995
LONGEST = 1000


class Paths(NamedTuple):
    """Where the policy leads in the log."""

    weights: Vector  # how often every row is used, discounted, (N,)
    returns: Vector  # the discounted sum of rewards of every path
    beyond: float  # the discounted share of the policy's future that the log says nothing about


def first_states(log: Transitions) -> NDArray[Any]:
    """The first observations of the episodes; of the segments, if the log is a single episode.

    An episode that goes on and on has no first state to speak of.
    """
    starts = np.flatnonzero(log.starts())
    if len(starts) == 1:
        starts = np.flatnonzero(np.diff(log.segments(), prepend=-1))
    firsts: NDArray[Any] = log.observations[starts]
    return firsts


def follow(
    policy: PolicyFunction, log: Transitions, discount: float, seed: int, firsts: NDArray[Any]
) -> Paths:
    """Follow the policy from first observations, from transition to transition of the log."""
    near, rng = Neighbours.of(log), np.random.default_rng(seed)
    at = firsts[rng.choice(len(firsts), PATHS)]
    typical, relative = relative_discounts(log, discount)
    shares = typical ** np.arange(horizon(typical))
    weights, lost = np.zeros(log.size), 0.0
    path, returns = np.arange(PATHS), np.zeros(PATHS)
    early = np.ones(PATHS)  # the discounts of the paths, relative to a share
    for t, share in enumerate(shares):
        rows = near.draw(at, np.asarray(policy(at)), rng)
        known = rows >= 0
        lost += float(early[~known].sum() * shares[t:].sum())  # nor is what follows known
        rows, path, early = rows[known], path[known], early[known]
        returns[path] += share * early * log.rewards[rows]
        np.add.at(weights, rows, share * early)
        going = ~log.terminated[rows]
        at, path = log.next_observations[rows[going]], path[going]
        early = early[going] * relative[rows[going]]
        if not len(at):
            break
    returns[path] *= lasting(typical ** len(shares))
    return Paths(weights, returns, lost / (float(weights.sum()) + lost))


def follow_log(log: Transitions, discount: float, seed: int) -> Paths:
    """The paths of the log's own policy, whose action is that of any transition nearby."""
    return follow(only_action, uncontrolled(log), discount, seed, first_states(log))


def uncontrolled(log: Transitions) -> Transitions:
    """The log with a single action: what its policy chooses is a part of the environment."""
    return replace(log, actions=np.zeros_like(log.actions), next_allowed=None)


def only_action(observations: NDArray[Any]) -> Integers:
    """The policy of an uncontrolled log."""
    return np.zeros(len(observations), np.int64)


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


def lasting(rest: float) -> float:
    """The factor by which the return of a path grows if it goes on as it was.

    ``rest`` is the discount of what follows; without a discount, nothing is known of it.
    """
    return 1.0 / (1.0 - rest) if rest < 1.0 else 1.0


class Places(NamedTuple):
    """The different places where the transitions of one action start."""

    tree: KDTree
    rows: Integers  # the transitions, by place
    counts: Integers  # how many start at each place: more than one if states recur
    ends: Integers  # of the rows of each place, which are ``rows[ends - counts : ends]``


def places_by_action(log: Transitions, part: Mask, scale: Vector) -> dict[int, Places]:
    """The places of a part of the log, in units of a scale, for every action in it."""
    flat, found = log.observations.reshape(log.size, -1), {}
    for action in np.unique(log.actions[part]).tolist():
        rows = np.flatnonzero(part & (log.actions == action))
        places, place, counts = np.unique(
            flat[rows] / scale, axis=0, return_inverse=True, return_counts=True
        )
        by_place = rows[np.argsort(place.ravel(), kind="stable")]
        found[action] = Places(KDTree(places), by_place, counts, np.cumsum(counts))
    return found


def deviations(log: Transitions) -> Vector:
    """The standard deviations of the observations, or 1 where they are all the same."""
    scale: Vector = log.observations.reshape(log.size, -1).astype(np.float64).std(axis=0)
    scale[scale == 0.0] = 1.0
    return scale


class Neighbours(NamedTuple):
    """The logged transitions near an observation, for each action.

    Continuous observations are compared in units of their standard deviations, discrete ones have
    to be the same.
    """

    scale: Vector
    places: dict[int, Places]
    discrete: bool

    @classmethod
    def of(cls, log: Transitions) -> Neighbours:
        """A tree of the different observations for every action."""
        scale = deviations(log)
        places = places_by_action(log, np.ones(log.size, bool), scale)
        return cls(scale, places, are_states(log.observations))

    def draw(
        self, observations: NDArray[Any], actions: Integers, rng: np.random.Generator
    ) -> Integers:
        """A row near every observation; -1 where there is none."""
        scaled = observations.reshape(len(observations), -1) / self.scale
        rows = np.full(len(scaled), -1, np.int64)
        for action in set(actions.tolist()) & self.places.keys():
            tree, by_place, counts, ends = self.places[action]
            here, count = actions == action, min(1 if self.discrete else NEIGHBOURS, tree.n)
            distance, index = tree.query(scaled[here], range(1, count + 1))
            drawn = index[np.arange(len(index)), rng.integers(count, size=len(index))]
            found = by_place[ends[drawn] - rng.integers(1, counts[drawn] + 1)]
            there = not self.discrete or np.isclose(distance[:, 0], 0.0)
            rows[here] = np.where(there, found, -1)
        return rows
