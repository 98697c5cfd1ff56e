"""Maps show what a policy states; pictures are written."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, OneHot, OnlineLSPI, RBFGrid
from rblspi.plotting import calibration, maps, style
from rblspi.rollout.calibration import calibrate

CAR = "rblspi/MountainCar-v0"
POLE = RBFGrid(2, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5))


@pytest.fixture(scope="module")
def car() -> RBLSPI:
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


@pytest.fixture(scope="module")
def chain() -> RBLSPI:
    return RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0).learn(20_000)


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


@pytest.mark.slow
def test_pictures_are_written(car: RBLSPI, chain: RBLSPI, tmp_path: Path) -> None:
    with style.style():
        for name, agent in (("car", car), ("chain", chain)):
            style.save(maps.draw(maps.compute(agent, resolution=30)), tmp_path / name)
        style.save(calibration.draw(calibrate(chain)), tmp_path / "calibration")
    assert len(list(tmp_path.glob("*.png"))) == 3


def test_maps_leave_the_random_numbers_of_the_training_environment_alone() -> None:
    """As an evaluation does: they too have to use the agent's own environment here."""
    env = gym.Wrapper(gym.make("CartPole-v1").unwrapped)
    env.unwrapped.spec = None
    agent = RBLSPI(env, seed=0).learn(50)
    before = env.unwrapped.np_random.bit_generator.state
    maps._visited(agent, None, seed=3)
    assert env.unwrapped.np_random.bit_generator.state == before
