"""Cart-pole swing-up: swing a hanging pole up and keep it there; every push costs.

The cart and the pole are those of `cart_pole`, with an Euler step of 0.01 seconds, and the actions
0, 1 and 2 push to the left, not at all, and to the right. The pole starts hanging down. A push
costs 0.1. A step after which the pole is upright, slow and near the middle,

    cos(theta) > height,  |theta'| < slow,  |p| < centre

has the reward 1. An agent that has not found this reward does best to do nothing, for a return of
0. The episode terminates where the cart leaves its track.

The state is (p, p', cos(theta), sin(theta), theta'): continuous where the angle jumps from pi to
-pi, bounded, and with the height as a component, so that a basis sees where rewards are. The
physics does not bound the two velocities; the bounds here exceed the velocities that a good policy
needs.

References
----------
Osband et al. (2020), Behaviour suite for reinforcement learning. Its twenty levels of difficulty
n = 0 to 19 are ``height=n / 20, centre=1 - n / 20``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.compiled import jit
from rblspi.core.types import Array
from rblspi.environments.base import Domain
from rblspi.environments.cart_pole import accelerations
from rblspi.environments.rendering import (
    GREEN,
    Canvas,
    draw_cart,
    draw_track,
    drawn_sizes,
    placed,
)


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start near the middle of the track with the pole hanging, almost at rest."""
    start = parameters[7]
    state[0] = rng.uniform(-start, start)
    state[1] = rng.uniform(-start, start)
    angle = math.pi + rng.uniform(-start, start)
    state[2] = math.cos(angle)
    state[3] = math.sin(angle)
    state[4] = rng.uniform(-start, start)


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Push for some Euler steps, or until the cart leaves its track; rewards add up."""
    total, off = 0.0, False
    for _ in range(int(parameters[14])):
        reward, off = _euler_step(parameters, state, action)
        total += reward
        if off:
            break
    return total, off, False


@jit
def _euler_step(parameters: Array, state: Array, action: int) -> tuple[float, bool]:
    """Push for the length of one Euler step: positions move with the old velocities."""
    push, dt, edge = parameters[4], parameters[5], parameters[6]
    height, slow, centre, move_cost, max_velocity, max_spin = parameters[8:14]
    position, velocity, spin = state[0], state[1], state[4]
    angle = math.atan2(state[3], state[2])
    velocity_rate, spin_rate = accelerations(parameters, angle, spin, push * (action - 1))
    position += dt * velocity
    angle += dt * spin
    off = abs(position) >= edge
    state[0] = min(max(position, -edge), edge)
    state[1] = min(max(velocity + dt * velocity_rate, -max_velocity), max_velocity)
    state[2] = math.cos(angle)
    state[3] = math.sin(angle)
    state[4] = min(max(spin + dt * spin_rate, -max_spin), max_spin)
    upright = state[2] > height and abs(state[4]) < slow and abs(position) < centre
    return (1.0 if upright else 0.0) - move_cost * abs(action - 1), off


@dataclass(eq=False, repr=False)
class CartPoleSwingUp(Domain):
    """Cart-pole swing-up; actions 0, 1, 2 push the cart left, not at all, right.

    Parameters
    ----------
    gravity, cart_mass, pole_mass, length : float
        ``length`` is half the length of the pole.
    force, time_step : float
        Newtons of a push, and seconds of an Euler step.
    edge, start : float
        The track reaches from -edge to edge; every variable starts within ``start`` of rest.
    height, slow, centre : float
        The pole is rewarded where its cosine is above ``height``, its angular velocity below
        ``slow`` and the cart less than ``centre`` from the middle: the difficulty.
    move_cost : float
        Cost of every push.
    max_velocity, max_spin : float
        Bounds of the velocities of the cart and of the pole.
    hold : int
        Euler steps for which every action is held. Divide the limit of episodes by the same factor,
        ``gym.make(..., hold=10, max_episode_steps=100)``, to have the same task.
    """

    metadata = Domain.metadata | {"render_fps": 100}
    functions = reset, step
    actions = 3

    gravity: float = 9.8
    cart_mass: float = 1.0
    pole_mass: float = 0.1
    length: float = 0.5
    force: float = 10.0
    time_step: float = 0.01
    edge: float = 3.0
    start: float = 0.05
    height: float = 0.5
    slow: float = 1.0
    centre: float = 1.0
    move_cost: float = 0.1
    max_velocity: float = 5.0
    max_spin: float = 10.0
    hold: int = 1

    def __post_init__(self) -> None:
        check.count("hold", self.hold)
        super().__post_init__()

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        high = np.array([self.edge, self.max_velocity, 1.0, 1.0, self.max_spin])
        return -high, high

    def draw(self, canvas: Canvas) -> None:
        """Draw the cart, the pole, and the sector in which it is rewarded."""
        position, _, cosine, sine, _ = self.state
        length, cart = drawn_sizes(self.edge, self.length)
        canvas.view(-1.3 * self.edge, 1.3 * self.edge, -1.15 * length, 1.15 * length)
        arc = np.linspace(-1.0, 1.0, 40) * math.acos(min(max(self.height, -1.0), 1.0))
        rim = length * np.column_stack([np.sin(arc), np.cos(arc)])
        sector = placed(np.vstack([[(0.0, 0.0)], rim]), (position, 0.0))
        canvas.polygon(sector, fill=(GREEN, 0.24 if abs(position) < self.centre else 0.06))
        draw_cart(canvas, position, math.atan2(sine, cosine), length, cart)
        draw_track(canvas, self.edge, cart, self.centre)
