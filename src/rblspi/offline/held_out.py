"""Are stated intervals true where there is no simulator? Held-out episodes tell.

No log tells what another policy would have returned, but it does tell what its own did. The values
of the log's own policy are estimated from half of the episodes, with everything that a stated
interval is made of, and compared with the returns of the other half; then the halves change places.
What the log's policy chooses is here a part of the environment, in which there is a single action.

A return is the value of a state plus the noise of one episode, so that values are compared by
regions, each with as many states as the others: the mean stated value with the mean return, whose
standard error follows from how it varies between episodes. Where a time limit cut an episode short,
the rest of its return, of which the discount leaves 1% at the most, is the stated value. The errors
of neighbouring states are taken to be the same, so that the deviation of a mean is the mean of the
deviations.

This finds out about noise, prior and basis. It says nothing of actions that the log's policy does
not take: for those there is `rblspi.offline.trust`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core import check
from rblspi.core.types import Integers, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.offline.accumulation import Data, chunks_of, first_rows, halves
from rblspi.offline.linear_draws import draws_of_weights
from rblspi.offline.lstd import LSTD
from rblspi.offline.model_selection import candidates
from rblspi.offline.paths import REST, deviations, only_action, uncontrolled
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import ActionValues
from rblspi.rollout.calibration import Calibration

#: states of a half whose values are compared
STATES = 2000
#: regions of a half, a power of two
REGIONS = 16
#: episodes that a region needs: a standard error from so many is known to within a quarter
EPISODES = 10


def calibrate_on_log(
    log: Data,
    basis: BasisLike | None = None,
    *,
    discount: float = 0.99,
    observation_space: gym.Space[Any] | None = None,
) -> Calibration:
    """Compare stated values of the log's own policy with returns of held-out episodes.

    Parameters
    ----------
    log : Transitions, tuple of their columns, or iterable of Transitions
        In the order in which they happened. The first 50,000 are used.
    basis : Basis, optional
        In which values are estimated; by default that of `FQI`.
    discount : float
    observation_space : gymnasium.Space, optional
        As for `policy_value`.
    """
    discount = check.fraction("discount", discount)
    rows = uncontrolled(first_rows(chunks_of(log)))
    chosen = candidates([rows], observation_space)[0].basis if basis is None else basis
    future = Future.of(rows, discount)
    half, segments, scale = halves(rows), rows.segments(), deviations(rows)
    found = []
    for held in (half, ~half):
        places = np.flatnonzero(held & (future.rest <= REST))
        if not len(places) or not (~held).any():
            continue
        places = places[np.linspace(0, len(places) - 1, min(STATES, len(places))).astype(np.int64)]
        states = rows.observations[places]
        values = _values_of_log(rows.select(~held), chosen, discount, observation_space)
        ends = values.action_values(rows.next_observations[future.last[places]]).mean[:, 0]
        returns = future.returns[places] + future.rest[places] * ends
        region = regions(states, scale)
        stated = values.action_values(states)
        found += compare_by_region(stated, returns, segments[places], region)
    if not found:
        raise ValueError(
            f"{rows.size} transitions are too few to hold episodes out: {2 * EPISODES} episodes "
            "that go on for long enough are needed"
        )
    assert stated.draws is not None
    mean, std, truth, error = np.array(found).T
    return Calibration(mean, std, truth, error, of_means=True, draws=len(stated.draws))


class Future(NamedTuple):
    """What follows every row of a log in its episode."""

    returns: Vector  # G_t = r_t + gamma G_t+1, (N,)
    rest: Vector  # the discount of what is not in the log; 0 if the episode terminates, (N,)
    last: Integers  # the last row of the episode, (N,)

    @classmethod
    def of(cls, log: Transitions, discount: float) -> Future:
        """From the last row to the first."""
        discounts = np.broadcast_to(log.discounts(discount), log.size) * ~log.terminated
        ends = np.append(log.starts()[1:], True)
        future = cls(np.empty(log.size), np.empty(log.size), np.empty(log.size, np.int64))
        for i in range(log.size - 1, -1, -1):
            later, rest, last = (0.0, 1.0, i) if ends[i] else (column[i + 1] for column in future)
            future.returns[i] = log.rewards[i] + discounts[i] * later
            future.rest[i] = discounts[i] * rest
            future.last[i] = last
        return future


def regions(states: NDArray[Any], scale: Vector) -> Integers:
    """The region of every state: halves of halves, each cut in the dimension in which it is widest.

    Widths are the standard deviations of the states, in units of a scale.
    """
    rows: Matrix = states.reshape(len(states), -1) / scale
    parts = [np.arange(len(rows))]
    while len(parts) < REGIONS:
        ordered = [part[np.argsort(rows[part, rows[part].std(axis=0).argmax()])] for part in parts]
        parts = [half for part in ordered for half in np.array_split(part, 2)]
    region = np.empty(len(rows), np.int64)
    for number, part in enumerate(parts):
        region[part] = number
    return region


def compare_by_region(
    stated: ActionValues, returns: Vector, episodes: Integers, region: Integers
) -> list[list[float]]:
    """Mean stated value and deviation, mean return and its error, in regions with enough episodes.

    The variance of the mean of n returns is the sum over m episodes of their squared sums of
    deviations from it, times m / ((m - 1) n^2).
    """
    assert stated.std is not None
    found = []
    for number in np.unique(region):
        here = region == number
        mean, n = float(returns[here].mean()), int(here.sum())
        _, episode = np.unique(episodes[here], return_inverse=True)
        sums = np.bincount(episode, returns[here] - mean)
        if (m := len(sums)) < EPISODES:
            continue
        error = math.sqrt(m / (m - 1.0) * float(np.square(sums).sum())) / n
        found.append([stated.mean[here].mean(), stated.std[here].mean(), mean, error])
    return found


def _values_of_log(
    log: Transitions, basis: BasisLike, discount: float, space: gym.Space[Any] | None
) -> LinearPolicy:
    """The only policy of an uncontrolled log, with its values by the log."""
    fitted = LSTD(basis, 1, discount=discount, observation_space=space).fit(log, only_action)
    return replace(fitted.policy(), draws=partial(draws_of_weights, log))
