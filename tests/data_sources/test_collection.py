from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from rblspi.rollout import collect
from tests.support.logs import assert_same, joined


def whole(*arguments, **named):
    return joined(collect(*arguments, **named))


def test_random_walks_obey_the_dynamics():
    log = whole("rblspi/MountainCar-v0", 2000, seed=1)
    assert log.size == 2000
    assert set(np.unique(log.actions)) == {0, 1, 2}
    np.testing.assert_array_equal(np.flatnonzero(log.truncated), [499, 999, 1499, 1999])
    follows = ~log.truncated[:-1] & ~log.terminated[:-1]
    np.testing.assert_array_equal(
        log.next_observations[:-1][follows], log.observations[1:][follows]
    )
    car = gym.make("rblspi/MountainCar-v0").unwrapped
    for row in (0, 700, 1999):
        car.reset(options={"state": log.observations[row]})
        after, reward, terminated, _, _ = car.step(int(log.actions[row]))
        np.testing.assert_array_equal(after, log.next_observations[row])
        assert (reward, terminated) == (log.rewards[row], log.terminated[row])


@pytest.mark.parametrize("env", ["rblspi/CartPole-v0", "CartPole-v1"])
def test_the_seed_decides(env):
    first = whole(env, 300, seed=3)
    again = whole(env, 300, seed=3)
    other = whole(env, 300, seed=4)
    assert_same(first, again)
    assert (first.observations != other.observations).any()


@pytest.mark.parametrize("env", ["rblspi/CartPole-v0", "CartPole-v1"])
def test_episodes_can_be_counted_instead(env):
    log = whole(env, episodes=20, seed=0)
    assert (log.terminated | log.truncated).sum() == 20
    assert log.terminated[-1]


@pytest.mark.parametrize(("env", "shape"), [("rblspi/ChainWalk-v0", ()), ("Blackjack-v1", (3,))])
def test_discrete_states_are_whole_numbers(env, shape):
    log = whole(env, 100)
    assert log.observations.dtype == np.int64
    assert log.observations.shape == (100, *shape)


def test_faulty_requests_are_refused():
    with pytest.raises(ValueError, match="needs transitions or episodes"):
        next(collect("CartPole-v1"))
    with pytest.raises(ValueError, match="transitions=0 must be at least 1"):
        next(collect("CartPole-v1", 0))


@pytest.mark.parametrize("env", ["rblspi/MountainCar-v0", "MountainCar-v0"])
def test_a_time_limit_cuts_episodes_short(env, monkeypatch):
    monkeypatch.setitem(collect.__globals__, "CHUNK", 70)
    chunks = list(collect(gym.make(env, max_episode_steps=50), 230, seed=0))
    assert [chunk.size for chunk in chunks] == [70, 70, 70, 20]
    log = joined(chunks)
    assert not log.terminated.any()
    np.testing.assert_array_equal(np.flatnonzero(log.truncated), [49, 99, 149, 199])
    np.testing.assert_array_equal(np.flatnonzero(log.starts()), [0, 50, 100, 150, 200])
    borders = [chunk.starts(before) for before, chunk in pairwise([None, *chunks])]
    np.testing.assert_array_equal(np.concatenate(borders), log.starts())
    # The next observation of a row that was cut short belongs to the same episode.
    ends = np.flatnonzero(log.truncated)
    assert (log.next_observations[ends] != log.observations[ends + 1]).any(axis=1).all()
