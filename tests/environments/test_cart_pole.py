import gymnasium as gym
import numpy as np
import pytest

from rblspi.environments.cart_pole import CartPole


def at(state, **arguments):
    pole = CartPole(**arguments)
    pole.reset(seed=0, options={"state": state})
    return pole


def accelerations(state, force, gravity=9.8, cart=1.0, pole=0.1, length=0.5):
    """Of cart and pole: the two coupled equations of motion, solved as a linear system."""
    _, _, angle, spin = state
    sine, cosine = np.sin(angle), np.cos(angle)
    moment = pole * length
    matrix = [[cart + pole, moment * cosine], [moment * cosine, 4 / 3 * moment * length]]
    return np.linalg.solve(matrix, [force + moment * spin**2 * sine, moment * gravity * sine])


def test_the_states_are_those_of_gymnasium_s_cart_pole():
    theirs = gym.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(0)
    compared = 0
    for seed in range(20):
        theirs.reset(seed=seed)
        ours = at(theirs.state)
        terminated = False
        while not terminated:
            action = int(rng.integers(2))
            _, _, terminated, _, _ = theirs.step(action)
            np.testing.assert_allclose(ours.step(action)[0], theirs.state, rtol=1e-12, atol=1e-15)
            compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("state", "failed"),
    [
        ([2.39, 1.0, 0.0, 0.0], True),
        ([-2.39, -1.0, 0.0, 0.0], True),
        ([0.0, 0.0, 0.52, 1.0], True),
        ([0.0, 0.0, -0.52, -1.0], True),
        ([2.39, 0.0, 0.0, 0.0], False),
        ([0.0, 0.0, 0.5, 0.0], False),
    ],
)
def test_failing_ends_the_episode_with_zero_and_anything_else_gives_one(state, failed):
    pole = at(state)
    observation, reward, terminated, truncated, _ = pole.step(0)
    assert (reward, terminated, truncated) == (0.0 if failed else 1.0, failed, False)
    assert pole.observation_space.contains(observation)


def test_a_step_with_other_constants():
    state = [0.1, 0.2, 0.3, 0.4]
    changed = at(
        state, gravity=3.0, cart_mass=2.0, pole_mass=0.5, length=1.5, force=4.0, time_step=0.1
    )
    push, spin_up = accelerations(state, 4.0, gravity=3.0, cart=2.0, pole=0.5, length=1.5)
    expected = np.add(state, 0.1 * np.array([0.2, push, 0.4, spin_up]))
    np.testing.assert_allclose(changed.step(1)[0], expected, rtol=1e-12)
