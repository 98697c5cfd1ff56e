"""Learning in vector environments: many copies step, one agent learns."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from rblspi import OPSRL, RBLSPI, RLSVI, OnlineLSPI, RBFGrid, evaluate
from tests.support.agents import assert_same_bits

MODES = list(AutoresetMode)
SIZE = 7


class Corridor(gym.Env):
    """States 0 to 6 in a row; both ends terminate, and the left one cannot be entered from 1."""

    observation_space = gym.spaces.Discrete(SIZE)
    action_space = gym.spaces.Discrete(2, start=3)

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        """Begin anywhere but at the ends."""
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(1, SIZE - 1))
        return self.state, self._info()

    def step(self, action):
        """Go left by 3 and right by 4."""
        self.steps += 1
        if self.steps == self.fails_at:
            raise RuntimeError("out of order")
        assert self._info()["action_mask"][action - 3]
        self.state += 1 if action == 4 else -1
        return self.state, 1.0, self.state == SIZE - 1, False, self._info()

    def _info(self):
        return {"action_mask": np.array([self.state > 1, True], np.int8)}


def corridors(copies, mode, fails_at=None):
    made = [lambda: gym.wrappers.TimeLimit(Corridor(fails_at), 9)] * copies
    return SyncVectorEnv(made, autoreset_mode=mode)


def poles(copies, mode=AutoresetMode.NEXT_STEP):
    return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * copies, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [RBLSPI, OnlineLSPI, RLSVI])
def test_one_copy_is_a_single_environment_to_the_bit(kind, mode):
    basis = RBFGrid(2, low=-1.0, high=1.0)
    single = kind("CartPole-v1", basis, seed=4).learn(episodes=12)
    copies = kind(poles(1, mode), basis, seed=4).learn(episodes=12)
    single.session.clear_episode()
    copies.session.clear_episode()
    assert_same_bits(single, copies)


def kept(agent):
    """Episodes, steps, states, actions, next states and ends, in their order."""
    memory, order = agent.session.memory, agent.session.memory.order()
    columns = (
        *(memory.episodes, memory.steps, memory.observations[:, 0]),
        *(memory.actions, memory.next_observations[:, 0], memory.ends),
    )
    return tuple(column[order].astype(np.int64) for column in columns)


@pytest.mark.parametrize("mode", MODES)
def test_every_transition_is_one_of_a_single_copy(mode):
    agent = OPSRL(corridors(5, mode), seed=1).learn(1000)
    episodes, steps, states, actions, after, ends = kept(agent)
    assert len(states) == agent.num_timesteps == agent.state.table.visits.sum()
    np.testing.assert_array_equal(after, states + np.where(actions == 1, 1, -1))
    follows = np.flatnonzero(episodes[1:] == episodes[:-1])
    np.testing.assert_array_equal(steps[follows + 1], steps[follows] + 1)
    np.testing.assert_array_equal(states[follows + 1], after[follows])
    assert (ends[follows] == 0).all()
    assert ((after == SIZE - 1) == (ends == 1)).all()
    assert (steps[ends == 2] == 8).all()
    assert not ((states == 1) & (actions == 0)).any()  # what the masks forbid


def test_episodes_are_recorded_as_each_copy_ends_them():
    agent = OPSRL(corridors(4, AutoresetMode.NEXT_STEP), seed=2).learn(episodes=50)
    _, steps, *_, ends = kept(agent)
    lengths = sorted(steps[ends > 0] + 1)
    assert 50 <= len(agent.episodes) < 54
    np.testing.assert_array_equal(sorted(agent.episodes[:, 0]), lengths)
    np.testing.assert_array_equal(agent.episodes[:, 0], agent.episodes[:, 1])


def test_learning_in_parts_gives_the_same_bits():
    whole = RBLSPI(poles(3), seed=5).learn(600)
    parts = RBLSPI(poles(3), seed=5)
    while parts.num_timesteps < whole.num_timesteps:
        parts.learn(51, reset_num_timesteps=False)
    # The last part may end a few steps later than the whole.
    assert parts.num_timesteps - whole.num_timesteps < 51 + 3
    done = len(whole.episodes)
    np.testing.assert_array_equal(parts.episodes[:done], whole.episodes)


def test_it_is_saved_and_goes_on_in_one_environment_or_in_many(tmp_path):
    agent = RBLSPI(gym.make_vec("CartPole-v1", 4), seed=6).learn(400)
    agent.save(tmp_path / "agent.npz")
    alone, together = (RBLSPI.load(tmp_path / "agent.npz", env) for env in (None, poles(2)))
    np.testing.assert_array_equal(alone.state.mean, together.state.mean)
    for loaded in (alone, together):
        before = loaded.num_timesteps
        loaded.learn(100, reset_num_timesteps=False)
        assert loaded.num_timesteps - before in (100, 101)
    assert evaluate(agent, episodes=2).lengths.shape == (2,)


def test_copies_in_other_processes():
    # a fork would copy the threads of JAX, where a test before this one has started it
    vector = AsyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2, context="spawn")
    try:
        agent, other = (RBLSPI(env, seed=7) for env in (vector, poles(2)))
        assert_same_bits(agent.learn(200), other.learn(200))
    finally:
        vector.close()


def test_counts_and_what_was_learnt_agree_after_a_failing_step():
    agent = OPSRL(corridors(3, AutoresetMode.SAME_STEP, fails_at=40), seed=0)
    with pytest.raises(RuntimeError, match="out of order"):
        agent.learn(1000)
    assert agent.num_timesteps == agent.state.table.visits.sum() == agent.session.memory.size


@pytest.mark.parametrize(
    "make", [lambda env: OnlineLSPI(env, on_policy=True), lambda env: RLSVI(env, horizon=10)]
)
def test_algorithms_that_follow_one_episode_are_refused(make):
    with pytest.raises(ValueError, match="cannot learn from 2 copies at a time"):
        make(corridors(2, AutoresetMode.NEXT_STEP))
