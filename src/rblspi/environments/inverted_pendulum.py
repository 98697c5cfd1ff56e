"""Inverted pendulum: keep a pendulum on a cart from falling by pushing the cart.

The cart may go anywhere, so the state is the angle theta from the vertical and the angular
velocity. With a = 1 / (pendulum_mass + cart_mass) and a force u on the cart,

    theta'' = (g sin(theta) - a m l theta'^2 sin(2 theta) / 2 - a cos(theta) u)
              / (4 l / 3 - a m l cos(theta)^2)

where m is the mass of the pendulum and l half its length. The force is -force, 0 or +force
for the actions 0, 1 and 2, plus uniform noise drawn once a step and held during it. One step
is one fourth-order Runge-Kutta step of ``time_step`` seconds, or one Euler step. Large steps make
the integrator part of the problem: at 0.1 s another integrator gives a slightly different domain.

The reward is 0, and -1 for the step after which the pendulum is at pi / 2 or more from the
vertical: it has fallen, and the episode ends.

References
----------
Wang, Tanaka and Griffin (1996), An approach to fuzzy control of nonlinear systems.
Lagoudakis and Parr (2003), Least-squares policy iteration.
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
from rblspi.environments.rendering import GREY, ORANGE, Canvas, draw_cart

#: orders of the two integrators
EULER, RUNGE_KUTTA = 1, 4


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start near the upright position."""
    start = parameters[8]
    state[0] = rng.uniform(-start, start)
    state[1] = rng.uniform(-start, start)


@jit
def acceleration(parameters: Array, angle: float, velocity: float, force: float) -> float:
    """Compute theta'' of the module's equation."""
    gravity, mass, cart_mass, length = parameters[0], parameters[1], parameters[2], parameters[3]
    share = 1.0 / (mass + cart_mass)
    sine, cosine = math.sin(angle), math.cos(angle)
    torque = gravity * sine - share * cosine * (mass * length * velocity**2 * sine + force)
    inertia = 4.0 * length / 3.0 - share * mass * length * cosine**2
    return torque / inertia  # type: ignore[no-any-return]


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Push for the length of one Runge-Kutta or Euler step."""
    _, _, _, _, push, noise, dt, fall_angle, _, step_reward, fall_reward, order = parameters
    force = push * (action - 1) + rng.uniform(-noise, noise)
    angle, v1 = state[0], state[1]
    a1 = acceleration(parameters, angle, v1, force)
    if order == EULER:
        state[0] = angle + dt * v1
        state[1] = v1 + dt * a1
    else:
        v2 = v1 + dt / 2 * a1
        a2 = acceleration(parameters, angle + dt / 2 * v1, v2, force)
        v3 = v1 + dt / 2 * a2
        a3 = acceleration(parameters, angle + dt / 2 * v2, v3, force)
        v4 = v1 + dt * a3
        a4 = acceleration(parameters, angle + dt * v3, v4, force)
        state[0] = angle + dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        state[1] = v1 + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    fallen = abs(state[0]) >= fall_angle
    return (fall_reward if fallen else step_reward), fallen, False


@dataclass(eq=False, repr=False)
class InvertedPendulum(Domain):
    """Inverted pendulum; actions 0, 1, 2 push the cart left, not at all, right.

    A pendulum that falls may be past the fall angle when the step ends, at any speed, so the
    observation space has no bounds: give your basis the range of interest, for example
    ``low=[-pi / 4, -1], high=[pi / 4, 1]``.

    Parameters
    ----------
    gravity, pendulum_mass, cart_mass, length : float
        ``length`` is half the length of the pendulum.
    force, noise, time_step : float
        Newtons of a push, bound of its uniform noise, and seconds between actions.
    fall_angle, start : float
        Angle and velocity start uniformly between -start and start.
    step_reward, fall_reward : float
    order : {4, 1}
        Order of the integrator: 4 for Runge and Kutta's, 1 for Euler's.
    """

    metadata = Domain.metadata | {"render_fps": 10}
    functions = reset, step
    actions = 3

    gravity: float = 9.8
    pendulum_mass: float = 2.0
    cart_mass: float = 8.0
    length: float = 0.5
    force: float = 50.0
    noise: float = 10.0
    time_step: float = 0.1
    fall_angle: float = math.pi / 2
    start: float = 0.2
    step_reward: float = 0.0
    fall_reward: float = -1.0
    order: int = RUNGE_KUTTA

    def __post_init__(self) -> None:
        if self.order not in (EULER, RUNGE_KUTTA):
            raise ValueError(f"order={self.order} is neither {RUNGE_KUTTA} nor {EULER}")
        super().__post_init__()

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        return [-np.inf] * 2, [np.inf] * 2

    def draw(self, canvas: Canvas) -> None:
        """Draw the pendulum on its cart, with the angle between it and the vertical."""
        angle, velocity = self.state
        length, cart = 2 * self.length, 0.5 * self.length
        canvas.view(-1.8 * length, 1.8 * length, -0.75 * length, 1.65 * length)
        canvas.line([(0.0, 0.0), (0.0, 1.25 * length)], GREY, 1.2, dash=5)
        arc = np.linspace(0.0, angle, 40)
        sector = 0.62 * length * np.column_stack([np.sin(arc), np.cos(arc)])
        canvas.polygon(np.vstack([[(0.0, 0.0)], sector]), fill=(ORANGE, 0.24))
        canvas.line(sector, ORANGE, 2)
        draw_cart(canvas, 0.0, angle, length, cart)
        canvas.text(
            (canvas.left + 0.1 * length, canvas.top - 0.12 * length),
            f"{math.degrees(angle):+.1f}°   {math.degrees(velocity):+.0f}°/s",
            15,
            ha="left",
            va="top",
        )
