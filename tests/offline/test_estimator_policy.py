"""The policy of a fitted estimator, on its own and from its file."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi import LinearPolicy, evaluate
from rblspi.core.archive import FileError
from rblspi.features import FunctionBasis, OneHot, RBFGrid
from rblspi.offline import LSPI
from tests.support.chain import BASIS, DISCOUNT, OPTIMAL, STATES, random_episodes

ENV = "rblspi/ChainWalk-v0"
(LOG,) = random_episodes(1, 2000, seed=0)


def optimal(observations):
    return OPTIMAL[observations]


def quadratic(state):
    return [1.0, state / 20.0, (state / 20.0) ** 2]


def lspi(basis=BASIS):
    return LSPI(basis, 2, discount=DISCOUNT, observation_space=Discrete(20)).fit(LOG)


@pytest.mark.parametrize("loaded", [False, True])
def test_without_an_environment_it_says_how_to_name_one(loaded, tmp_path):
    policy = lspi().policy()
    if loaded:
        policy.save(tmp_path / "policy.npz")
        policy = LinearPolicy.load(tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="names no environment to act in: pass one, or --env"):
        policy.make_environment()
    assert evaluate(policy, ENV, episodes=2, longest=50).lengths.tolist() == [50, 50]


def test_with_an_environment_it_can_act_there(tmp_path):
    policy = lspi().policy(ENV)
    assert policy.make_environment().spec.id == ENV
    one, other = (evaluate(policy, env, episodes=2, longest=50) for env in (None, ENV))
    np.testing.assert_array_equal(one.returns, other.returns)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", r"observations of shape \(4,\) and 2 actions, but the fit has shape \(\)"),
        ("FrozenLake-v1", r"shape \(\) and 4 actions, but the fit has shape \(\) and 2 actions"),
    ],
)
def test_another_environment_than_that_of_the_data_is_refused(env, message):
    with pytest.raises(ValueError, match=message):
        lspi().policy(env)


def test_actions_of_an_environment_may_start_anywhere():
    class FromFive(gym.Wrapper):
        def __init__(self):
            super().__init__(gym.make(ENV))
            self.action_space = Discrete(2, start=5)

    fitted = lspi()
    policy = fitted.policy(FromFive())
    np.testing.assert_array_equal(policy.predict(STATES)[0], fitted.act(STATES) + 5)
    np.testing.assert_array_equal(policy(STATES), fitted.act(STATES))


@pytest.mark.parametrize("basis", [quadratic, FunctionBasis(quadratic)])
def test_a_function_has_to_be_passed_again_on_load(basis, tmp_path):
    fitted = lspi(basis)
    fitted.policy().save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="made from quadratic, which is not stored: pass it again"):
        LinearPolicy.load(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz", basis)
    np.testing.assert_array_equal(loaded.values(STATES), fitted.predict(STATES))
    with pytest.raises(FileError, match="weights do not fit"):
        LinearPolicy.load(tmp_path / "policy.npz", OneHot())


def test_a_space_found_in_the_data_is_stored_with_the_policy(tmp_path):
    rng = np.random.default_rng(0)
    observations, after = rng.uniform(-1, 3, (2, 300, 2))
    columns = (observations, rng.integers(2, size=300), rng.standard_normal(300), after)
    lspi = LSPI(RBFGrid(3), 2, discount=0.5).fit((*columns, np.zeros(300, bool)))
    lspi.policy().save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    both = np.concatenate([observations, after])
    np.testing.assert_array_equal(loaded.observation_space.low, both.min(axis=0))
    np.testing.assert_array_equal(loaded(observations), lspi.act(observations))
