"""A model of the environment that is made of logged transitions: what an action did nearby.

In a state s, an action a leads to s + (s_j' - s_j), where j is a logged transition that starts near
s with this action; its reward, and whether it is terminal, are taken as they are. Following a
policy in the model gives its values without any basis. Moves are carried over, not the places they
lead to: a model that jumped from row to row would blur slow movements, such as that of a cart
towards the end of its track.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.offline.accumulation import halves
from rblspi.offline.paths import (
    Paths,
    Places,
    deviations,
    horizon,
    lasting,
    places_by_action,
    relative_discounts,
)
from rblspi.policies.given import PolicyFunction

#: near transitions that take turns from step to step: one alone may be an odd one
NEIGHBOURS = 3
#: first states from which a policy is followed
STATES = 100
#: the share of rows that count as near those of the other episodes
USUAL = 0.99
#: what adding up moves may round, in standard deviations: where places recur, rows are that near
ROUNDING = 1e-9


class LocalModel(NamedTuple):
    """Logged transitions by action, found by where they start.

    Distances are in units of the standard deviations of the observations.
    """

    scale: Vector  # (d,)
    places: dict[int, Places]  # where the transitions of an action start
    moves: Matrix  # s' - s, (N, d)
    rewards: Vector
    terminated: Mask
    discount: float  # of a transition in the mean
    relative: Vector  # that of every one, relative to the mean: 1 if all take the same time, (N,)

    @classmethod
    def of(cls, log: Transitions, part: Mask, discount: float) -> LocalModel:
        """The model of a part of the transitions."""
        scale, discounts = deviations(log), relative_discounts(log, discount)
        before = log.observations.reshape(log.size, -1).astype(np.float64)
        moves = log.next_observations.reshape(log.size, -1) - before
        places = places_by_action(log, part, scale)
        return cls(scale, places, moves, log.rewards, log.terminated, *discounts)

    def nearby(self, states: Matrix, actions: Integers, step: int) -> tuple[Integers, Vector]:
        """A transition of the action near every state, and how far the nearest is.

        From step to step, those of the nearest places take turns, or those of the nearest place
        if there are enough. The transition is -1 and infinitely far if the action was never logged.
        """
        found, distances = np.full(len(states), -1), np.full(len(states), np.inf)
        for action, (tree, rows, counts, ends) in self.places.items():
            here = np.flatnonzero(actions == action)
            if not len(here):
                continue
            ranks = [1, 1 + min(step % NEIGHBOURS, tree.n - 1)]
            apart, near = tree.query(states[here] / self.scale, ranks)
            place = np.where(counts[near[:, 0]] >= NEIGHBOURS, *near.T)
            found[here] = rows[ends[place] - 1 - (step + here) % counts[place]]
            distances[here] = apart[:, 0]
        return found, distances


def models_of_halves(log: Transitions, discount: float) -> tuple[LocalModel, LocalModel]:
    """The model of every other episode, and that of the others."""
    half = halves(log)
    return LocalModel.of(log, half, discount), LocalModel.of(log, ~half, discount)


def follow_in_model(
    policy: PolicyFunction, log: Transitions, discount: float, firsts: NDArray[Any]
) -> Paths:
    """Follow the policy from first observations, in the model of the whole log.

    With the time t at which a path is further from the log than one half of the episodes usually is
    from the other, or at which the action was never logged, E gamma^t of its future is beyond the
    log: nothing is known of it. The path itself goes on by what is nearest.
    """
    shape, model = log.observations.shape[1:], LocalModel.of(log, np.ones(log.size, bool), discount)
    limit = usual_distance(log, models_of_halves(log, discount))
    chosen = firsts[np.linspace(0, len(firsts) - 1, min(STATES, len(firsts))).astype(np.int64)]
    states, weight, lost = chosen.reshape(len(chosen), -1).astype(np.float64), 1.0, 0.0
    path, returns, weights = np.arange(len(states)), np.zeros(len(states)), np.zeros(log.size)
    early = np.ones(len(states))  # the discounts of the paths, relative to the weight
    inside = np.ones(len(states), bool)
    for step in range(horizon(model.discount)):
        actions = np.asarray(policy(states.reshape(-1, *shape)))
        near, distance = model.nearby(states, actions, step)
        far = distance > limit
        lost += weight * float(early[inside & far].sum())
        known = near >= 0
        near, path, early, inside = near[known], path[known], early[known], (inside & ~far)[known]
        returns[path] += weight * early * model.rewards[near]
        np.add.at(weights, near, weight * early)
        on = ~model.terminated[near]
        states, path, inside = states[known][on] + model.moves[near[on]], path[on], inside[on]
        early = early[on] * model.relative[near[on]]
        weight *= model.discount
        if not len(states):
            break
    returns[path] *= lasting(weight)
    return Paths(weights, returns, lost / len(chosen))


def usual_distance(log: Transitions, models: tuple[LocalModel, LocalModel]) -> float:
    """The distance within which most rows have one of the other half of the episodes.

    The nearest row of all would not do: it is often the next one of the same episode. A single
    short episode has no other half, and nothing tells how near is near.
    """
    half, rows = halves(log), log.observations.reshape(log.size, -1)
    apart = [
        model.nearby(rows[part], log.actions[part], 0)[1]
        for model, part in zip(models, (~half, half), strict=True)
    ]
    known = np.concatenate(apart)
    known = known[np.isfinite(known)]
    return float(np.quantile(known, USUAL)) + ROUNDING if len(known) else 0.0
