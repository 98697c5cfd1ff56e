"""Where the prior of action values is centred: the value of going on as the rewards so far did.

With the mean reward rho and the horizon H = 1 / (1 - gamma), the centre is v = rho H. An action
value is Q(s, a) = v + phi(s)'theta_a with weights theta ~ N(0, I / alpha), so that the prior does
not draw values to zero. The weights are those of the same problem with rewards

    r - v + gamma v   while the episode goes on,      r - v   where it terminates

(shaping by a constant potential). A constant added to all rewards moves v, and leaves the rewards
above as they are while episodes go on.
"""

from __future__ import annotations

import numpy as np

from rblspi.core.compiled import jit_borrowing
from rblspi.core.types import Vector

#: places in the vector: the mean reward that the centre is made of, that of all rewards so far,
#: the number of these, and the largest absolute value among them
CENTRE, MEAN, COUNT, LARGEST = range(4)

#: steps that a reward lasts at the most, for discounts near 1
LONGEST = 1000.0
#: differences between rewards, relative to the largest reward, that may be rounding errors
ROUNDING = 1e-13


def new_centre() -> Vector:
    """Nothing is known before the first reward: the centre is 0."""
    return np.zeros(4)


@jit_borrowing
def horizon(discount: float) -> float:
    """H, the steps that a reward lasts."""
    return float(min(1.0 / max(1.0 - discount, 1e-300), LONGEST))


@jit_borrowing
def centre_value(centre: Vector, discount: float) -> float:
    """The value v = rho H."""
    return float(centre[CENTRE] * horizon(discount))


@jit_borrowing
def count_reward(centre: Vector, reward: float) -> bool:
    """Add a reward to the mean; True if the centre is to be moved there.

    That is so after 1, 2, 4, 8 and so on rewards: the mean hardly changes in between.
    """
    count = int(centre[COUNT]) + 1
    centre[COUNT] = count
    centre[MEAN] += (reward - centre[MEAN]) / count
    centre[LARGEST] = max(centre[LARGEST], abs(reward))
    return (count & (count - 1)) == 0


@jit_borrowing
def move_centre(centre: Vector, discount: float) -> float:
    """Let the centre be that of all rewards so far; return by how much it moves."""
    before = centre_value(centre, discount)
    centre[CENTRE] = centre[MEAN]
    return float(centre_value(centre, discount) - before)


@jit_borrowing
def shaped(centre: Vector, reward: float, terminal: bool, discount: float) -> float:
    """The reward as the weights are to explain it; 0 where only rounding tells it from that."""
    steps = horizon(discount)
    lasting = steps if terminal else min(1.0, (1.0 - discount) * LONGEST)
    rest = reward - lasting * centre[CENTRE]
    return 0.0 if abs(rest) <= ROUNDING * centre[LARGEST] else rest
