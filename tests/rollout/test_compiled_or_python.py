"""One rule decides whether an environment runs compiled, for agents and for collecting alike."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, OnlineLSPI, RBFGrid
from rblspi.environments.base import runs_compiled, step_limit
from rblspi.environments.mountain_car import MountainCar
from rblspi.rollout.collect import collect

CAR = "rblspi/MountainCar-v0"
CALLS = []


class OwnStep(MountainCar):
    def step(self, action):
        CALLS.append("step")
        observation, _, terminated, truncated, info = super().step(action)
        return observation, -7.0, terminated, truncated, info


class OwnReset(MountainCar):
    def reset(self, **arguments):
        CALLS.append("reset")
        return super().reset(**{**arguments, "options": {"state": (-0.31, 0.0)}})


class OwnObservation(MountainCar):
    def observation(self, state):
        CALLS.append("observation")
        return np.array([-0.31, 0.0])


class OwnPicture(MountainCar):
    def draw(self, canvas):
        CALLS.append("draw")


class OwnWrapper(gym.Wrapper):
    def step(self, action):
        CALLS.append("step")
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, -7.0, terminated, truncated, info


class OwnTimeLimit(gym.wrappers.TimeLimit):
    """A subclass of a harmless wrapper may do anything."""


def patched(env):
    """The same environment, with a method replaced on this very object."""
    step = env.step

    def own(action):
        CALLS.append("step")
        observation, _, terminated, truncated, info = step(action)
        return observation, -7.0, terminated, truncated, info

    env.step = own
    return env


def patched_inside():
    env = gym.make(CAR)
    patched(env.unwrapped)
    return env


OWN = {
    "step": (OwnStep, "step"),
    "reset": (OwnReset, "reset"),
    "observation": (OwnObservation, "observation"),
    "inside a time limit": (lambda: gym.wrappers.TimeLimit(OwnStep(), 50), "step"),
    "patched": (lambda: patched(MountainCar()), "step"),
    "patched inside": (patched_inside, "step"),
    "patched wrapper": (lambda: patched(gym.make(CAR)), "step"),
    "wrapper": (lambda: OwnWrapper(gym.make(CAR)), "step"),
    "wrapper inside": (lambda: gym.wrappers.TimeLimit(OwnWrapper(MountainCar()), 50), "step"),
}


def assert_called(method, steps, rewards, observed, expected):
    """The user's method was called, and what it returned is what was learnt or logged."""
    assert set(CALLS) == {method}
    if method == "step":
        assert len(CALLS) == steps
        np.testing.assert_array_equal(rewards, -7.0)
    elif method == "observation":
        np.testing.assert_array_equal(observed, np.tile(expected, (steps, 1)))
    else:
        np.testing.assert_array_equal(observed[0], expected)


@pytest.mark.parametrize("name", OWN)
def test_agents_and_logs_call_what_a_user_has_overridden(name):
    make, method = OWN[name]
    assert not runs_compiled(make())
    agent = OnlineLSPI(make(), RBFGrid(2), seed=0, update_every=100)
    for kept in (lambda: agent.learn(30).session.memory.kept(), lambda: next(collect(make(), 30))):
        CALLS.clear()
        log = kept()
        assert_called(method, 30, log.rewards, log.observations, [-0.31, 0.0])


def test_nothing_else_keeps_an_environment_from_running_compiled():
    assert runs_compiled(gym.make(CAR))
    assert runs_compiled(MountainCar())
    assert runs_compiled(OwnPicture())
    assert runs_compiled(gym.wrappers.TimeLimit(gym.make(CAR), 10))
    assert not runs_compiled(OwnTimeLimit(MountainCar(), 10))
    assert not runs_compiled(gym.make(CAR, render_mode="rgb_array"))
    assert not runs_compiled(gym.make("MountainCar-v0"))


@pytest.mark.parametrize(("inner", "outer"), [(50, 20), (20, 50)])
def test_of_two_time_limits_the_smaller_one_counts(inner, outer):
    def env():
        return gym.wrappers.TimeLimit(gym.make(CAR, max_episode_steps=inner), outer)

    assert runs_compiled(env())
    assert step_limit(env()) == 20
    agent = RBLSPI(env(), RBFGrid(2), seed=0).learn(100)
    np.testing.assert_array_equal(agent.episodes[:, 0], 20)
    plain = RBLSPI(gym.Wrapper(env()), RBFGrid(2), seed=0).learn(100)
    np.testing.assert_array_equal(agent.episodes, plain.episodes)
    for policy in (None, lambda observation: 1):
        (log,) = collect(env(), 100, policy, seed=0)
        np.testing.assert_array_equal(np.flatnonzero(log.truncated), [19, 39, 59, 79, 99])
        assert not log.terminated.any()
