"""A model made of logged transitions: where it is exact, and where it knows nothing."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.data import Transitions
from rblspi.features import Polynomial
from rblspi.offline import BLSTD, policy_value
from rblspi.offline.local_model import LocalModel, follow_in_model
from rblspi.offline.values import SecondEstimate

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


def fitted(log):
    return BLSTD(BASIS, 2, discount=DISCOUNT).fit(log, right)


def test_where_moves_are_the_same_everywhere_the_model_is_exact():
    rng = np.random.default_rng(0)
    log = walks(rng, 2000, high=9.4999)
    log = replace(log, truncated=~log.terminated)
    places = np.array([0.25, 3.25, 6.75, 8.25])
    second = SecondEstimate.of(log, right, fitted(log))
    for half in second.by_half(places[:, None]):
        np.testing.assert_allclose(half[:, 1], value_of(places), rtol=1e-9)
        np.testing.assert_allclose(half[:, 0], DISCOUNT * value_of(places - 1.0))
    assert second.error < 0.05


def test_an_action_that_was_never_logged_has_no_value():
    log = walks(np.random.default_rng(0))
    lefts = log.select(log.actions == 0)
    model = LocalModel.of(lefts, np.ones(lefts.size, bool), DISCOUNT)
    found = model.follow(np.array([[5.0]]), np.array([1]), right, fitted(log), 1.0)
    assert np.isnan(found.returns).all()
    assert (found.before, found.beyond) == (0.0, 1.0)


def test_an_interval_contains_what_may_be_where_a_path_leaves_the_data():
    """From 1, it takes three steps to the right to leave the data, which end at 3."""
    log = walks(np.random.default_rng(0), 1000, high=3.0)
    log = replace(log, rewards=np.where(log.actions == 1, 0.5, 0.0))
    second = SecondEstimate.of(log, right, fitted(log))
    low, high = second.interval(np.array([[1.0]]))
    before, (least, most) = 0.5 * (1.0 + DISCOUNT + DISCOUNT**2), second.bounds
    assert low[0, 1] == pytest.approx(before + DISCOUNT**3 * least)
    assert high[0, 1] == pytest.approx(before + DISCOUNT**3 * most)
    assert least < most


def test_within_the_data_an_interval_contains_both_models_and_no_more():
    before = np.repeat(np.arange(0.0, 9.5, 0.125), 4)  # both actions in both halves, everywhere
    actions = np.tile([0, 0, 1, 1], len(before) // 4)
    after = before + np.where(actions == 1, 1.0, -1.0)
    ended = after > 9.5
    columns = (before[:, None], actions, ended.astype(float), after[:, None], ended, ~ended)
    log = Transitions.from_arrays(*columns)
    second = SecondEstimate.of(log, right, fitted(log))
    places = log.observations[[100, 200]]
    halves = second.by_half(places)
    for end, expected in zip(second.interval(places), (np.fmin, np.fmax), strict=True):
        np.testing.assert_array_equal(end[:, 1], expected(*halves)[:, 1])


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
