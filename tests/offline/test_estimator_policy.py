"""The policy of a fitted estimator, on its own and from its file."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi import LinearPolicy, evaluate
from rblspi.core.archive import FileError
from rblspi.features import FunctionBasis, OneHot, RBFGrid
from rblspi.offline import BLSPI, BLSTD, LSPI, LSTD, NotFittedError
from rblspi.policies import ValuePosterior
from tests.support.chain import BASIS, DISCOUNT, OPTIMAL, STATES, in_proportion, random_episodes

ENV = "rblspi/ChainWalk-v0"
(LOG,) = random_episodes(1, 2000, seed=0)


def optimal(observations):
    return OPTIMAL[observations]


def quadratic(state):
    return [1.0, state / 20.0, (state / 20.0) ** 2]


def fitted(name):
    given = {"discount": DISCOUNT, "observation_space": Discrete(20)}
    match name:
        case "LSPI":
            return LSPI(BASIS, 2, **given).fit(LOG)
        case "BLSPI":
            return BLSPI(BASIS, 2, prior_precision=0.01, noise_precision=1.0, **given).fit(LOG)
        case "BLSPI, pessimistic":
            # One action is rare, so that its lower bound is far below its mean.
            rare = LOG.actions + (np.arange(2000) % 100 == 0) > 1
            log = LOG.select(rare | (LOG.actions == 0))
            return BLSPI(
                OneHot(), 2, pessimism=2.0, prior_precision=0.01, noise_precision=0.1, **given
            ).fit(log)
        case "LSTD":
            return LSTD(BASIS, 2, **given).fit(LOG, optimal)
        case _:
            return BLSTD(BASIS, 2, **given).fit(LOG, optimal)


ALL = pytest.mark.parametrize(
    "estimator", ["LSPI", "BLSPI", "BLSPI, pessimistic", "LSTD", "BLSTD"], indirect=True
)


@pytest.fixture
def estimator(request):
    return fitted(request.param)


def assert_the_same(policy, estimator):
    """The policy has the values, standard deviations and actions of the estimator, bit by bit."""
    values = policy.values(STATES)
    actions = policy(STATES)
    np.testing.assert_array_equal(policy.predict(STATES)[0], actions)
    assert policy.predict(3)[0] == actions[3]
    if hasattr(estimator, "posterior_"):
        mean, std = estimator.predict(STATES, return_std=True)
        stated = ValuePosterior(policy, policy.posterior).action_values(STATES)
        np.testing.assert_array_equal(stated.mean, mean)
        np.testing.assert_array_equal(stated.std, std)
        np.testing.assert_array_equal(values, mean)
        lower = mean - getattr(estimator, "pessimism", 0.0) * std
        np.testing.assert_array_equal(actions, lower.argmax(axis=1))
    else:
        np.testing.assert_array_equal(values, estimator.predict(STATES))
        np.testing.assert_array_equal(actions, values.argmax(axis=1))
    if hasattr(estimator, "act"):
        np.testing.assert_array_equal(actions, estimator.act(STATES))


@ALL
@pytest.mark.parametrize("env", [None, ENV])
def test_it_chooses_and_predicts_as_the_estimator_does(estimator, env, tmp_path):
    policy = estimator.policy(env)
    policy.save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    for one in (policy, loaded, pickle.loads(pickle.dumps(policy))):
        assert_the_same(one, estimator)
        assert one.observation_space == Discrete(20)
        assert one.discount == DISCOUNT
        assert one.provenance["algorithm"] == type(estimator).__name__.lower()
        assert one.provenance["transitions"] == estimator.statistics_.count.sum() > 900
        assert one.provenance["settings"]["ridge"] == estimator.ridge
        assert one.action_names == policy.action_names
        assert one.environment == policy.environment


def test_pessimism_makes_a_difference():
    pessimistic = fitted("BLSPI, pessimistic")
    greedy = pessimistic.predict(STATES).argmax(axis=1)
    assert (pessimistic.policy()(STATES) != greedy).any()


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
@ALL
def test_fitting_again_leaves_an_earlier_policy_alone(estimator):
    policy = estimator.policy()
    before = policy.values(STATES)
    arguments = () if hasattr(estimator, "act") else (optimal,)
    estimator.fit(in_proportion(), *arguments)
    np.testing.assert_array_equal(policy.values(STATES), before)


def test_act_takes_batches_of_any_size(monkeypatch):
    lspi = fitted("LSPI")
    whole = lspi.act(STATES)
    monkeypatch.setattr("rblspi.offline.accumulation.BATCH", 3 * 5)
    np.testing.assert_array_equal(lspi.act(STATES), whole)
    assert lspi.act(np.zeros(0, int)).shape == (0,)
    assert [lspi.act(state) for state in STATES] == whole.tolist()


@pytest.mark.parametrize("estimator", [LSTD, BLSTD])
def test_values_of_states_make_no_policy(estimator):
    values = estimator(BASIS, discount=DISCOUNT).fit(LOG)
    with pytest.raises(ValueError, match="actions=None: a policy needs values of actions"):
        values.policy()


def test_an_estimator_has_no_policy_before_it_is_fitted():
    for ask in (LSPI(BASIS, 2).policy, lambda: LSPI(BASIS, 2).act(STATES)):
        with pytest.raises(NotFittedError, match="this LSPI is not fitted yet: call fit first"):
            ask()


@pytest.mark.parametrize("loaded", [False, True])
def test_without_an_environment_it_says_how_to_name_one(loaded, tmp_path):
    policy = fitted("LSPI").policy()
    if loaded:
        policy.save(tmp_path / "policy.npz")
        policy = LinearPolicy.load(tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="names no environment to act in: pass one, or --env"):
        policy.make_environment()
    assert evaluate(policy, ENV, episodes=2, longest=50).lengths.tolist() == [50, 50]


def test_with_an_environment_it_can_act_there(tmp_path):
    policy = fitted("LSPI").policy(ENV)
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
        fitted("LSPI").policy(env)


def test_actions_of_an_environment_may_start_anywhere():
    class FromFive(gym.Wrapper):
        def __init__(self):
            super().__init__(gym.make(ENV))
            self.action_space = Discrete(2, start=5)

    lspi = fitted("LSPI")
    policy = lspi.policy(FromFive())
    np.testing.assert_array_equal(policy.predict(STATES)[0], lspi.act(STATES) + 5)
    np.testing.assert_array_equal(policy(STATES), lspi.act(STATES))


@pytest.mark.parametrize("basis", [quadratic, FunctionBasis(quadratic)])
def test_a_function_has_to_be_passed_again_on_load(basis, tmp_path):
    lspi = LSPI(basis, 2, discount=DISCOUNT, observation_space=Discrete(20)).fit(LOG)
    lspi.policy().save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="made from quadratic, which is not stored: pass it again"):
        LinearPolicy.load(tmp_path / "policy.npz")
    assert_the_same(LinearPolicy.load(tmp_path / "policy.npz", basis), lspi)
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
