"""The transitions that an agent keeps."""

import numpy as np
import pytest

from rblspi import OnlineLSPI, RBFGrid
from rblspi.rollout.memory import (
    CONTINUES,
    NUMBERS,
    SEEN,
    TERMINATED,
    Transition,
    capacity_for,
    new_memory,
    remember,
)

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"


def filled(capacity, count, length=7):
    """A memory of transitions that are numbered; every episode has the same length."""
    memory = new_memory(capacity, 1, 2)
    for t in range(count):
        memory.workspace[0] = t
        end = TERMINATED if t % length == length - 1 else CONTINUES
        after, mask = np.array([t + 1.0]), np.ones(2, np.uint8)
        transition = Transition(memory.workspace, t % 2, -float(t), after, mask, end)
        remember(memory, 1 + t // length, t % length, after, transition)
    return memory


def test_as_long_as_there_is_room_everything_is_kept():
    memory = filled(100, 60)
    log = memory.transitions((1,))
    np.testing.assert_array_equal(log.observations[:, 0], np.arange(60))
    np.testing.assert_array_equal(log.next_observations[:, 0], np.arange(1, 61))
    np.testing.assert_array_equal(log.rewards, -np.arange(60.0))
    np.testing.assert_array_equal(np.flatnonzero(log.terminated), np.arange(6, 60, 7))
    np.testing.assert_array_equal(np.flatnonzero(log.starts()), np.arange(0, 60, 7))


def test_what_is_kept_comes_from_all_over_a_life_with_equal_probability():
    capacity, count = 2000, 20_000
    kept = filled(capacity, count).transitions((1,)).observations[:, 0]
    assert len(np.unique(kept)) == capacity
    tenths = np.histogram(kept, 10, (0, count))[0]
    # Ten binomials with a deviation of 13: six of them are 80.
    assert np.abs(tenths - capacity / 10).max() < 80


def test_rows_stay_whole_when_they_are_replaced():
    log = filled(50, 5000).transitions((1,))
    state = log.observations[:, 0]
    np.testing.assert_array_equal(log.next_observations[:, 0], state + 1)
    np.testing.assert_array_equal(log.rewards, -state)
    np.testing.assert_array_equal(log.actions, state % 2)
    np.testing.assert_array_equal(log.terminated, state % 7 == 6)


def test_rows_that_are_retained_stay_whole_and_make_room():
    memory = filled(50, 50)
    assert memory.room == 0
    memory.retain(np.arange(50) % 3 == 0)
    assert (memory.size, memory.room) == (17, 33)
    log = memory.transitions((1,))
    np.testing.assert_array_equal(log.observations[:, 0], np.arange(0, 50, 3))
    np.testing.assert_array_equal(log.rewards, -log.observations[:, 0])
    np.testing.assert_array_equal(log.terminated, log.observations[:, 0] % 7 == 6)


def test_fewer_than_all_are_evenly_spaced_and_episodes_still_end():
    memory = filled(100, 63)
    log = memory.transitions((1,), 21)
    np.testing.assert_array_equal(log.observations[[0, -1], 0], [0, 62])
    assert set(np.diff(log.observations[:, 0])) == {3.0, 4.0}
    np.testing.assert_array_equal(log.terminated, log.observations[:, 0] % 7 == 6)
    episodes = log.observations[:, 0] // 7
    np.testing.assert_array_equal(log.starts()[1:], np.diff(episodes) > 0)
    assert memory.transitions((1,), 63).size == memory.transitions((1,)).size == 63


def test_large_observations_are_fewer():
    assert capacity_for(4) == 20_000
    assert capacity_for(10**4) * 2 * 10**4 <= NUMBERS
    assert capacity_for(10**9) == 1


def test_an_agent_remembers_what_it_learnt_from():
    agent = OnlineLSPI(CAR, RBFGrid(3), seed=0).learn(700)
    log = agent.session.memory.transitions((2,))
    assert log.size == agent.session.memory.counters[SEEN] == 700
    goes_on = ~log.starts()[1:]
    np.testing.assert_array_equal(
        log.observations[1:][goes_on], log.next_observations[:-1][goes_on]
    )
    assert (log.rewards[~log.terminated] == -1.0).all()
