"""A policy answers as its agent does: also in another process, and from a file."""

from __future__ import annotations

import multiprocessing
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import (
    BLSPI,
    LSTD,
    OPSRL,
    RBLSPI,
    Agent,
    FunctionBasis,
    LinearPolicy,
    OneHot,
    OnlineLSPI,
    RBFGrid,
    evaluate,
)
from rblspi.core.archive import FileError
from rblspi.rollout.collect import random_walk

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"
ROWS = np.random.default_rng(0).uniform((-1.2, -0.07), (0.5, 0.07), (40, 2))


def trained(kind: str) -> Agent:
    """In the middle of an episode, and half of the actions of online LSPI are random."""
    if kind == "RBLSPI":
        settings = {"prior_precision": 0.01, "noise_precision": 0.1}
        return RBLSPI(CAR, RBFGrid(4), seed=3, **settings).learn(2050)
    return OnlineLSPI(CAR, RBFGrid(4), seed=3, epsilon=0.5, epsilon_decay=1.0).learn(2050)


@pytest.fixture(params=["RBLSPI", "OnlineLSPI"])
def agent(request: pytest.FixtureRequest) -> Agent:
    return trained(request.param)


def assert_same_answers(one: Any, other: Any) -> None:
    """The same bits, whoever gives them."""
    np.testing.assert_array_equal(
        one.predict(ROWS, deterministic=True)[0], other.predict(ROWS, deterministic=True)[0]
    )
    samples = 5 if one.action_values(ROWS[0]).std is not None else 0
    for ours, theirs in zip(
        one.action_values(ROWS, samples), other.action_values(ROWS, samples), strict=True
    ):
        assert (ours is None) == (theirs is None)
        np.testing.assert_array_equal(ours, theirs)
    if samples:
        np.testing.assert_array_equal(one.probability_best(ROWS), other.probability_best(ROWS))


# As the agent -------------------------------------------------------------------------------------


def test_a_policy_answers_as_its_agent_does(agent: Agent) -> None:
    assert_same_answers(agent, agent.evaluated_policy())
    for observation in ROWS[:5]:
        ours, theirs = agent.predict(observation, "kept")[0], agent.policy().predict(observation)[0]
        assert type(ours) is type(theirs) is int
        np.testing.assert_array_equal(
            agent.action_values(observation).mean,
            agent.evaluated_policy().action_values(observation).mean,
        )


def test_an_agent_that_learns_on_evaluates_its_policy_again() -> None:
    """Also if it counts its steps from zero again, to the same number."""
    agent = OPSRL("rblspi/ChainWalk-v0", seed=0).learn(50)
    before = agent.evaluated_policy()
    assert agent.evaluated_policy() is before
    assert agent.learn(50).evaluated_policy() is not before


def test_an_exploring_policy_explores_as_its_agent_does(agent: Agent) -> None:
    exploring = agent.policy(explore=True)
    greedy = agent.predict(ROWS, deterministic=True)[0]
    for _ in range(3):  # the random numbers go on
        chosen = exploring.predict(ROWS)[0]
        np.testing.assert_array_equal(chosen, agent.predict(ROWS)[0])
    assert (chosen != greedy).any()


def test_only_the_exploring_policy_is_random() -> None:
    agent = trained("OnlineLSPI")
    greedy = agent.predict(ROWS, deterministic=True)[0]
    for policy in (agent.policy(), agent.policy(explore=True)):
        np.testing.assert_array_equal(policy.predict(ROWS, deterministic=True)[0], greedy)
        np.testing.assert_array_equal(policy(ROWS), greedy)
    np.testing.assert_array_equal(agent.policy().predict(ROWS)[0], greedy)


def test_making_a_policy_leaves_the_agent_as_it_is(agent: Agent) -> None:
    before = agent.rng.bit_generator.state
    agent.policy(explore=True).predict(ROWS)
    assert agent.rng.bit_generator.state == before


def test_learning_on_does_not_change_a_policy(agent: Agent) -> None:
    for explore in (False, True):
        policy = agent.policy(explore)
        weights, values = policy.weights.copy(), policy.action_values(ROWS)
        agent.learn(300)
        np.testing.assert_array_equal(policy.weights, weights)
        np.testing.assert_array_equal(policy.action_values(ROWS).mean, values.mean)
        if values.std is not None:
            np.testing.assert_array_equal(policy.action_values(ROWS).std, values.std)
        assert not np.array_equal(agent.policy(explore).weights, weights)


@pytest.mark.parametrize("explore", [False, True])
def test_it_is_evaluated_as_its_agent_is(agent: Agent, explore: bool) -> None:
    settings = {"episodes": 3, "longest": 200, "seed": 7, "deterministic": not explore}
    ours = evaluate(agent.policy(explore), **settings)
    np.testing.assert_array_equal(ours, evaluate(agent, **settings))
    vector = gym.make_vec(CAR, 2, vectorization_mode="sync")
    assert evaluate(agent.policy(explore), vector, **settings).lengths.shape == (3,)


# Elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", [False, True])
def test_it_can_be_pickled(agent: Agent, explore: bool) -> None:
    policy = agent.policy(explore)
    policy.predict(ROWS)  # also with what it has computed by now
    again: LinearPolicy = pickle.loads(pickle.dumps(agent.policy(explore)))
    fresh = agent.policy(explore)
    np.testing.assert_array_equal(again.predict(ROWS)[0], fresh.predict(ROWS)[0])
    np.testing.assert_array_equal(again.action_values(ROWS).mean, fresh.action_values(ROWS).mean)
    assert repr(pickle.loads(pickle.dumps(policy))) == repr(policy)


@pytest.mark.slow
def test_it_answers_the_same_in_another_process() -> None:
    policy = trained("RBLSPI").policy()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(policy.action_values, (ROWS, 4))
        chosen, _ = pool.apply(policy.predict, (ROWS,))
    for ours, theirs in zip(policy.action_values(ROWS, 4), there, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(policy.predict(ROWS)[0], chosen)


@pytest.mark.parametrize("explore", [False, True])
def test_a_file_keeps_every_bit(agent: Agent, explore: bool, tmp_path: Path) -> None:
    policy = agent.policy(explore)
    policy.save(tmp_path / "policy.npz")
    again = LinearPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(policy.weights, again.weights)
    for ours, theirs in zip(policy.action_values(ROWS), again.action_values(ROWS), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if policy.posterior is not None:
        np.testing.assert_array_equal(policy.probability_best(ROWS), again.probability_best(ROWS))
        assert policy.posterior.log_evidence() == again.posterior.log_evidence()
    for name in ("epsilon", "pessimism", "discount", "environment", "provenance", "seed"):
        assert getattr(policy, name) == getattr(again, name), name
    assert policy.observation_space == again.observation_space
    assert policy.action_space == again.action_space
    assert repr(policy) == repr(again)
    settings = {"episodes": 2, "longest": 100}
    np.testing.assert_array_equal(evaluate(policy, **settings), evaluate(again, **settings))


def test_no_stated_value_is_beyond_what_the_rewards_allow(tmp_path: Path) -> None:
    # Every step of the cart pole brings 1: with a discount of 0.99, values are from 1 to 100.
    agent = RBLSPI("CartPole-v1", RBFGrid(3), seed=0).learn(1000)
    rows = np.random.default_rng(0).uniform(-3.0, 3.0, (500, 4))
    policy = replace(agent.evaluated_policy(), second=None)
    assert policy.limits == pytest.approx((1.0, 100.0))
    free = replace(policy, limits=(-np.inf, np.inf))
    beyond = free.action_values(rows).mean
    assert beyond.min() < 1.0 or beyond.max() > 100.0  # otherwise nothing was tested
    np.testing.assert_array_equal(policy.action_values(rows).mean, beyond.clip(*policy.limits))
    np.testing.assert_array_equal(policy(rows), free(rows))
    with_second = agent.action_values(rows).mean
    assert 1.0 - 1e-9 <= with_second.min() <= with_second.max() <= 100.0 + 1e-9
    for limits in (policy.limits, (-np.inf, 0.0), (-np.inf, np.inf)):
        replace(policy, limits=limits).save(tmp_path / "policy.npz")
        assert LinearPolicy.load(tmp_path / "policy.npz").limits == limits


def test_limits_have_an_order() -> None:
    policy = trained("RBLSPI").policy()
    with pytest.raises(ValueError, match="the lower number first"):
        replace(policy, limits=(1.0, 0.0))


def test_a_save_that_fails_leaves_the_old_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, agent = tmp_path / "policy.npz", trained("OnlineLSPI")
    agent.policy().save(path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        agent.learn(100).policy().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["policy.npz"]


def test_a_function_of_the_users_is_passed_again(tmp_path: Path) -> None:
    basis = FunctionBasis(lambda state: np.array([1.0, state]))
    policy = RBLSPI("rblspi/ChainWalk-v0", basis, seed=0).learn(100).policy()
    policy.save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="pass it again as basis="):
        LinearPolicy.load(tmp_path / "policy.npz")
    again = LinearPolicy.load(tmp_path / "policy.npz", basis)
    np.testing.assert_array_equal(policy.action_values(3).mean, again.action_values(3).mean)


def test_settings_of_the_environment_come_along(tmp_path: Path) -> None:
    env = gym.make(CAR, gravity=0.002, max_episode_steps=70)
    RBLSPI(env, RBFGrid(2), seed=1).learn(50).policy().save(tmp_path / "policy.npz")
    made = LinearPolicy.load(tmp_path / "policy.npz").make_environment()
    parameters = made.unwrapped.dynamics.parameters
    np.testing.assert_array_equal(parameters, env.unwrapped.dynamics.parameters)
    assert made.spec.max_episode_steps == 70


# Of estimators, and for them ----------------------------------------------------------------------


def test_a_policy_can_be_given_to_an_estimator() -> None:
    policy = trained("RBLSPI").policy()
    walk = random_walk(CAR, 500, seed=1)
    basis = RBFGrid(3)
    fitted = LSTD(basis, 3, discount=0.9, ridge=1e-3).fit(walk, policy)
    listed = LSTD(basis, 3, discount=0.9, ridge=1e-3).fit(walk, policy(walk.next_observations))
    np.testing.assert_array_equal(fitted.weights_, listed.weights_)


@pytest.mark.filterwarnings("ignore::rblspi.offline.iterations.ConvergenceWarning")
def test_an_estimators_policy_acts_by_lower_bounds() -> None:
    env = "rblspi/InvertedPendulum-v0"
    walk = random_walk(env, 2000, seed=0)
    basis = RBFGrid(3, low=(-0.8, -1.0), high=(0.8, 1.0))
    policy = BLSPI(basis, 3, discount=0.95, pessimism=2.0).fit(walk).policy(env)
    rows = walk.observations[:200]
    mean, std = policy.posterior.predict(policy.features(rows))
    expected = np.argmax(mean - 2.0 * std, axis=1)
    assert (expected != np.argmax(mean, axis=1)).any()
    for chosen in (policy(rows), policy.predict(rows)[0], policy.predict(rows)[0]):
        np.testing.assert_array_equal(chosen, expected)
    assert evaluate(policy, episodes=1, longest=20).lengths[0] > 0


class FromThree(gym.ActionWrapper):
    """The mountain car, with actions counted from 3."""

    def __init__(self) -> None:
        super().__init__(gym.make(CAR))
        self.action_space = gym.spaces.Discrete(3, start=3)

    def action(self, action: Any) -> Any:
        return action - 3


def test_actions_are_those_of_the_space_and_a_batch_is_counted_from_zero() -> None:
    policy = RBLSPI(FromThree(), RBFGrid(2), seed=0).learn(200).policy()
    np.testing.assert_array_equal(policy.predict(ROWS)[0], policy(ROWS) + 3)


# What is refused, and how it looks ----------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_large_batch_in_parts_has_the_same_actions(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_pessimism_without_a_posterior_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pessimism=1\.5 needs a posterior: online-lspi has none"):
        replace(trained("OnlineLSPI").policy(), pessimism=1.5)
    with pytest.raises(ValueError, match="online-lspi keeps no posterior to draw samples=7 from"):
        trained("OnlineLSPI").policy().action_values(ROWS, samples=7)


def test_weights_of_another_basis_are_refused() -> None:
    policy = trained("OnlineLSPI").policy()
    with pytest.raises(ValueError, match="9 weights do not fit 17 features x 3 actions"):
        replace(policy, weights=np.zeros(9))


def test_a_policy_without_an_environment_says_so() -> None:
    with pytest.raises(ValueError, match="names no environment to act in: pass one"):
        evaluate(replace(trained("OnlineLSPI").policy(), environment=None))


def test_its_repr_says_where_it_comes_from_and_how_it_acts() -> None:
    agent = trained("RBLSPI")
    text = repr(agent.policy())
    for words in (f"by rblspi for {CAR}", "3 actions x 17 features of RBFGrid", "greedy"):
        assert words in text
    assert "with a posterior" in text
    assert "pessimism=0.5" in repr(replace(agent.policy(), pessimism=0.5))
    online = trained("OnlineLSPI")
    assert "epsilon=0.5, no posterior" in repr(online.policy(explore=True))
    assert "greedy" in repr(online.policy())
    assert "for" not in repr(RBLSPI(nameless(), OneHot(), seed=0).policy()).split(":")[0]


def test_its_repr_does_not_control_the_terminal() -> None:
    policy = replace(
        trained("OnlineLSPI").policy(),
        provenance={"algorithm": "\x1b[31mred\x07"},
        environment={"id": "\x9b2J\u202eµ"},
    )
    assert repr(policy).startswith(r"<LinearPolicy by \x1b[31mred\x07 for \x9b2J\u202eµ: ")


def nameless() -> gym.Env[Any, Any]:
    env = gym.make("rblspi/ChainWalk-v0").unwrapped
    env.spec = None
    return env
