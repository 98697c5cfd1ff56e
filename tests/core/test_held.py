"""What compiled code holds between calls from Python is given up afterwards."""

import sys

import gymnasium as gym
import pytest

from rblspi import OPSRL


class Breaking(gym.Wrapper):
    """Raises an error at some step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps == 25:
            raise RuntimeError("broken")
        return super().step(action)


def test_no_reference_is_kept_and_none_is_lost():
    agent = OPSRL(Breaking(gym.make("rblspi/RiverSwim-v0")), seed=0)
    agent.learn(1)
    held = [agent.rng, agent.state.sampled, agent.state.table.counts, agent.state.table.counters]
    before = [sys.getrefcount(thing) for thing in held]
    for _ in range(3):
        agent.learn(5)
    with pytest.raises(RuntimeError, match="broken"):
        agent.learn(50)
    agent.learn(5)
    assert [sys.getrefcount(thing) for thing in held] == before
