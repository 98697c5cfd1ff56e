"""The agents walk the trajectory of the textbook versions, given the same random numbers."""

import gymnasium as gym
import numpy as np
import pytest

from examples import textbook
from rblspi import RBLSPI, OnlineLSPI
from rblspi.features import basis_from_settings
from tests.support.diary import Diary
from tests.support.domains import CURVES

pytestmark = pytest.mark.slow
on_domains = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@on_domains
@pytest.mark.parametrize(
    ("update_every", "steps"),
    [(20, 2000), (1, 150), ("episode", 2000)],
    ids=["K20", "K1", "episode"],
)
def test_rblspi(curve, update_every, steps):
    env, settings = Diary(gym.make(curve.environment)), {**curve.settings}
    settings["update_every"] = update_every
    agent = RBLSPI(env, basis_from_settings(curve.basis), seed=3, **settings).learn(steps)
    given = (gym.make(curve.environment), agent.session.seed, agent.features)
    settings["update_every"] = agent.update_every
    walk = textbook.rblspi(*given, textbook.agent_rng(3), steps, **settings)
    np.testing.assert_array_equal(env.actions, walk.actions)


@pytest.mark.parametrize("on_policy", [True, False])
@on_domains
def test_online_lspi(curve, on_policy):
    env, basis = Diary(gym.make(curve.environment)), basis_from_settings(curve.basis)
    settings = {"discount": curve.settings["discount"], "on_policy": on_policy, "update_every": 20}
    agent = OnlineLSPI(env, basis, seed=5, **settings).learn(2000)
    given = (gym.make(curve.environment), agent.session.seed, agent.features)
    walk = textbook.online_lspi(*given, textbook.agent_rng(5), 2000, **settings)
    np.testing.assert_array_equal(env.actions, walk.actions)
