"""The agents walk the trajectory of the textbook versions, given the same random numbers."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from examples import textbook
from rblspi import RBLSPI, OnlineLSPI
from tests.support.diary import Diary
from tests.support.domains import Domain, quick_on

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("domain", quick_on("InvertedPendulum-v0"))
@pytest.mark.parametrize(
    ("update_every", "steps"),
    [(20, 2000), (1, 150), ("episode", 2000)],
    ids=["K20", "K1", "episode"],
)
def test_rblspi(domain: Domain, update_every: int | str, steps: int) -> None:
    env = Diary(gym.make(domain.id))
    agent = RBLSPI(env, domain.basis, update_every=update_every, seed=3, **domain.settings)
    agent.learn(steps)
    walk = textbook.rblspi(
        gym.make(domain.id),
        agent.session.seed,
        agent.features,
        textbook.agent_rng(3),
        steps,
        update_every=agent.update_every,
        **domain.settings,
    )
    np.testing.assert_array_equal(env.actions, walk.actions)


@pytest.mark.parametrize("on_policy", [True, False])
@pytest.mark.parametrize("domain", quick_on("InvertedPendulum-v0"))
def test_online_lspi(domain: Domain, on_policy: bool) -> None:
    env = Diary(gym.make(domain.id))
    discount = domain.settings["discount"]
    agent = OnlineLSPI(env, domain.basis, on_policy=on_policy, discount=discount, seed=5).learn(
        2000
    )
    walk = textbook.online_lspi(
        gym.make(domain.id),
        agent.session.seed,
        agent.features,
        textbook.agent_rng(5),
        2000,
        discount=discount,
        on_policy=on_policy,
        update_every=20,
    )
    np.testing.assert_array_equal(env.actions, walk.actions)
