import math

import gymnasium as gym
import numpy as np
import pytest

import rblspi  # noqa: F401  (registers the domains)
from rblspi.environments.mountain_car import MountainCar


def at(state, **arguments):
    car = MountainCar(**arguments)
    car.reset(seed=0, options={"state": state})
    return car


def test_a_step_by_hand():
    # cos(3 * -0.5) = 0.0707372016677029
    for action, velocity in ((0, -0.00117684), (1, -0.00017684), (2, 0.00082316)):
        (position, speed), reward, terminated, truncated, _ = at([-0.5, 0.0]).step(action)
        assert speed == pytest.approx(velocity, abs=1e-8)
        assert position == pytest.approx(-0.5 + velocity, abs=1e-8)
        assert (reward, terminated, truncated) == (-1.0, False, False)


def test_the_wall_stops_the_car():
    observation, reward, terminated, _, _ = at([-1.19, -0.05]).step(0)
    np.testing.assert_array_equal(observation, [-1.2, 0.0])
    assert (reward, terminated) == (-1.0, False)


def test_the_speed_is_limited():
    assert at([-0.9, 0.07]).step(2)[0][1] == 0.07
    assert at([-0.2, -0.07]).step(0)[0][1] == -0.07


@pytest.mark.parametrize(
    ("name", "on_the_way", "at_the_goal"), [("MountainCar", -1, 0), ("SparseMountainCar", 0, 1)]
)
def test_rewards_of_both_variants(name, on_the_way, at_the_goal):
    car = gym.make(f"rblspi/{name}-v0").unwrapped
    car.reset(options={"state": [0.40, 0.06]})
    assert car.step(2)[1:4] == (on_the_way, False, False)
    (position, _), reward, terminated, truncated, _ = car.step(2)
    assert (position, reward, terminated, truncated) == (0.5, at_the_goal, True, False)


def test_pushing_along_the_velocity_takes_119_4_steps():
    car = MountainCar()
    reset, step, parameters, _ = car.dynamics
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(500):
        reset(parameters, car.state, rng)
        terminated, length = False, 0
        while not terminated:
            _, terminated, _ = step(parameters, car.state, 2 if car.state[1] >= 0 else 0, rng)
            length += 1
        lengths.append(length)
    error = np.std(lengths) / math.sqrt(len(lengths))
    assert np.mean(lengths) == pytest.approx(119.4, abs=4 * error)


def test_never_pushing_keeps_the_energy_of_the_car_low():
    car = at([-0.4, 0.0])
    # Semi-implicit Euler nearly conserves v^2 / 2 + gravity sin(3 p) / 3.
    energies = []
    for _ in range(400):
        position, velocity = car.step(1)[0]
        energies.append(velocity**2 / 2 + 0.0025 * math.sin(3 * position) / 3)
    assert np.ptp(energies) < 0.05 * (0.0025 * 2 / 3)
