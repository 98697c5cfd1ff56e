"""Logs that other tools read, and stopping from a callback."""

import json

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, Agent, LinearPolicy, OnlineLSPI, RBFGrid, evaluate
from rblspi.online.callbacks import CheckpointCallback, EvalCallback, MonitorFile, TensorBoard

POLE = RBFGrid(2, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5))


def test_the_monitor_file_is_that_of_stable_baselines3(tmp_path):
    with MonitorFile(tmp_path / "monitor.csv", "CartPole-v1") as log:
        agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(300, callback=[log])
    first, heading, *rows = (tmp_path / "monitor.csv").read_text().splitlines()
    assert json.loads(first.removeprefix("#"))["env_id"] == "CartPole-v1"
    assert heading == "r,l,t"
    table = np.array([row.split(",") for row in rows], dtype=float)
    np.testing.assert_array_equal(table[:, :2], agent.episodes[:, ::-1])
    assert (np.diff(table[:, 2]) >= 0).all()
    with pytest.raises(ValueError, match=r"must end in monitor\.csv"):
        MonitorFile(tmp_path / "log.csv")


def test_the_monitor_file_goes_on_after_the_episodes_that_the_agent_has(tmp_path):
    path = tmp_path / "monitor.csv"
    with MonitorFile(path) as log:
        agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(episodes=3, callback=log)
    whole = path.read_bytes()
    for content in (whole + b"9.0,9,9.0\n9.0,9,9.0\n", whole):
        path.write_bytes(content)
        with MonitorFile(path, append_to=3):
            pass
        assert path.read_bytes() == whole
    path.write_bytes(whole + b"\xff\xb2,1,1.0\n")  # not a text any more
    with MonitorFile(path, append_to=3):
        assert path.read_bytes() == whole
    path.write_bytes(whole[:-2])
    with MonitorFile(path, append_to=3) as log:
        agent.learn(episodes=1, callback=log)
    lines = path.read_bytes().splitlines()
    assert lines[:-1] == [*whole.splitlines()[:-1], whole.splitlines()[-1][:-1]]
    assert float(lines[-1].split(b",")[0]) == agent.episodes[3, 1]


def test_tensorboard_files_are_written(tmp_path):
    pytest.importorskip("tensorboardX")
    with TensorBoard(tmp_path) as log:
        OnlineLSPI("CartPole-v1", POLE, seed=0).learn(200, callback=log)
    (events,) = tmp_path.iterdir()
    content = events.read_bytes()
    assert b"rollout/ep_rew_mean" in content
    assert b"train/epsilon" in content


@pytest.mark.parametrize(
    ("answer", "episodes"),
    [(False, 1), (np.False_, 1), (0, 1), (None, 3), (True, 3), (np.True_, 3)],
)
def test_a_callback_that_returns_false_of_any_kind_stops(answer, episodes):
    agent = RBLSPI(gym.make("rblspi/MountainCar-v0", max_episode_steps=20), RBFGrid(2), seed=0)
    agent.learn(100_000, callback=lambda agent: answer, episodes=3)
    assert len(agent.episodes) == episodes


def learnt(callback, steps=1050):
    """An agent where no episode ever ends."""
    return OnlineLSPI("rblspi/ChainWalk-v0", seed=0).learn(steps, callback=callback)


def test_the_latest_checkpoints_are_kept_and_others_files_left_alone(tmp_path):
    (tmp_path / "agent_notes.npz").write_text("mine")
    agent = learnt(CheckpointCallback(100, tmp_path, keep=2))
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"agent_900.npz", "agent_1000.npz", "agent_notes.npz"}
    again = Agent.load(tmp_path / "agent_1000.npz").learn(50, reset_num_timesteps=False)
    np.testing.assert_array_equal(again.policy().weights, agent.policy().weights)


def test_callbacks_between_steps_change_nothing():
    seen = []

    class Often:
        def steps_to_go(self, agent):
            return 7 * (len(seen) + 1) - agent.num_timesteps

        def __call__(self, agent):
            seen.append(agent.num_timesteps)
            return len(seen) < 50

    agent = learnt(Often())
    assert seen == list(range(7, 351, 7))  # False stops the learning
    np.testing.assert_array_equal(agent.policy().weights, learnt(None, 350).policy().weights)


def test_the_best_policy_so_far_is_kept(tmp_path):
    settings = {"n_eval_episodes": 2, "best_model_save_path": tmp_path}
    env = gym.make("rblspi/ChainWalk-v0", max_episode_steps=50)
    callback = EvalCallback(env, eval_freq=100, **settings)
    agent = learnt(callback, 400)
    assert [row.timesteps for row in callback.history] == [100, 200, 300, 400]
    best = callback.best
    assert best is not None
    kept = LinearPolicy.load(tmp_path / "best.npz")
    assert evaluate(kept, env, 2, seed=0).mean_return.mean == best.mean
    assert best.mean == max(row.mean for row in callback.history)
    np.testing.assert_array_equal(agent.policy().weights, learnt(None, 400).policy().weights)
    rows = (tmp_path / "evaluations.csv").read_text().splitlines()
    assert rows[0] == "timesteps,mean,low,high"
    assert len(rows) == 5
    on = EvalCallback(env, eval_freq=100, resume=True, **settings)
    assert on.history == callback.history
    agent.learn(100, on, reset_num_timesteps=False)
    assert [row.timesteps for row in on.history] == [100, 200, 300, 400, 500]
