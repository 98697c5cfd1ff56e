"""Stated intervals against the returns of held-out episodes."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.data.transitions import Transitions, concatenated
from rblspi.offline import held_out
from rblspi.offline.held_out import REGIONS, Future, calibrate_on_log, compare_by_region, regions
from rblspi.policies import ActionValues
from rblspi.rollout import collect
from tests.support.chain import DISCOUNT, random_episodes

LOG = concatenated(random_episodes(40, 120, seed=3))


def some_rows(elapsed=None):
    """Two episodes: one of three steps that terminates, and one of two that is cut short."""
    ends = [False, False, True, False, False], [False, False, False, False, True]
    rows = Transitions.from_arrays(
        np.arange(5), np.zeros(5, int), np.array([1.0, 2, 4, 8, 16]), np.arange(1, 6), *ends
    )
    return replace(rows, elapsed=elapsed)


def test_returns_are_discounted_sums_to_the_end_of_the_episode():
    future = Future.of(some_rows(), 0.5)
    np.testing.assert_array_equal(future.returns, [1 + 2 / 2 + 4 / 4, 2 + 4 / 2, 4, 8 + 16 / 2, 16])
    np.testing.assert_array_equal(future.rest, [0, 0, 0, 0.25, 0.5])
    np.testing.assert_array_equal(future.last, [2, 2, 2, 4, 4])


def test_transitions_are_discounted_by_the_time_they_take():
    future = Future.of(some_rows(np.array([2.0, 1, 1, 3, 1])), 0.5)
    np.testing.assert_array_equal(future.returns, [1 + (2 + 4 / 2) / 4, 4, 4, 8 + 16 / 8, 16])
    np.testing.assert_array_equal(future.rest, [0, 0, 0, 1 / 16, 1 / 2])


def test_regions_have_equally_many_states_and_do_not_depend_on_their_order():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(200, 3))
    found = regions(states, np.array([1.0, 2.0, 0.5]))
    counts = np.bincount(found)
    assert len(counts) == REGIONS
    assert counts.max() - counts.min() <= 1
    order = rng.permutation(160)  # which can be cut into halves of halves without a rest
    even = regions(states[:160], np.ones(3))
    np.testing.assert_array_equal(regions(states[order], np.ones(3)), even[order])


def test_the_error_of_a_mean_return_is_that_of_a_mean_over_episodes():
    rng = np.random.default_rng(1)
    means = rng.normal(size=12)
    returns, episodes = np.repeat(means, 5), np.repeat(np.arange(12), 5)
    stated = ActionValues(
        np.zeros((60, 1)),
        np.array([-1.0, 1.0])[:, None, None] * np.ones((60, 1)) / np.sqrt(2.0),
        np.zeros(60),
    )
    ((mean, std, truth, error),) = compare_by_region(stated, returns, episodes, np.zeros(60, int))
    assert (mean, std) == (0.0, pytest.approx(1.0))
    assert truth == pytest.approx(means.mean())
    assert error == pytest.approx(means.std(ddof=1) / np.sqrt(12))


def test_values_of_the_logs_own_policy_are_true():
    for log in (LOG, concatenated(list(collect("rblspi/InvertedPendulum-v0", 4000, seed=1)))):
        result = calibrate_on_log(log, discount=DISCOUNT)
        assert result.of_means
        assert result.coverage(0.95)[0] >= 0.9
        assert "mean returns of held-out regions" in str(result)


@pytest.mark.parametrize("factor", [2.0**-20, 1024.0])
def test_other_units_of_the_rewards_change_units_alone(factor):
    one = calibrate_on_log(LOG, discount=DISCOUNT)
    other = calibrate_on_log(replace(LOG, rewards=factor * LOG.rewards), discount=DISCOUNT)
    for column, scaled in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(factor * column, scaled)


def test_values_that_are_wrong_are_found_out(monkeypatch):
    found = held_out._values_of_log

    def wrong(*problem):
        policy = found(*problem)
        draws = policy.value_draws
        return replace(policy, weights=policy.weights + 5.0, draws=draws)

    monkeypatch.setattr(held_out, "_values_of_log", wrong)
    result = calibrate_on_log(LOG, discount=DISCOUNT)
    assert result.verdict == "too sure: do not rely on the intervals"


def test_too_few_episodes_cannot_tell():
    with pytest.raises(ValueError, match="120 transitions are too few to hold episodes out: 20 ep"):
        calibrate_on_log(LOG.rows(0, 120), discount=DISCOUNT)
