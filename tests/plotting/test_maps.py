"""Maps show what a policy states; pictures are written."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi import (
    LSPI,
    OPSRL,
    RBLSPI,
    FittedRmax,
    Multilinear,
    OneHot,
    OnlineLSPI,
    RBFGrid,
    Transitions,
)
from rblspi.data.encoding import Encoding, Input
from rblspi.plotting import calibration, domain, maps, style
from rblspi.rollout.calibration import calibrate

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"
POLE = RBFGrid(2, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5))


@pytest.fixture(scope="module")
def car():
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


@pytest.fixture(scope="module")
def chain():
    return RBLSPI("rblspi/ChainWalk-v0", OneHot(), discount=0.9, seed=0).learn(20_000)


def test_maps_show_what_the_agent_says(car):
    (one,) = maps.compute(car, resolution=5).slices
    x, v = one.axes
    said = car.action_values([x[3], v[1]])
    action, _ = car.predict([x[3], v[1]], deterministic=True)
    assert one.policy[1, 3] == action
    np.testing.assert_allclose(one.value[1, 3], said.mean[action])
    np.testing.assert_allclose(one.uncertainty[1, 3], said.std[action])


def test_more_dimensions_give_a_slice_for_every_pair(tmp_path):
    agent = OnlineLSPI("CartPole-v1", POLE, seed=0).learn(200)
    found = maps.compute(agent, domain.find(agent, at=[0.0, 0.1, 0.02, 0.0]), resolution=4)
    assert [one.dimensions for one in found.slices] == [
        *[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    ]
    said = agent.action_values([found.slices[1].axes[0][2], 0.1, found.slices[1].axes[1][3], 0.0])
    np.testing.assert_allclose(found.slices[1].mean[3, 2], said.mean)
    with pytest.raises(ValueError, match="must have 4 numbers"):
        domain.find(agent, at=[0.0])


@pytest.mark.slow
def test_pictures_are_written(car, chain, tmp_path):
    with style.style():
        for name, agent in (("car", car), ("chain", chain)):
            style.save(maps.draw(maps.compute(agent, resolution=30)), tmp_path / name)
        style.save(calibration.draw(calibrate(chain)), tmp_path / "calibration")
    assert len(list(tmp_path.glob("*.png"))) == 3


def test_maps_leave_the_random_numbers_of_the_training_environment_alone():
    """As an evaluation does: they too have to use the agent's own environment here."""
    env = gym.Wrapper(gym.make("CartPole-v1").unwrapped)
    env.unwrapped.spec = None
    agent = RBLSPI(env, seed=0).learn(50)
    before = env.unwrapped.np_random.bit_generator.state
    domain.find(agent, seed=3)
    assert env.unwrapped.np_random.bit_generator.state == before


def test_the_cells_of_a_lake_are_drawn_as_a_grid_and_unknown_ones_are_grey():
    agent = OPSRL("FrozenLake-v1", seed=0).learn(10_000)
    (one,), drawn = maps.compute(agent)
    assert drawn.space.grid == (4, 4)
    assert drawn.names == ["column", "row"]
    values = agent.action_values(np.arange(16)).mean.reshape(4, 4, 4)
    np.testing.assert_array_equal(one.mean, values)
    lake = np.array(gym.make("FrozenLake-v1").unwrapped.desc, dtype=str)
    assert one.unknown[np.isin(lake, ["H", "G"])].all()  # nobody ever acts there
    assert not one.unknown[0, 0]
    with style.style():
        figure = maps.draw(maps.Maps([one], drawn))
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["left", "down", "right", "up", "the data say little"]


def test_names_are_those_of_the_user_of_the_log_or_of_the_environment(car):
    assert domain.find(car).names == ["position", "velocity"]
    assert domain.find(car, names=["x", "v"]).names == ["x", "v"]
    with pytest.raises(ValueError, match="names=x must be 2"):
        domain.find(car, names=["x"])
    env = gym.make(CAR)
    env.unwrapped.metadata = env.metadata | {"observation_names": ["where", "how fast"]}
    assert domain.find(car.policy(), env).names == ["where", "how fast"]
    columns = Encoding((Input("depth"), Input("flow")))
    policy = replace(car.policy(), environment=None, inputs=columns)
    found = domain.find(policy, data=[[0.1, 0.0], [0.3, 0.02], [0.2, 0.01]])
    assert found.names == ["depth", "flow"]
    assert found.episodes == []
    np.testing.assert_array_equal(found.point, [0.2, 0.01])


def logged(size):
    """A log of random observations with so many dimensions."""
    rng = np.random.default_rng(size)
    observations, actions = rng.normal(size=(300, size)), rng.integers(3, size=300)
    after = observations + 0.1 * (actions[:, None] - 1)
    never = np.zeros(300, bool)
    return Transitions(observations, actions, -np.abs(after[:, 0]), after, never, never)


@pytest.mark.parametrize("size", [1, 2, 4, pytest.param(6, marks=pytest.mark.slow), 8])
def test_maps_of_a_policy_from_logs_are_laid_out(size):
    """Without an environment there is no episode to draw; a warning would be an error here."""
    basis = RBFGrid(2 if size > 2 else 3, low=-2.0, high=2.0)
    policy = LSPI(basis, 3, discount=0.5, tolerance=1e9).fit(logged(size)).policy()
    with style.style():
        figure = maps.draw(maps.compute(policy, resolution=4))
        figure.draw_without_rendering()
    boxes = [panel.get_tightbbox() for panel in figure.axes]
    boxes += [artist.get_tightbbox() for artist in figure.legends]
    boxes += [text.get_tightbbox() for text in figure.texts]
    inside = figure.bbox.padded(1.0)
    for i, box in enumerate(boxes):
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1
        assert not any(box.padded(-1.0).overlaps(other) for other in boxes[i + 1 :])


def test_the_policy_is_what_the_agent_does_and_states():
    agent = FittedRmax("MountainCar-v0", Multilinear(12), seed=0).learn(2000)
    (one,) = maps.compute(agent, resolution=21).slices
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*one.axes)], axis=1)
    actions, _ = agent.predict(grid, deterministic=True)
    np.testing.assert_array_equal(one.policy.ravel(), actions)
    np.testing.assert_array_equal(agent.action_values(grid).mean.argmax(axis=1), actions)
