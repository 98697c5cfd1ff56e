"""One thread learns; others may look, save and stop meanwhile."""

import threading
import time
from contextlib import contextmanager

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, Agent, OnlineLSPI, RBFGrid
from rblspi.online import rblspi
from tests.support.agents import assert_same_bits

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"
ROWS = np.random.default_rng(0).uniform((-1.2, -0.07), (0.5, 0.07), (40, 2))


class Waiting(gym.Wrapper):
    """Its steps wait until they may."""

    def __init__(self):
        super().__init__(gym.make(CAR))
        self.entered, self.may_go_on = threading.Event(), threading.Event()

    def step(self, action):
        self.entered.set()
        assert self.may_go_on.wait(60)
        return self.env.step(action)


@contextmanager
def learning(agent, steps):
    """Learn in another thread; in the end, wait for it."""
    thread = threading.Thread(target=agent.learn, args=(steps,))
    thread.start()
    try:
        yield
    except BaseException:
        agent.stop()
        raise
    finally:
        thread.join()


def test_a_second_thread_that_learns_is_refused():
    env = Waiting()
    agent = RBLSPI(env, RBFGrid(2), seed=0)
    with learning(agent, 50):
        assert env.entered.wait(60)
        with pytest.raises(RuntimeError, match="already learning, in another thread"):
            agent.learn(10)
        env.may_go_on.set()
    assert agent.num_timesteps == 50
    assert agent.learn(10, reset_num_timesteps=False).num_timesteps == 60


def test_learning_stops_from_another_thread():
    agent = RBLSPI(CAR, RBFGrid(2), seed=0)
    with learning(agent, 10**9):
        while agent.num_timesteps < 1000:
            pass
        agent.stop()
    assert 1000 <= agent.num_timesteps < 10**9


def make(kind, period):
    if kind == "RBLSPI":
        settings = {"prior_precision": 0.001, "noise_precision": 0.1}
        return RBLSPI(CAR, RBFGrid(6), update_every=period, seed=0, **settings)
    return OnlineLSPI(CAR, RBFGrid(6), update_every=period, epsilon_decay=0.9999, seed=0)


def assert_consistent(agent):
    """What is counted in several places is the same number everywhere."""
    under_way = max(int(agent.session.episode.steps[0]), 0)
    assert agent.episodes[:, 0].sum() + under_way == agent.num_timesteps
    state = agent.state
    assert state.counters[rblspi.TRANSITIONS] == agent.num_timesteps
    if isinstance(agent, RBLSPI):
        statistics = state.posterior.statistics
        assert statistics.count.sum() + state.buffer.size[0] == agent.num_timesteps
        # The constant feature is 1 in every transition: it counts them too.
        constant = np.argmax(np.ptp(agent.features(ROWS), axis=0) == 0.0)
        np.testing.assert_array_equal(statistics.gram[:, constant, constant], statistics.count)


@pytest.mark.parametrize(("kind", "period"), [("RBLSPI", 20), ("RBLSPI", 100), ("OnlineLSPI", 20)])
def test_what_other_threads_see_and_save_is_consistent(kind, period, tmp_path, monkeypatch):
    monkeypatch.setattr("rblspi.online.agent.PAUSE", 0.01)
    agent = make(kind, period)
    files, policies = [tmp_path / f"{i}.npz" for i in range(20)], []
    with learning(agent, 10**9):
        for file in files:
            agent.save(file)
            policies.append(agent.policy())
            agent.predict(ROWS, deterministic=True)
            if file is files[0]:
                agent.action_values(ROWS)  # takes a while
            time.sleep(0.02)  # the learner's turn
            assert (agent.posterior is None) == (kind == "OnlineLSPI")
        agent.stop()
    whole = make(kind, period).learn(agent.num_timesteps)
    assert_same_bits(whole, agent)  # nobody has disturbed it
    seen = [Agent.load(file) for file in files]
    for loaded in seen:
        assert_consistent(loaded)
    assert len({loaded.num_timesteps for loaded in seen}) > 10
    for policy in policies:
        # With K = 100 the posterior is ahead of the weights: the buffer holds 64 transitions.
        if policy.posterior is not None and period == 20 < policy.provenance["transitions"]:
            mean = policy.posterior.mean
            np.testing.assert_allclose(policy.weights, mean, rtol=1e-5, atol=1e-6)
    middle = seen[10].learn(agent.num_timesteps - seen[10].num_timesteps, reset_num_timesteps=False)
    assert_same_bits(whole, middle)
