"""RBLSPI learns every domain of the paper, at the sizes a prototype did it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from rblspi import RBLSPI
from tests.support.domains import DOMAINS


class Goal(NamedTuple):
    domain: str
    episodes: int
    column: int  # of the record: 0 length, 1 return
    better: str
    than: float


GOALS = [
    Goal("MountainCar-v0", 1000, 0, "less", 115.0),
    Goal("SparseMountainCar-v0", 500, 0, "less", 120.0),
    Goal("InvertedPendulum-v0", 200, 0, "more", 2900.0),
    Goal("CartPole-v0", 500, 0, "more", 490.0),
    Goal("PuddleWorld-v0", 500, 1, "more", -30.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.domain)
def test_the_last_hundred_episodes_are_good(goal: Goal) -> None:
    domain = DOMAINS[goal.domain]
    reached = [
        RBLSPI(domain.id, domain.basis, seed=seed, **domain.settings)
        .learn(episodes=goal.episodes)
        .episodes[-100:, goal.column]
        .mean()
        for seed in range(4)
    ]
    if goal.better == "less":
        assert np.mean(reached) < goal.than
    else:
        assert np.mean(reached) > goal.than
