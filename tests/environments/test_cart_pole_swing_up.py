import math

import numpy as np
import pytest

from rblspi.environments.cart_pole import CartPole
from rblspi.environments.cart_pole_swing_up import CartPoleSwingUp

LEFT, COAST, RIGHT = 0, 1, 2


def state_of(position, velocity, angle, spin):
    return [position, velocity, math.cos(angle), math.sin(angle), spin]


def test_it_starts_hanging_near_the_middle():
    swing = CartPoleSwingUp()
    for seed in range(20):
        position, velocity, cosine, sine, spin = swing.reset(seed=seed)[0]
        assert cosine < math.cos(math.pi - 0.0501)
        assert max(abs(position), abs(velocity), abs(spin), abs(sine)) <= 0.05


@pytest.mark.parametrize("angle", [-3.0, -1.0, 0.2, 2.5])
def test_it_moves_like_the_cart_pole(angle):
    swing, pole = CartPoleSwingUp(), CartPole(time_step=0.01, fall_angle=100.0)
    swing.reset(seed=0, options={"state": state_of(0.3, -0.4, angle, 0.7)})
    pole.reset(seed=0, options={"state": [0.3, -0.4, angle, 0.7]})
    for push_right in (0, 1, 1, 0, 1):
        swing.step(RIGHT if push_right else LEFT)
        pole.step(push_right)
        np.testing.assert_allclose(swing.state, state_of(*pole.state), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("action", [LEFT, COAST, RIGHT])
def test_an_action_that_is_held_is_as_many_steps_and_ends_where_the_cart_leaves(action):
    held, single = CartPoleSwingUp(hold=7), CartPoleSwingUp()
    for env in (held, single):
        env.reset(seed=0, options={"state": state_of(2.0, 2.0, 0.5, 0.1)})
    for _ in range(20):
        _, total, off, _, _ = held.step(action)
        rewards, ended = [], False
        while len(rewards) < 7 and not ended:
            _, reward, ended, _, _ = single.step(action)
            rewards.append(reward)
        assert total == sum(rewards)
        assert off == ended
        np.testing.assert_array_equal(held.state, single.state)
        if off:
            break


def test_a_coasting_pole_swings_with_its_energy():
    """Without a push, energy changes by the Euler step alone: less with a smaller one."""
    changes = []
    for dt in (0.01, 0.001):
        swing = CartPoleSwingUp(time_step=dt)
        swing.reset(seed=0, options={"state": state_of(0.0, 0.0, 2.0, 0.0)})
        before = energy(swing.state)
        for _ in range(round(0.5 / dt)):
            swing.step(COAST)
        changes.append(abs(energy(swing.state) - before))
    assert changes[1] < 0.15 * changes[0]


def energy(state):
    """Of a cart of mass 1 and a uniform rod of mass 0.1 and half length 0.5."""
    _, velocity, cosine, _, spin = state
    kinetic = 0.5 * 1.1 * velocity**2 + 0.05 * velocity * spin * cosine
    return kinetic + 0.5 * 0.1 * 4 / 3 * 0.25 * spin**2 + 0.1 * 9.8 * 0.5 * cosine


def reward(action, state, **settings):
    swing = CartPoleSwingUp(**settings)
    swing.reset(seed=0, options={"state": state})
    return swing.step(action)[1]


def test_only_upright_slow_and_central_is_rewarded_and_pushes_cost():
    assert reward(COAST, state_of(0.0, 0.0, 0.0, 0.0)) == 1.0
    assert reward(LEFT, state_of(0.0, 0.0, 0.0, 0.0)) == pytest.approx(0.9)
    assert reward(RIGHT, state_of(0.0, 0.0, math.pi, 0.0)) == pytest.approx(-0.1)
    assert reward(COAST, state_of(0.0, 0.0, 1.1, 0.0)) == 0.0
    assert reward(COAST, state_of(0.0, 0.0, 0.0, 1.5)) == 0.0
    assert reward(COAST, state_of(1.2, 0.0, 0.0, 0.0)) == 0.0
    assert reward(COAST, state_of(0.3, 0.0, 0.6, 0.0), height=0.5) == 1.0
    assert reward(COAST, state_of(0.3, 0.0, 0.6, 0.0), height=0.9) == 0.0
    assert reward(COAST, state_of(0.3, 0.0, 0.6, 0.0), centre=0.2) == 0.0


def test_leaving_the_track_ends_the_episode():
    swing = CartPoleSwingUp()
    swing.reset(seed=0, options={"state": state_of(2.99, 4.0, math.pi, 0.0)})
    observation, _, terminated, _, _ = swing.step(RIGHT)
    assert terminated
    assert observation[0] == 3.0
    assert swing.observation_space.contains(observation)


def controller(state):
    """Pump energy into the pole, then balance it; both keep the cart near the middle."""
    position, velocity, cosine, sine, spin = state
    if cosine > 0.85 and abs(spin) < 4.0:
        push = 41.3 * math.atan2(sine, cosine) + 8.5 * spin + 0.75 * position + 5.3 * velocity
        push /= 2.9
    else:
        missing = 0.5 * (4 / 3 * 0.5) * spin**2 / 9.8 + cosine - 1.0  # 0 with the energy of the top
        push = (2.3 * missing * spin * cosine - 0.8 * (position + 0.7 * velocity)) / 0.2
    return RIGHT if push > 1.0 else LEFT if push < -1.0 else COAST


def test_it_can_be_swung_up_within_the_bounds_of_the_velocities():
    swing = CartPoleSwingUp()
    state, _ = swing.reset(seed=0)
    total, fastest = 0.0, np.zeros(5)
    for _ in range(1000):
        state, gained, terminated, _, _ = swing.step(controller(state))
        assert not terminated
        total += gained
        fastest = np.maximum(fastest, np.abs(state))
    assert total > 700
    assert fastest[1] < 5.0
    assert fastest[4] < 10.0
