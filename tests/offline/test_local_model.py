"""A model made of logged transitions: where it is exact, and where it knows nothing."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.data import Transitions
from rblspi.features import Polynomial
from rblspi.offline import policy_value
from rblspi.offline.local_model import follow_in_model

DISCOUNT = 0.9
#: too small a basis for values that fall by steps
BASIS = Polynomial(1, low=0.0, high=10.0)


def right(observations):
    return np.ones(len(observations), int)


def walks(rng, rows=400, low=0.0, high=9.0):
    """Steps of 1 to the left or right on a line; beyond 9.5 it ends, with a reward of 1."""
    before = rng.uniform(low, high, (rows, 1))
    actions = rng.integers(2, size=rows)
    after = before + np.where(actions == 1, 1.0, -1.0)[:, None]
    ended = after[:, 0] > 9.5
    return Transitions.from_arrays(before, actions, ended.astype(float), after, ended)


def value_of(places):
    """The discounted reward at the end of steps of 1 to the right."""
    return DISCOUNT ** np.ceil(9.5 - places - 1.0).clip(0.0)


@pytest.mark.parametrize(("high", "first"), [(6.0, 2.0), (6.0, 4.0), (3.0, 1.0)])
def test_what_lies_beyond_the_log_is_discounted_from_where_the_policy_leaves_it(high, first):
    log = walks(np.random.default_rng(0), 1000, high=high)
    share = follow_in_model(right, log, DISCOUNT, np.array([[first]])).beyond
    # the last place within the log is at its end or less than a step before it
    steps = int(np.floor(high - first)) + 1
    assert share == pytest.approx(DISCOUNT**steps)


def test_an_interval_allows_for_what_the_log_does_not_contain():
    """Nothing is known beyond 3; all that is seen there are rewards of 0 or, once, of 1."""
    log = walks(np.random.default_rng(0), 1000, high=3.0)
    log = replace(log, rewards=np.where(np.arange(log.size) == 0, 1.0, 0.0))
    found = policy_value(log, right, BASIS, 2, discount=DISCOUNT, first_observations=[[1.0]])
    assert found.beyond == pytest.approx(DISCOUNT**3)
    assert found.low <= value_of(np.array([1.0]))[0] <= found.high
    assert found.high - found.low > 0.5 * found.beyond * 10.0


def test_where_states_recur_all_their_transitions_take_turns():
    """A coin: from 0.5, one step to 1.5 for a reward of 0 or 1, and the end."""
    rewards = np.arange(200) % 4 == 0
    place, ended = np.full((200, 1), 0.5), np.ones(200, bool)
    coin = Transitions.from_arrays(place, np.zeros(200, int), rewards * 1.0, place + 1.0, ended)
    paths = follow_in_model(lambda at: np.zeros(len(at), int), coin, DISCOUNT, place)
    assert paths.returns.mean() == pytest.approx(0.25)
    assert (paths.weights <= 1.0).all()  # 100 paths, 200 rows
