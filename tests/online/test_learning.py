"""RBLSPI learns every domain of the paper, at the sizes a prototype did it."""

import numpy as np
import pytest

from rblspi.experiments.tasks import make_agent
from tests.support.domains import CURVES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "episodes", "column", "least", "most"),
    [
        ("MountainCar", 1000, "length", 0.0, 115.0),
        ("SparseMountainCar", 500, "length", 0.0, 120.0),
        ("InvertedPendulum", 200, "length", 2900.0, 3000.0),
        ("CartPole", 500, "length", 490.0, 500.0),
        ("PuddleWorld", 500, "return", -30.0, 0.0),
    ],
)
def test_the_last_hundred_episodes_are_good(domain, episodes, column, least, most):
    agents = [make_agent(CURVES[domain], seed).learn(episodes=episodes) for seed in range(4)]
    reached = [agent.episodes[-100:, ("length", "return").index(column)] for agent in agents]
    assert least < np.mean(reached) <= most
