"""Comparing agents."""

import numpy as np

from rblspi import Agent
from rblspi.online.agent_file import fields


def assert_same_bits(one, other):
    """Everything that either would save is the same."""
    others = {field.name: field.array for field in fields(other)}
    for field in fields(one):
        np.testing.assert_array_equal(field.array, others.pop(field.name), err_msg=field.name)
    assert not others
    np.testing.assert_array_equal(one.episodes, other.episodes)
    assert one.num_timesteps == other.num_timesteps
    assert one.rng.bit_generator.state == other.rng.bit_generator.state


def assert_resumes_to_the_bit(make, steps, path):
    """Learning in parts, and after a load, gives what learning in one go does."""
    whole, half = make().learn(steps), make().learn(steps // 2)
    half.policy()  # looking changes nothing
    half.save(path)
    loaded = Agent.load(path)
    rest = steps - steps // 2
    for part in (1, rest // 3, rest - 1 - rest // 3):
        loaded.learn(part, reset_num_timesteps=False)
    assert_same_bits(whole, loaded)
    np.testing.assert_array_equal(whole.policy().weights, loaded.policy().weights)
