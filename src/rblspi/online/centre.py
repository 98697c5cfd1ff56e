"""Where the prior of action values is centred: the value of going on as so far.

With the mean reward rho and the share q of transitions that terminate, a value lasts for
H = 1 / (1 - gamma (1 - q)) steps, and the centre is v = rho H. An action value is
Q(s, a) = v + phi(s)'theta_a with weights theta ~ N(0, I / alpha), so that the prior does not draw
values to zero. The weights are those of the same problem with rewards

    r - v + gamma v   while the episode goes on,      r - v   where it terminates

(shaping by a constant potential). A constant added to all rewards of a problem that goes on for
ever moves v by 1 / (1 - gamma) times as much, and leaves these rewards as they are.

While all rewards are the same and nothing has terminated, there is nothing to be learnt but where
one has not been yet. The rewards above are then -|r|, or -1 if r = 0 has no unit, as if the centre
were that of a better reward, so that every known value is below it and the unknown is tried.
"""

from __future__ import annotations

import numpy as np

from rblspi.core.compiled import jit_borrowing
from rblspi.core.types import Vector

#: places in the vector: v and (1 - gamma) v; of all rewards so far, the number, the mean, the first
#: and the largest in size; terminal transitions; whether any reward or end tells values apart
VALUE, DRIFT, COUNT, MEAN, FIRST, LARGEST, TERMINAL, TOLD = range(8)

#: steps that a value lasts at the most, for discounts near 1
LONGEST = 1000.0
#: differences between rewards, relative to the largest reward, that may be rounding errors
ROUNDING = 1e-13


def new_centre() -> Vector:
    """The vector before the first reward, with the centre at 0."""
    return np.zeros(8)


@jit_borrowing
def count_reward(centre: Vector, reward: float, terminal: bool) -> bool:
    """Count a transition; True if the centre is to be moved.

    That is so when values are first told apart, and after 1, 2, 4, 8 and so on transitions: the
    mean hardly changes in between.
    """
    count = int(centre[COUNT]) + 1
    centre[COUNT] = count
    if count == 1:
        centre[FIRST] = reward
    centre[LARGEST] = max(centre[LARGEST], abs(reward))
    differs = abs(reward - centre[FIRST]) > ROUNDING * centre[LARGEST]
    first = centre[TOLD] == 0.0 and (terminal or differs)
    if first:
        centre[TOLD] = 1.0
    centre[MEAN] += (reward - centre[MEAN]) / count
    centre[TERMINAL] += terminal
    return first or (count & (count - 1)) == 0


@jit_borrowing
def unit(centre: Vector) -> float:
    """The difference that a better reward would make, while all rewards are the same."""
    return float(abs(centre[FIRST]) or 1.0)


@jit_borrowing
def move_centre(centre: Vector, discount: float) -> float:
    """Let the centre be that of all transitions so far; return by how much it moves."""
    before = centre[VALUE]
    going = 1.0 - centre[TERMINAL] / centre[COUNT]
    least = 1.0 / LONGEST
    reward = centre[MEAN] if centre[TOLD] else centre[MEAN] + unit(centre)
    centre[VALUE] = reward / max(1.0 - discount * going, least)
    centre[DRIFT] = reward * ((1.0 - discount) / max(1.0 - discount * going, least))
    return float(centre[VALUE] - before)


@jit_borrowing
def shaped(centre: Vector, reward: float, terminal: bool) -> float:
    """The reward as the weights are to explain it; 0 where only rounding tells it from that."""
    if centre[TOLD] == 0.0:
        return -unit(centre)
    rest = reward - (centre[VALUE] if terminal else centre[DRIFT])
    return 0.0 if abs(rest) <= ROUNDING * centre[LARGEST] else float(rest)
