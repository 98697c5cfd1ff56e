"""A policy answers as its agent does: also in another process, and from a file."""

import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi import LSTD, RBLSPI, FunctionBasis, LinearPolicy, OneHot, OnlineLSPI, RBFGrid, evaluate
from rblspi.core.archive import FileError
from rblspi.rollout.collect import random_walk

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"
ROWS = np.random.default_rng(0).uniform((-1.2, -0.07), (0.5, 0.07), (40, 2))


def trained(kind):
    """In the middle of an episode, and half of the actions of online LSPI are random."""
    if kind == "RBLSPI":
        settings = {"prior_precision": 0.01, "noise_precision": 0.1}
        return RBLSPI(CAR, RBFGrid(4), seed=3, **settings).learn(2050)
    return OnlineLSPI(CAR, RBFGrid(4), seed=3, epsilon=0.5, epsilon_decay=1.0).learn(2050)


@pytest.fixture(params=["RBLSPI", "OnlineLSPI"])
def agent(request):
    return trained(request.param)


# As the agent -------------------------------------------------------------------------------------


def test_an_exploring_policy_explores_as_its_agent_does(agent):
    exploring = agent.policy(explore=True)
    greedy = agent.predict(ROWS, deterministic=True)[0]
    for _ in range(3):  # the random numbers go on
        chosen = exploring.predict(ROWS)[0]
        np.testing.assert_array_equal(chosen, agent.predict(ROWS)[0])
    assert (chosen != greedy).any()


def test_only_the_exploring_policy_is_random():
    agent = trained("OnlineLSPI")
    greedy = agent.predict(ROWS, deterministic=True)[0]
    for policy in (agent.policy(), agent.policy(explore=True)):
        np.testing.assert_array_equal(policy.predict(ROWS, deterministic=True)[0], greedy)
        np.testing.assert_array_equal(policy(ROWS), greedy)
    np.testing.assert_array_equal(agent.policy().predict(ROWS)[0], greedy)


def test_making_a_policy_leaves_the_agent_as_it_is(agent):
    before = agent.rng.bit_generator.state
    agent.policy(explore=True).predict(ROWS)
    assert agent.rng.bit_generator.state == before


def test_learning_on_does_not_change_a_policy(agent):
    for explore in (False, True):
        policy = agent.policy(explore)
        weights, values = policy.weights.copy(), policy.values(ROWS)
        agent.learn(300)
        np.testing.assert_array_equal(policy.weights, weights)
        np.testing.assert_array_equal(policy.values(ROWS), values)
        assert not np.array_equal(agent.policy(explore).weights, weights)


@pytest.mark.parametrize("explore", [False, True])
def test_it_is_evaluated_as_its_agent_is(agent, explore):
    settings = {"episodes": 3, "longest": 200, "seed": 7, "deterministic": not explore}
    ours = evaluate(agent.policy(explore), **settings)
    np.testing.assert_array_equal(ours, evaluate(agent, **settings))
    vector = gym.make_vec(CAR, 2, vectorization_mode="sync")
    assert evaluate(agent.policy(explore), vector, **settings).lengths.shape == (3,)


# Elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", [False, True])
def test_it_can_be_pickled(agent, explore):
    policy = agent.policy(explore)
    policy.predict(ROWS)  # also with what it has computed by now
    again = pickle.loads(pickle.dumps(agent.policy(explore)))
    fresh = agent.policy(explore)
    np.testing.assert_array_equal(again.predict(ROWS)[0], fresh.predict(ROWS)[0])
    np.testing.assert_array_equal(again.values(ROWS), fresh.values(ROWS))
    assert repr(pickle.loads(pickle.dumps(policy))) == repr(policy)


@pytest.mark.parametrize("explore", [False, True])
def test_a_file_keeps_every_bit(agent, explore, tmp_path):
    policy = agent.policy(explore)
    policy.save(tmp_path / "policy.npz")
    again = LinearPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(policy.weights, again.weights)
    np.testing.assert_array_equal(policy.values(ROWS), again.values(ROWS))
    for ours, theirs in zip(policy.action_values(ROWS), again.action_values(ROWS), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_function_of_the_users_is_passed_again(tmp_path):
    basis = FunctionBasis(lambda state: np.array([1.0, state]))
    policy = RBLSPI("rblspi/ChainWalk-v0", basis, seed=0).learn(100).policy()
    policy.save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="pass it again as basis="):
        LinearPolicy.load(tmp_path / "policy.npz")
    again = LinearPolicy.load(tmp_path / "policy.npz", basis)
    np.testing.assert_array_equal(policy.values(3), again.values(3))


def test_settings_of_the_environment_come_along(tmp_path):
    env = gym.make(CAR, gravity=0.002, max_episode_steps=70)
    RBLSPI(env, RBFGrid(2), seed=1).learn(50).policy().save(tmp_path / "policy.npz")
    made = LinearPolicy.load(tmp_path / "policy.npz").make_environment()
    parameters = made.unwrapped.dynamics.parameters
    np.testing.assert_array_equal(parameters, env.unwrapped.dynamics.parameters)
    assert made.spec.max_episode_steps == 70


# Of estimators, and for them ----------------------------------------------------------------------


def test_a_policy_can_be_given_to_an_estimator():
    policy = trained("RBLSPI").policy()
    walk = random_walk(CAR, 500, seed=1)
    basis = RBFGrid(3)
    fitted = LSTD(basis, 3, discount=0.9, ridge=1e-3).fit(walk, policy)
    listed = LSTD(basis, 3, discount=0.9, ridge=1e-3).fit(walk, policy(walk.next_observations))
    np.testing.assert_array_equal(fitted.weights_, listed.weights_)


# What is refused, and how it looks ----------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_large_batch_in_parts_has_the_same_actions(count, monkeypatch):
    policy = trained("RBLSPI").policy()
    rng = np.random.default_rng(0)
    states = rng.uniform([-1.2, -0.07], [0.6, 0.07], (count, 2))
    allowed = np.ones((count, policy.actions), np.bool_)
    allowed[::2, 0] = False
    whole = policy(states), policy.allowed_actions(states, allowed)
    monkeypatch.setattr("rblspi.policies.linear.AT_A_TIME", 3 * policy.features.size)
    parts = policy(states), policy.allowed_actions(states, allowed)
    np.testing.assert_array_equal(whole, parts)
    assert not (whole[1][::2] == 0).any()


def test_pessimism_without_a_posterior_is_refused():
    with pytest.raises(ValueError, match=r"pessimism=1\.5 needs a posterior: online-lspi has none"):
        replace(trained("OnlineLSPI").policy(), pessimism=1.5)


def test_weights_of_another_basis_are_refused():
    policy = trained("OnlineLSPI").policy()
    with pytest.raises(ValueError, match="9 weights do not fit 17 features x 3 actions"):
        replace(policy, weights=np.zeros(9))


def test_a_policy_without_an_environment_says_so():
    with pytest.raises(ValueError, match="names no environment to act in: pass one"):
        evaluate(replace(trained("OnlineLSPI").policy(), environment=None))


def test_its_repr_says_where_it_comes_from_and_how_it_acts():
    agent = trained("RBLSPI")
    text = repr(agent.policy())
    for words in (f"by rblspi for {CAR}", "3 actions x 17 features of RBFGrid", "greedy"):
        assert words in text
    assert "pessimism=0.5" in repr(replace(agent.policy(), pessimism=0.5))
    online = trained("OnlineLSPI")
    assert "epsilon=0.5" in repr(online.policy(explore=True))
    assert "greedy" in repr(online.policy())
    assert "for" not in repr(RBLSPI(nameless(), OneHot(), seed=0).policy()).split(":")[0]


def test_its_repr_does_not_control_the_terminal():
    policy = replace(
        trained("OnlineLSPI").policy(),
        provenance={"algorithm": "\x1b[31mred\x07"},
        environment={"id": "\x9b2J\u202eµ"},
    )
    assert repr(policy).startswith(r"<LinearPolicy by \x1b[31mred\x07 for \x9b2J\u202eµ: ")


def nameless():
    env = gym.make("rblspi/ChainWalk-v0").unwrapped
    env.spec = None
    return env
