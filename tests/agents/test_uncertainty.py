"""What an agent says of action values, and how good its policy is."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rblspi import RBLSPI, Agent, OneHot, OnlineLSPI, RBFGrid
from rblspi.agents.callbacks import MonitorFile, TensorBoard
from rblspi.agents.evaluation import evaluate
from rblspi.report import calibration, ink, maps

CAR = "rblspi/MountainCar-v0"
POLE = RBFGrid(2, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5))


@pytest.fixture(scope="module")
def car() -> RBLSPI:
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


@pytest.fixture(scope="module")
def chain() -> RBLSPI:
    return RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0).learn(20_000)


# Action values --------------------------------------------------------------------------------


def test_samples_have_the_stated_mean_and_deviation(car: RBLSPI) -> None:
    rng = np.random.default_rng(0)
    values = car.action_values([[-0.5, 0.0], [0.3, 0.05]], samples=20_000, rng=rng)
    assert values.samples.shape == (20_000, 2, 3)
    error = values.std / np.sqrt(20_000)
    assert (np.abs(values.samples.mean(axis=0) - values.mean) < 5 * error).all()
    np.testing.assert_allclose(values.samples.std(axis=0), values.std, rtol=0.05)


def test_one_observation_is_a_row_of_a_batch(car: RBLSPI) -> None:
    batch = car.action_values([[-0.5, 0.0], [0.3, 0.05]], samples=4)
    one = car.action_values([0.3, 0.05], samples=4)
    np.testing.assert_allclose(one.mean, batch.mean[1])
    np.testing.assert_allclose(one.std, batch.std[1])
    np.testing.assert_allclose(one.samples, batch.samples[:, 1])


def test_probabilities_add_up_and_follow_the_samples(car: RBLSPI) -> None:
    observations = np.array([[-0.5, 0.0], [0.3, 0.05]])
    samples = car.action_values(observations, samples=500).samples
    probability = car.probability_best(observations, samples=500)
    np.testing.assert_allclose(probability.sum(axis=-1), 1.0)
    np.testing.assert_allclose(probability[0, 2], np.mean(samples[:, 0].argmax(axis=1) == 2))
    np.testing.assert_array_equal(car.probability_best(observations[0], 500), probability[0])


def test_asking_changes_nothing(car: RBLSPI) -> None:
    before = car.rng.bit_generator.state
    car.probability_best([-0.5, 0.0])
    assert car.rng.bit_generator.state == before


def test_an_agent_without_a_posterior_says_so() -> None:
    agent = OnlineLSPI(CAR, RBFGrid(2), seed=0)
    assert agent.action_values([0.0, 0.0]).std is None
    with pytest.raises(ValueError, match="OnlineLSPI keeps no posterior"):
        agent.probability_best([0.0, 0.0])
    with pytest.raises(ValueError, match="OnlineLSPI states no intervals"):
        calibration.calibrate(agent)


# Calibration ----------------------------------------------------------------------------------


def test_coverage_of_numbers_drawn_as_stated() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50_000), rng.uniform(0.1, 2.0, 50_000)
    result = calibration.Calibration(mean, std, rng.normal(mean, std), np.zeros(50_000))
    np.testing.assert_allclose(result.coverage(calibration.LEVELS), calibration.LEVELS, atol=0.01)
    assert result.discrepancy < 0.01


def test_on_the_chain_the_truth_is_exact(chain: RBLSPI) -> None:
    result = calibration.calibrate(chain)
    assert result.truth.shape == (40,)
    assert not result.error.any()
    policy = chain.predict(np.arange(20), deterministic=True)[0]
    exact = chain.env.unwrapped.exact_action_values(policy, 0.9)
    np.testing.assert_array_equal(result.truth, exact.ravel())
    assert "of 40 true action values lie in their 95% interval" in calibration.sentence(result)


def test_monte_carlo_agrees_with_the_exact_values() -> None:
    agent = RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0)
    best = np.arange(20) >= 10  # the nearer end
    agent.state.mean[:] = np.concatenate([~best, best])
    exact = calibration.calibrate(agent).truth.reshape(20, 2)
    copies, observations = calibration._visited(agent, 5, seed=0)
    returns = calibration._rollouts(agent, copies, 100, seed=0, longest=200)
    truth, error = calibration._mean_and_error(returns)
    assert (np.abs(truth - exact[observations.astype(int)]) < 5 * error).all()


# Maps -----------------------------------------------------------------------------------------


def test_maps_show_what_the_agent_says(car: RBLSPI) -> None:
    (one,) = maps.compute(car, resolution=5).slices
    x, v = one.axes
    said = car.action_values([x[3], v[1]])
    np.testing.assert_allclose(one.value[1, 3], said.mean.max())
    assert one.policy[1, 3] == said.mean.argmax()
    np.testing.assert_allclose(one.uncertainty[1, 3], said.std[said.mean.argmax()])


def test_more_dimensions_give_a_slice_for_every_pair(tmp_path: Path) -> None:
    agent = OnlineLSPI("CartPole-v1", POLE, seed=0).learn(200)
    found = maps.compute(agent, resolution=4, at=[0.0, 0.1, 0.02, 0.0])
    assert [one.dimensions for one in found.slices] == [
        *[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    ]
    said = agent.action_values([found.slices[1].axes[0][2], 0.1, found.slices[1].axes[1][3], 0.0])
    np.testing.assert_allclose(found.slices[1].mean[3, 2], said.mean)
    with pytest.raises(ValueError, match="must have 4 numbers"):
        maps.compute(agent, at=[0.0])
    with pytest.raises(ValueError, match="two different dimensions below 4"):
        maps.compute(agent, pairs=[(0, 4)])


def test_pictures_are_written(car: RBLSPI, chain: RBLSPI, tmp_path: Path) -> None:
    with ink.style():
        for name, agent in (("car", car), ("chain", chain)):
            ink.save(maps.draw(maps.compute(agent, resolution=30)), tmp_path / name)
        ink.save(calibration.draw(calibration.calibrate(chain)), tmp_path / "calibration")
    assert len(list(tmp_path.glob("*.png"))) == 3


# Evaluation -----------------------------------------------------------------------------------


def test_evaluation_leaves_the_agent_as_it_is() -> None:
    def learnt(evaluated: bool) -> Any:
        agent = RBLSPI(CAR, RBFGrid(3), seed=0).learn(300)
        if evaluated:
            evaluate(agent, episodes=2)
        return agent.learn(300).posterior.mean

    np.testing.assert_array_equal(learnt(True), learnt(False))


def test_evaluation_of_a_known_environment() -> None:
    agent = RBLSPI(CAR, RBFGrid(2), seed=0)
    short = gym.make(CAR, max_episode_steps=7)
    result = evaluate(agent, short, episodes=5)
    np.testing.assert_array_equal(result.lengths, 7.0)
    np.testing.assert_array_equal(result.returns, -7.0)
    assert result.mean_return == (-7.0, -7.0, -7.0)
    forever = evaluate(RBLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0), episodes=2, longest=9)
    np.testing.assert_array_equal(forever.lengths, 9.0)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_vector_environments_give_the_same_episodes(mode: AutoresetMode) -> None:
    agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(300)
    vector = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 3, autoreset_mode=mode)
    result = evaluate(agent, vector, episodes=7, seed=4)
    assert len(result.lengths) == 7
    first = [evaluate(agent, "CartPole-v1", episodes=1, seed=4 + i).lengths[0] for i in range(3)]
    assert set(first) <= set(result.lengths)
    np.testing.assert_array_equal(result.lengths, result.returns)


# In the shape of Stable-Baselines3 ------------------------------------------------------------


def stand_in(model: Any, env: gym.Env[Any, Any], n_eval_episodes: int) -> float:
    """What Stable-Baselines3's evaluate_policy asks of a model: batches of observations."""
    returns = []
    for _ in range(n_eval_episodes):
        observation, _ = env.reset(seed=0)
        states, starts = None, np.ones(1, dtype=bool)
        earned, ended = 0.0, False
        while not ended:
            actions, states = model.predict(
                np.array([observation]), state=states, episode_start=starts, deterministic=True
            )
            assert actions.shape == (1,)
            observation, reward, terminated, truncated, _ = env.step(actions[0])
            earned += float(reward)
            ended = starts[0] = terminated or truncated
        returns.append(earned)
    return float(np.mean(returns))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1"])
def test_a_model_as_stable_baselines3_wants_it(env_id: str) -> None:
    basis = POLE if env_id == "CartPole-v1" else OneHot()
    agent = RBLSPI(env_id, basis, seed=0)
    agent.learn(total_timesteps=200, callback=None, progress_bar=False, reset_num_timesteps=True)
    expected = evaluate(agent, episodes=1, seed=0).returns[0]
    assert stand_in(agent, gym.make(env_id), 1) == expected


@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None, reason="Stable-Baselines3 is not there"
)
def test_evaluate_policy_of_stable_baselines3() -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(2000)
    mean, _ = evaluate_policy(agent, make_vec_env("CartPole-v1", 2, seed=0), n_eval_episodes=6)
    assert mean > 0


# Logs -----------------------------------------------------------------------------------------


def test_the_monitor_file_is_that_of_stable_baselines3(tmp_path: Path) -> None:
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


def test_tensorboard_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with TensorBoard(tmp_path) as log:
        OnlineLSPI("CartPole-v1", POLE, seed=0).learn(200, callback=log)
    (events,) = tmp_path.iterdir()
    content = events.read_bytes()
    assert b"rollout/ep_rew_mean" in content
    assert b"train/epsilon" in content


def test_stopping_from_a_callback_and_from_outside() -> None:
    agent = RBLSPI("CartPole-v1", POLE, seed=0)

    def stop(agent: Agent) -> None:
        if len(agent.episodes) == 3:
            agent.stop()

    agent.learn(100_000, callback=stop)
    assert len(agent.episodes) == 3
    assert agent.learn(episodes=2).episodes.shape == (5, 2)
