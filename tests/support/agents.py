"""Comparing agents."""

from __future__ import annotations

import numpy as np

from rblspi import Agent
from rblspi.online.agent_file import fields


def assert_same_bits(one: Agent, other: Agent) -> None:
    """Everything that either would save is the same."""
    others = {field.name: field.array for field in fields(other)}
    for field in fields(one):
        np.testing.assert_array_equal(field.array, others.pop(field.name), err_msg=field.name)
    assert not others
    np.testing.assert_array_equal(one.episodes, other.episodes)
    assert one.num_timesteps == other.num_timesteps
    assert one.rng.bit_generator.state == other.rng.bit_generator.state
