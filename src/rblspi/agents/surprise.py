"""How noisy temporal differences are, and how widely to sample because of it.

Everything here is in the units of the rewards, so that other units change nothing but units.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rblspi.compiled import jit_borrowing

Vector = NDArray[np.float64]

#: places in the vector that keeps the surprise
MEAN, COUNT, MEAN_REWARD, LARGEST_REWARD = range(4)

#: transitions over which means fade
FADE = 1000.0
#: sigma of a normal distribution whose mean absolute value is 1
SIGMA = math.sqrt(math.pi / 2.0)
#: c^-1/2, where beta = c / sigma^2
WIDENING = 0.05**-0.5
#: episodes after which samples are half as wide as the posterior
ANNEALING = 200.0
#: the least spread at first, in units of the size of action values
LEAST_SPREAD = 2000.0**-0.5
#: transitions after which the least spread begins to fall
SETTLING = 1000.0
#: steps that a reward lasts at the most, for discounts near 1
HORIZON = 1000.0


def new_surprise() -> Vector:
    """Nothing was seen yet."""
    return np.zeros(4)


@jit_borrowing
def note(surprise: Vector, delta: float, reward: float) -> None:
    """Average |delta| and |r|, fading: what a bad policy met should not count for ever."""
    surprise[COUNT] += 1.0
    rate = max(1.0 / surprise[COUNT], 1.0 / FADE)
    surprise[MEAN] += rate * (abs(delta) - surprise[MEAN])
    surprise[MEAN_REWARD] += rate * (abs(reward) - surprise[MEAN_REWARD])
    surprise[LARGEST_REWARD] = max(surprise[LARGEST_REWARD], abs(reward))


@jit_borrowing
def noise(surprise: Vector) -> float:
    """beta^-1/2 = c^-1/2 sigma; sigma is a normal distribution's with this mean |delta|.

    c is well below 1: neighbouring transitions share features and their errors, so there is
    less to learn from them than from independent ones. Where nothing was a surprise yet all
    values are zero, and any noise will do.
    """
    if surprise[MEAN] == 0.0:
        return 1.0
    return _sensible(WIDENING * (SIGMA * surprise[MEAN]))


@jit_borrowing
def exploring_spread(surprise: Vector, discount: float, episodes: int) -> float:
    """What takes the place of beta^-1/2 when a value function is sampled.

    The noise at first, and less and less of it as J episodes pass; but not below a fraction of
    what action values can be, the largest reward or a lasting one, which falls with the
    square root of the transitions t.

        max(beta^-1/2 / (1 + (J / 200)^2),  2000^-1/2 size / (1 + t / 1000)^1/2)
    """
    if surprise[MEAN] == 0.0:
        return 1.0
    horizon = min(1.0 / max(1.0 - discount, 1e-300), HORIZON)
    size = max(surprise[LARGEST_REWARD], horizon * surprise[MEAN_REWARD])
    annealed = noise(surprise) / (1.0 + (episodes / ANNEALING) ** 2)
    least = LEAST_SPREAD * size / math.sqrt(1.0 + surprise[COUNT] / SETTLING)
    return _sensible(max(annealed, least))


@jit_borrowing
def _sensible(spread: float) -> float:
    """Within the range whose squares are numbers."""
    if not spread > 1e-100:
        return 1e-100
    return float(min(spread, 1e100))
