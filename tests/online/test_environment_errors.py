"""What goes wrong in an environment is told, and what was learnt before agrees with the counts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, Agent, OnlineLSPI, RBFGrid, evaluate
from rblspi.online import online_lspi, rblspi
from rblspi.rollout.collect import collect

ALGORITHMS = {"RBLSPI": RBLSPI, "OnlineLSPI": OnlineLSPI}


class Fragile(gym.Env[Any, Any]):
    """Episodes of ten steps with a reward of one; step number 777, or a reset, fails once."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, error: type[BaseException], where: str) -> None:
        self.error, self.where = error, where
        self.steps, self.resets, self.elapsed = 0, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.resets += 1
        self.elapsed = 0
        if self.where == "reset" and self.resets == 78:
            raise self.error("reset 78")
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.where == "step" and self.steps == 777:
            raise self.error("step 777")
        self.elapsed += 1
        return self._seen(), 1.0, self.elapsed == 10, False, {}

    def _seen(self) -> Any:
        return self.np_random.random(2).astype(np.float32)


def transitions_learnt(agent: Agent) -> int:
    """By the algorithm's own count, which has to agree with that of its sums."""
    state: Any = agent.state
    if isinstance(agent, RBLSPI):
        absorbed = state.posterior.statistics.count.sum()
        assert state.counters[rblspi.TRANSITIONS] == absorbed + state.buffer.size[0]
        return int(state.counters[rblspi.TRANSITIONS])
    return int(state.counters[online_lspi.TRANSITIONS])


@pytest.mark.parametrize("callback", [None, lambda agent: None], ids=["alone", "callback"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(("where", "made"), [("step", 776), ("reset", 770)])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_after_an_error_all_counts_agree_and_learning_goes_on(
    kind: str, where: str, made: int, error: type[BaseException], callback: Any
) -> None:
    agent = ALGORITHMS[kind](Fragile(error, where), RBFGrid(2), seed=0)
    with pytest.raises(error, match=where):
        agent.learn(5000, callback)
    assert agent.num_timesteps == transitions_learnt(agent) == made
    np.testing.assert_array_equal(agent.episodes, [[10.0, 10.0]] * 77)
    agent.learn(24, callback, reset_num_timesteps=False)
    assert agent.num_timesteps == transitions_learnt(agent) == made + 24
    np.testing.assert_array_equal(agent.episodes, [[10.0, 10.0]] * 79)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_what_was_learnt_before_an_error_is_what_is_learnt_without_it(kind: str) -> None:
    broken = ALGORITHMS[kind](Fragile(RuntimeError, "step"), RBFGrid(2), seed=0)
    with pytest.raises(RuntimeError, match="step 777"):
        broken.learn(5000)
    sound = ALGORITHMS[kind](Fragile(RuntimeError, "nowhere"), RBFGrid(2), seed=0).learn(776)
    for deterministic in (True, False):
        ours, theirs = (agent.policy(not deterministic).weights for agent in (broken, sound))
        np.testing.assert_array_equal(ours, theirs)


# What an environment returns ----------------------------------------------------------------------


class Shapes(gym.Env[Any, Any]):
    """Returns what it is told to."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first: Any, following: Any) -> None:
        self.first, self.following = first, following

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.first

    def step(self, action: Any) -> Any:
        return self.following, 0.0, False, False, {}


FINE = np.array([0.5, 0.25])
WRONG = [np.array([0.5]), 0.5, np.float32(0.5), np.zeros((2, 2)), np.zeros(0)]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"shape{np.shape(wrong)}")
@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_observation_of_another_shape_is_an_error(where: str, wrong: Any) -> None:
    """NumPy would repeat a single number."""
    env = Shapes((wrong, {}), FINE) if where == "reset" else Shapes((FINE, {}), wrong)
    agent = RBLSPI(env, RBFGrid(2), seed=0)
    with pytest.raises(ValueError, match=r"returned an observation of shape .* has the shape \(2,"):
        agent.learn(10)
    assert agent.num_timesteps == 0
    with pytest.raises(ValueError, match="shape"):
        list(collect(env, 10))


@pytest.mark.parametrize("first", [FINE, [0.5, 0.25], (FINE, {}, {}), None])
def test_a_reset_of_the_old_style_is_an_error(first: Any) -> None:
    """Without a check, an observation of two numbers would pass for (observation, info)."""
    agent = RBLSPI(Shapes(first, FINE), RBFGrid(2), seed=0)
    with pytest.raises(TypeError, match=r"must return \(observation, info\)"):
        agent.learn(10)
    with pytest.raises((TypeError, ValueError)):
        list(collect(Shapes(first, FINE), 10))
    with pytest.raises((TypeError, ValueError)):
        evaluate(agent, Shapes(first, FINE), longest=10)
