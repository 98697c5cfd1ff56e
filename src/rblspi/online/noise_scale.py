"""The scale of the TD errors, and how widely value functions are sampled because of it.

Everything here is in the units of the rewards: other units change nothing but units. Rewards are
those that the weights explain, without what the centre of the prior does (see `centre`), so that a
constant added to all of them changes nothing either.
"""

from __future__ import annotations

import math

import numpy as np

from rblspi.core.compiled import jit_borrowing
from rblspi.core.types import Vector

#: places in the vector of running means
MEAN_TD_ERROR, COUNT, MEAN_REWARD, LARGEST_REWARD = range(4)

#: transitions that the running means look back
WINDOW = 1000.0
#: standard deviation of a normal distribution whose mean absolute value is 1
STD_OF_MEAN_ABSOLUTE = math.sqrt(math.pi / 2.0)
#: c^-1/2, where beta = c / sigma^2
WIDENING = 0.05**-0.5
#: episodes after which samples are half as wide as the posterior
ANNEALING = 200.0
#: the least standard deviation of samples at first, in units of the size of action values
LEAST_STD = 2000.0**-0.5
#: transitions after which the least standard deviation begins to fall
SETTLING = 1000.0
#: steps that a reward lasts at the most, for discounts near 1
HORIZON = 1000.0


def new_noise_scale() -> Vector:
    """Running means before the first transition."""
    return np.zeros(4)


@jit_borrowing
def update_noise_scale(scale: Vector, td_error: float, reward: float) -> None:
    """Average |delta| and |r| over about the latest `WINDOW` transitions.

    What a bad policy met long ago should not count for ever.
    """
    scale[COUNT] += 1.0
    rate = max(1.0 / scale[COUNT], 1.0 / WINDOW)
    scale[MEAN_TD_ERROR] += rate * (abs(td_error) - scale[MEAN_TD_ERROR])
    scale[MEAN_REWARD] += rate * (abs(reward) - scale[MEAN_REWARD])
    scale[LARGEST_REWARD] = max(scale[LARGEST_REWARD], abs(reward))


@jit_borrowing
def noise_std(scale: Vector) -> float:
    """beta^-1/2 = c^-1/2 sigma; sigma is that of a normal distribution with this mean |delta|.

    c is well below 1 because neighbouring transitions share features and errors: they say less
    than independent ones would. While all TD errors are zero, all values are zero and any noise
    will do.
    """
    if scale[MEAN_TD_ERROR] == 0.0:
        return 1.0
    return _clamp(WIDENING * (STD_OF_MEAN_ABSOLUTE * scale[MEAN_TD_ERROR]))


@jit_borrowing
def sampling_std(scale: Vector, discount: float, episodes: int) -> float:
    """What replaces beta^-1/2 when a value function is sampled.

    It starts at the noise's standard deviation and narrows as J episodes pass, but stays above a
    fraction of the size of action values, max(|r|, mean |r| horizon), which falls with the
    square root of the transitions t:

        max(beta^-1/2 / (1 + (J / 200)^2),  2000^-1/2 size / (1 + t / 1000)^1/2)
    """
    if scale[MEAN_TD_ERROR] == 0.0:
        return 1.0
    horizon = min(1.0 / max(1.0 - discount, 1e-300), HORIZON)
    size = max(scale[LARGEST_REWARD], horizon * scale[MEAN_REWARD])
    annealed = noise_std(scale) / (1.0 + (episodes / ANNEALING) ** 2)
    least = LEAST_STD * size / math.sqrt(1.0 + scale[COUNT] / SETTLING)
    return _clamp(max(annealed, least))


@jit_borrowing
def _clamp(std: float) -> float:
    """Clamp to a range whose squares neither overflow nor underflow."""
    if not std > 1e-100:
        return 1e-100
    return float(min(std, 1e100))
