import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rblspi.environments.inverted_pendulum import InvertedPendulum

LEFT, NOTHING, RIGHT = 0, 1, 2
GRAVITY, MASS, CART, LENGTH = 9.8, 2.0, 8.0, 0.5
SHARE = 1 / (MASS + CART)


def rate(_, state, force):
    """The equation of motion, written down a second time."""
    angle, velocity = state
    above = (
        GRAVITY * np.sin(angle)
        - SHARE * MASS * LENGTH * velocity**2 * np.sin(2 * angle) / 2
        - SHARE * np.cos(angle) * force
    )
    return [velocity, above / (4 * LENGTH / 3 - SHARE * MASS * LENGTH * np.cos(angle) ** 2)]


def energy(state):
    """Of a frictionless cart without momentum and a uniform rod on it."""
    angle, velocity = state
    inertia = 4 / 3 * MASS * LENGTH**2 - SHARE * (MASS * LENGTH * math.cos(angle)) ** 2
    return inertia * velocity**2 / 2 + MASS * GRAVITY * LENGTH * math.cos(angle)


def run(state, action, steps, **arguments):
    pendulum = InvertedPendulum(**{"noise": 0.0, "fall_angle": math.inf, **arguments})
    pendulum.reset(seed=0, options={"state": state})
    for _ in range(steps):
        state = pendulum.step(action)[0]
    return state


def test_without_force_energy_is_conserved():
    start = [0.3, -0.5]
    for steps in (100, 1000, 3000):
        end = run(start, NOTHING, steps, time_step=0.001)
        assert energy(end) == pytest.approx(energy(start), rel=1e-11)


@pytest.mark.parametrize(("order", "coarsest", "tolerance"), [(4, 20, 0.3), (1, 400, 0.1)])
def test_the_integrators_are_of_the_order_that_they_are_called_by(order, coarsest, tolerance):
    start = [0.2, 0.4]
    exact = solve_ivp(rate, (0, 0.8), start, args=(50.0,), rtol=1e-12, atol=1e-12).y[:, -1]
    errors = [
        np.abs(run(start, RIGHT, steps, time_step=0.8 / steps, order=order) - exact).max()
        for steps in coarsest * np.array([1, 2, 4])
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(orders, order, atol=tolerance)


def test_left_mirrors_right_and_a_push_right_tips_the_pendulum_left():
    right = run([0.1, -0.2], RIGHT, 3)
    np.testing.assert_allclose(run([-0.1, 0.2], LEFT, 3), -right, rtol=1e-13)
    assert run([0.0, 0.0], RIGHT, 1)[0] < 0
    np.testing.assert_array_equal(run([0.0, 0.0], NOTHING, 1), [0.0, 0.0])


def test_one_noisy_step_equals_the_integral_for_a_force_within_10_of_the_push():
    low, high = (
        solve_ivp(rate, (0, 0.1), [0.1, 0.0], args=(force,), rtol=1e-10).y[1, -1]
        for force in (60.0, 40.0)
    )
    pendulum = InvertedPendulum()
    pendulum.reset(seed=0)
    velocities = np.empty(2000)
    for i in range(len(velocities)):
        pendulum.state[:] = 0.1, 0.0
        velocities[i] = pendulum.step(RIGHT)[0][1]
    place = (velocities - low) / (high - low)
    assert place.min() > -1e-3
    assert place.max() < 1 + 1e-3
    # The effect of the force is nearly linear: 5 standard errors, and room for the rest.
    assert place.mean() == pytest.approx(0.5, abs=5 / math.sqrt(12 * 2000) + 1e-3)
    assert place.std() == pytest.approx(1 / math.sqrt(12), rel=0.06)


def test_a_fall_ends_the_episode_with_minus_one_and_is_not_clipped():
    pendulum = InvertedPendulum()
    pendulum.reset(seed=0, options={"state": [1.4, 6.0]})
    observation, reward, terminated, truncated, _ = pendulum.step(NOTHING)
    assert observation[0] > math.pi / 2 + 0.1
    assert pendulum.observation_space.contains(observation)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    pendulum.reset(options={"state": [-0.1, 0.0]})
    assert pendulum.step(NOTHING)[1:4] == (0.0, False, False)
