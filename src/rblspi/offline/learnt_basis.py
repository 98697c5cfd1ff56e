"""A `Network` learnt from logged transitions by double Q-learning, for estimators to use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.data.transitions import Transitions
from rblspi.features import Network
from rblspi.features.default import table_basis
from rblspi.features.network import as_text, count

#: updates for every transition, and transitions in each, as in `DeepQ`
UPDATES, BATCH = 2, 128
#: updates in one call of compiled code
BLOCK = 64


def learnt_network(
    basis: Network, log: Transitions, actions: int, discount: float, space: gym.Space[Any]
) -> Network:
    """The network whose weights are the slow average after two updates for every transition.

    It learns from single steps, because those after them may follow a policy that it would not.
    """
    from rblspi.model.double_q import Batches, Learner, train, unit_of_values

    if table_basis(space) is None:
        basis = basis.scaled_to(log.observations.reshape(log.size, -1))
    inputs, unit = basis.inputs(space), unit_of_values(log.rewards, log.terminated, discount)
    discounts = np.where(log.terminated, 0.0, log.discounts(discount))
    allowed = log.next_allowed
    if allowed is None:
        allowed = np.ones((log.size, actions), np.bool_)
    columns = (
        inputs(log.observations),
        log.actions,
        log.rewards / (unit or 1.0),
        inputs(log.next_observations),
        discounts,
        allowed,
    )
    sizes = (*basis.sizes(space), actions)
    learner, rng = Learner.of(basis.numbers(space), sizes), np.random.default_rng(basis.seed)
    for _ in range(max(1, UPDATES * log.size // BLOCK)):
        rows = rng.integers(log.size, size=(BLOCK, BATCH))
        learner = train(learner, sizes, Batches(*(column[rows] for column in columns)))
    return replace(basis, weights=as_text(learner.average[: count(sizes[:-1])]))
