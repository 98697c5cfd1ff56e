"""Agents learn from observations of every kind, and their files and policies know them."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import SyncVectorEnv

import rblspi
from rblspi import FQI, OPSRL, RBLSPI, RLSVI, LinearPolicy, OneHot, evaluate
from rblspi.features.one_hot import WHOLE
from rblspi.rollout import collect
from rblspi.rollout.collect import random_walk


class Corridor(gym.Env):
    """Six places; going right from the last is worth 1 and ends the episode."""

    def __init__(self, space, observed):
        self.observation_space, self.observed = space, observed
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0, 0
        return self.observed(self.place), {}

    def step(self, action):
        self.time += 1
        self.place = max(self.place + (1 if action else -1), 0)
        done = self.place == 6
        return self.observed(min(self.place, 5)), float(done), done, self.time == 30, {}


SEEN = {
    "Tuple": (Tuple((Discrete(2), Discrete(3))), lambda i: (i // 3, i % 3)),
    "MultiDiscrete": (MultiDiscrete([2, 3]), lambda i: np.array([i // 3, i % 3])),
    "MultiBinary": (MultiBinary(3), lambda i: np.array([i >> 2 & 1, i >> 1 & 1, i & 1], np.int8)),
    "integers": (Box(0, 5, (1,), np.int64), lambda i: np.array([i])),
    "named": (
        Dict(row=Discrete(2, start=1), column=Discrete(3)),
        lambda i: {"row": 1 + i // 3, "column": i % 3},
    ),
}


def test_whole_numbers_in_a_box_of_floats_are_a_table(tmp_path, capsys):
    space = Box(np.array([-1.0, 0.0]), np.array([0.0, 2.0]), dtype=np.float64)
    env = Corridor(space, lambda i: np.array([i // 3 - 1.0, i % 3]))
    agent = rblspi.agent(env, seed=0).learn(600)
    assert type(agent) is OPSRL
    assert agent.features.size == 6
    assert "whole numbers, 6 different ones: opsrl learns a table" in capsys.readouterr().err
    rows = np.array([[i // 3 - 1.0, i % 3] for i in range(6)])
    np.testing.assert_array_equal(agent.features(rows), np.eye(6))
    np.testing.assert_array_equal(agent.features(rows + 1e-9), np.eye(6))
    assert (agent.predict(rows, deterministic=True)[0] == 1).all()
    agent.policy().save(tmp_path / "policy.npz")
    policy = LinearPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(policy.action_values(rows).mean, agent.action_values(rows).mean)
    halves = Corridor(space, lambda i: np.array([i // 3 - 1.0, i % 3 / 2.0]))
    assert rblspi.agent(halves, seed=0).basis != WHOLE


@pytest.mark.parametrize("kind", [RLSVI, OPSRL])
def test_blackjack_is_played_as_a_table(kind, tmp_path):
    agent = kind("Blackjack-v1", seed=0).learn(20)
    assert agent.basis == OneHot(joint=True)
    assert agent.features.size == 32 * 11 * 2
    action, _ = agent.predict((14, 10, 0), deterministic=True)
    assert action in (0, 1)
    result = evaluate(agent, episodes=20)
    assert set(result.returns) <= {-1.0, 0.0, 1.0, 1.5}
    parts = SyncVectorEnv([lambda: gym.make("Blackjack-v1")] * 3)
    assert len(evaluate(agent, parts, episodes=9).returns) == 9
    agent.save(tmp_path / "agent.npz")
    again = kind.load(tmp_path / "agent.npz").learn(5)
    assert again.features.size == agent.features.size
    agent.policy().save(tmp_path / "policy.npz")
    policy = LinearPolicy.load(tmp_path / "policy.npz")
    assert policy.observation_space == agent.env.observation_space
    assert policy.predict((14, 10, 0), deterministic=True)[0] == action


@pytest.mark.parametrize(("kind", "name"), [(RLSVI, "Tuple"), *((OPSRL, name) for name in SEEN)])
def test_a_corridor_is_learnt_however_its_places_are_written(kind, name):
    """One table for all of them, so the same seeds give the same actions to the bit."""
    env = Corridor(*SEEN[name])
    agent = kind(env, seed=1).learn(200)
    assert evaluate(agent, env, 3).lengths.tolist() == [6, 6, 6]
    plain = kind(Corridor(Discrete(6), lambda i: i), seed=1).learn(200)
    if name in ("Tuple", "MultiDiscrete", "named", "integers"):  # as many combinations as places
        np.testing.assert_array_equal(agent.episodes, plain.episodes)


def test_parts_of_different_kinds_are_learnt_from_and_logged():
    space = Dict(place=Box(0.0, 5.0, (1,), np.float64), dark=Discrete(2))
    seen = lambda i: {"place": np.array([float(i)]), "dark": i % 2}  # noqa: E731
    env = Corridor(space, seen)
    agent = RLSVI(env, seed=0).learn(200)
    assert agent.features.input_size == 3
    assert evaluate(agent, env, 2).lengths.tolist() == [6, 6]
    batch = [seen(i) for i in range(6)]
    np.testing.assert_array_equal(agent.predict(batch, deterministic=True)[0], 1)
    (log,) = collect(env, 200, seed=3)
    walk = random_walk(env, 200, seed=3)
    for rows in (log, walk):
        assert rows.observations.shape == (200, 3)
        place, *dark = rows.observations.T
        np.testing.assert_array_equal(np.array(dark).T, np.eye(2)[place.astype(int) % 2])
    fitted = FQI(actions=2, discount=0.9, observation_space=space).fit(log)
    assert evaluate(fitted.policy(), env, 2).lengths.tolist() == [6, 6]


def test_a_given_basis_finds_bounds_as_the_default_does(tmp_path):
    from rblspi import RBFGrid

    agent = RBLSPI("CartPole-v1", RBFGrid(2), seed=0).learn(50)
    default = RBLSPI("CartPole-v1", seed=0)
    assert (agent.basis.low, agent.basis.high) == (default.basis.low, default.basis.high)
    agent.save(tmp_path / "agent.npz")
    assert RBLSPI.load(tmp_path / "agent.npz").basis == agent.basis
