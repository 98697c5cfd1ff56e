"""Cart pole: keep a pole upright on a cart, and the cart on its track.

The state is the cart's position and velocity and the pole's angle from the vertical and
angular velocity. With the force u = -force or +force (actions 0 and 1), the mass m and half
length l of the pole, and the total mass M = cart_mass + pole_mass,

    f       = (u + m l theta'^2 sin(theta)) / M
    theta'' = (g sin(theta) - f cos(theta)) / (l (4 / 3 - m cos(theta)^2 / M))
    p''     = f - m l theta'' cos(theta) / M

followed by one Euler step of ``time_step`` seconds: positions move with the old velocities.

The agent fails if the pole is at pi / 6 or more from the vertical, or the cart at 2.4 or more from
the middle. The reward is 0 for the step that fails, which ends the episode, and 1 for any other
step.

References
----------
Barto, Sutton and Anderson (1983), Neuronlike adaptive elements that can solve difficult
learning control problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit
from rblspi.core.types import Array
from rblspi.environments.base import Domain
from rblspi.environments.rendering import RED, Canvas, draw_cart, draw_track, drawn_sizes


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start near the middle of the track, almost upright."""
    start = parameters[8]
    for i in range(4):
        state[i] = rng.uniform(-start, start)


@jit
def accelerations(
    parameters: Array, angle: float, spin: float, force: float
) -> tuple[float, float]:
    """Compute p'' and theta'' of the module's equations."""
    gravity, cart_mass, mass, length = parameters[0], parameters[1], parameters[2], parameters[3]
    total_mass = cart_mass + mass
    sine, cosine = math.sin(angle), math.cos(angle)
    shared = (force + mass * length * spin**2 * sine) / total_mass
    spin_rate = (gravity * sine - shared * cosine) / (
        length * (4.0 / 3.0 - mass * cosine**2 / total_mass)
    )
    return shared - mass * length * spin_rate * cosine / total_mass, spin_rate


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Push for the length of one Euler step."""
    push, dt, edge, fall_angle = parameters[4:8]
    step_reward, failure_reward = parameters[9:]
    position, velocity, angle, spin = state
    force = push if action == 1 else -push
    velocity_rate, spin_rate = accelerations(parameters, angle, spin, force)
    state[0] = position + dt * velocity
    state[1] = velocity + dt * velocity_rate
    state[2] = angle + dt * spin
    state[3] = spin + dt * spin_rate
    failed = abs(state[0]) >= edge or abs(state[2]) >= fall_angle
    return (failure_reward if failed else step_reward), failed, False


@dataclass(eq=False, repr=False)
class CartPole(Domain):
    """Cart pole; action 0 pushes the cart left, action 1 right.

    The last state of a failure lies past a limit, and the velocities are unlimited, so the
    observation space has no bounds: give your basis the range of interest, for example
    ``high=[2.4, 2.5, pi / 6, 2.5]`` and ``low`` its negative.

    Parameters
    ----------
    gravity, cart_mass, pole_mass, length : float
        ``length`` is half the length of the pole.
    force, time_step : float
        Newtons of a push, and seconds between actions.
    edge, fall_angle, start : float
        The track reaches from -edge to edge; every variable starts between -start and start.
    step_reward, failure_reward : float
    """

    metadata = Domain.metadata | {"render_fps": 50}
    functions = reset, step
    actions = 2

    gravity: float = 9.8
    cart_mass: float = 1.0
    pole_mass: float = 0.1
    length: float = 0.5
    force: float = 10.0
    time_step: float = 0.02
    edge: float = 2.4
    fall_angle: float = math.pi / 6
    start: float = 0.05
    step_reward: float = 1.0
    failure_reward: float = 0.0

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        return [-np.inf] * 4, [np.inf] * 4

    def draw(self, canvas: Canvas) -> None:
        """Draw the cart on its track, the pole, and the angles at which it has fallen."""
        position, _, angle, _ = self.state
        length, cart = drawn_sizes(self.edge, self.length)
        canvas.view(-1.38 * self.edge, 1.38 * self.edge, -6 * cart, length + 5 * cart)
        for limit in (-self.fall_angle, self.fall_angle):
            reach = 1.12 * length
            end = (position + reach * math.sin(limit), reach * math.cos(limit))
            canvas.line([(position, 0.0), end], RED, 1.2, dash=6)
        draw_cart(canvas, position, angle, length, cart)
        draw_track(canvas, self.edge, cart)
