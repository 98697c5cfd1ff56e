"""Evaluating leaves the agent alone, and gives as many episodes as were asked for."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from rblspi import RBLSPI, LinearPolicy, OneHot, RBFGrid, evaluate

CAR = "rblspi/MountainCar-v0"
POLE = RBFGrid(2, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5))


class Walk(gym.Env):
    """A random walk that ends after some steps; without an id."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=7, seeded_in_place=False):
        self.length = length
        self.seeded_in_place = seeded_in_place

    def reset(self, *, seed=None, options=None):
        if self.seeded_in_place and seed is not None and self._np_random is not None:
            state = np.random.default_rng(seed).bit_generator.state
            self._np_random.bit_generator.state = state
        else:
            super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        return self._seen(), float(self.steps), self.steps == self.length, False, {}

    def _seen(self):
        return self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)


class Mine(gym.Wrapper):
    """A wrapper as people write them."""


def agent_on(env):
    return RBLSPI(env, RBFGrid(3), seed=1)


def test_a_wrapper_of_the_users_own_is_no_obstacle():
    agent = agent_on(Mine(gym.make("rblspi/MountainCar-v0"))).learn(50)
    assert len(evaluate(agent, episodes=2).lengths) == 2
    agent.learn(50)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
def test_the_training_environment_keeps_its_random_numbers(in_place, explicit):
    seen = []
    for evaluated in (False, True):
        env = Walk(seeded_in_place=in_place)
        agent = agent_on(env).learn(21, reset_num_timesteps=False)  # whole episodes
        if evaluated:
            evaluate(agent, env if explicit else None, episodes=3, seed=5)
        agent.learn(21, reset_num_timesteps=False)
        seen.append(env.np_random.random(4))
        assert agent.episodes[:, 0].tolist() == [7.0] * 6
    np.testing.assert_array_equal(*seen)


def test_a_failure_while_evaluating_returns_the_environment(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    env = Walk()
    agent = agent_on(env).learn(10)
    before = env.np_random.bit_generator.state
    monkeypatch.setattr(LinearPolicy, "predict", broken)
    with pytest.raises(RuntimeError, match="broken"):
        evaluate(agent)
    assert env.np_random.bit_generator.state == before
    assert agent.learn(7).episodes[-1].tolist() == [7.0, 28.0]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("length", "expected"), [(50, 10), (7, 7)])
def test_every_part_gives_its_episodes(mode, length, expected):
    env = SyncVectorEnv([lambda: Walk(length)] * 2, autoreset_mode=mode)
    result = evaluate(agent_on(Walk()), env, episodes=11, longest=10)
    assert result.lengths.tolist() == [expected] * 11
    assert result.returns.tolist() == [expected * (expected + 1) / 2] * 11


class Together(VectorEnv):
    """Parts that begin only all at once."""

    num_envs = 2
    single_observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    observation_space = gym.spaces.Box(0.0, 1.0, (2, 1))
    single_action_space = gym.spaces.Discrete(2)
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        return np.zeros((2, 1)), {}

    def step(self, actions):
        return np.zeros((2, 1)), np.ones(2), np.zeros(2, bool), np.zeros(2, bool), {}


def test_parts_that_begin_only_together_are_refused_where_that_matters():
    agent = agent_on(Walk())
    assert evaluate(agent, Together(), episodes=2, longest=10).lengths.tolist() == [10.0, 10.0]
    with pytest.raises(ValueError, match=r"not over after longest=10 steps.*pass a larger longest"):
        evaluate(agent, Together(), episodes=3, longest=10)


def test_evaluation_of_a_known_environment():
    agent = RBLSPI(CAR, RBFGrid(2), seed=0)
    short = gym.make(CAR, max_episode_steps=7)
    result = evaluate(agent, short, episodes=5)
    np.testing.assert_array_equal(result.lengths, 7.0)
    np.testing.assert_array_equal(result.returns, -7.0)
    assert result.mean_return == (-7.0, -7.0, -7.0)
    forever = evaluate(RBLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0), episodes=2, longest=9)
    np.testing.assert_array_equal(forever.lengths, 9.0)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_environments_give_the_same_episodes(mode):
    agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(300)
    vector = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=mode)
    result = evaluate(agent, vector, episodes=7, seed=4)
    assert len(result.lengths) == 7
    first = [evaluate(agent, "CartPole-v1", episodes=1, seed=4 + i).lengths[0] for i in range(3)]
    assert set(first) <= set(result.lengths)
    np.testing.assert_array_equal(result.lengths, result.returns)
