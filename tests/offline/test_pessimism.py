import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi import LinearPolicy
from rblspi.data.transitions import Transitions
from rblspi.features import OneHot
from rblspi.offline import BLSPI, coverage
from tests.support.chain import BASIS, DISCOUNT, STATES, in_proportion, random_episodes


def fitted(**settings):
    blspi = BLSPI(
        BASIS, 2, discount=DISCOUNT, prior_precision=0.01, noise_precision=5.0, **settings
    )
    return blspi.fit(random_episodes(1, 2000, seed=0)[0])


def test_actions_are_those_of_the_lower_bound(tmp_path):
    (log,) = random_episodes(1, 2000, seed=0)
    rare = log.actions + (np.arange(2000) % 100 == 0) > 1  # so that its lower bound is far away
    settings = {"prior_precision": 0.01, "noise_precision": 0.1, "observation_space": Discrete(20)}
    blspi = BLSPI(OneHot(), 2, discount=DISCOUNT, pessimism=2.0, **settings)
    blspi.fit(log.select(rare | (log.actions == 0)))
    mean, std = blspi.predict(STATES, return_std=True)
    blspi.policy().save(tmp_path / "policy.npz")
    for act in (blspi.act, blspi.policy(), LinearPolicy.load(tmp_path / "policy.npz")):
        np.testing.assert_array_equal(act(STATES), (mean - 2.0 * std).argmax(axis=1))
    assert blspi.act(3) == blspi.act([3])[0]
    assert (blspi.act(STATES) != mean.argmax(axis=1)).any()


def test_the_policy_under_evaluation_is_pessimistic_too():
    (log,) = random_episodes(1, 2000, seed=0)
    blspi = BLSPI(
        BASIS, 2, discount=DISCOUNT, prior_precision=0.01, noise_precision=5.0, pessimism=2.0
    ).fit(log)
    assert blspi.converged_
    # The policy that was found is evaluated once more: it stays, and so do its values.
    again = BLSPI(**{**blspi.get_params(), "initial_policy": blspi.act}).fit(log)
    assert again.n_iter_ == 1
    np.testing.assert_allclose(again.predict(STATES), blspi.predict(STATES), rtol=1e-9)


def bandit(rows=200):
    """One state: action 0 pays 1 for sure, action 1 paid 1.5 the only time it was tried."""
    actions = np.zeros(rows, int)
    actions[7] = 1
    rewards = np.where(actions == 1, 1.5, 1.0)
    zeros = np.zeros(rows, int)
    return Transitions.from_arrays(zeros, actions, rewards, zeros, np.ones(rows, bool))


@pytest.mark.parametrize(("pessimism", "action"), [(0.0, 1), (1.0, 0)])
def test_an_action_that_was_tried_once_is_not_relied_upon(pessimism, action):
    settings = {"discount": 0.0, "prior_precision": 0.01, "noise_precision": 1.0}
    blspi = BLSPI(OneHot(), 2, pessimism=pessimism, observation_space=Discrete(1), **settings).fit(
        bandit()
    )
    assert blspi.act(0) == action


def test_coverage_is_low_where_there_are_no_data():
    everywhere = in_proportion()
    left = everywhere.select(everywhere.observations < 10)
    blspi = BLSPI(
        OneHot(), 2, discount=0.0, prior_precision=0.01, observation_space=Discrete(20)
    ).fit(left)
    found = coverage(blspi, STATES)
    np.testing.assert_allclose(found.ratios[10:], 1.0)
    assert (found.ratios[:10] < 0.1).all()
    assert found.share == 0.5
    assert str(found).startswith("in 50.0% of 20 states the data say little")
    assert coverage(blspi, STATES[:10]).share == 0.0
