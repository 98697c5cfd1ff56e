"""Fitted Q iteration: agreement with the textbook, exact limits."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box

from examples import textbook
from rblspi.data import Transitions
from rblspi.features import RBFGrid
from rblspi.offline import FQI
from tests.support.logs import some_log

GRID = RBFGrid(3, low=-1, high=1)


def going_on(seed=0):
    """A log without terminal states."""
    log = some_log(300, seed)
    return replace(log, terminated=np.zeros(300, bool), truncated=np.ones(300, bool))


@pytest.mark.parametrize("log", [some_log(150), going_on().rows(0, 150)], ids=["ends", "goes on"])
@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
def test_the_weights_are_those_of_the_textbook(log):
    fqi = FQI(GRID, 3, discount=0.9, ridge=0.01, max_iterations=7, tolerance=1e-300).fit(log)
    gram = fqi.statistics_.gram
    penalty = 0.01 * np.trace(gram, axis1=1, axis2=2).mean() / gram.shape[1]
    constant = fqi.features_.constant
    expected = textbook.fitted_q_iteration(
        *(log, fqi.features_, 3, 7), discount=0.9, penalty=penalty, constant=constant
    )
    np.testing.assert_allclose(fqi.weights_, expected, rtol=1e-9, atol=1e-9)


def test_values_are_limited_by_the_rewards():
    log = going_on()
    low, high = FQI(GRID, 3, discount=0.9).fit(log).limits_
    assert (low, high) == pytest.approx((10 * log.rewards.min(), 10 * log.rewards.max()))
    paid = replace(some_log(), rewards=np.ones(200))
    # An episode may end at once.
    assert FQI(GRID, 3, discount=0.9).fit(paid).limits_ == pytest.approx((1.0, 10.0))
    lost = replace(paid, rewards=-np.ones(200))
    assert FQI(GRID, 3, discount=0.9).fit(lost).limits_ == pytest.approx((-10.0, -1.0))


def test_clipping_keeps_it_from_diverging():
    """Two states with values w and 2w: the example of Tsitsiklis and Van Roy."""
    log = Transitions.from_arrays([1, 2], [0, 0], [1.0, 0.0], [2, 2], [False, False])
    fqi = FQI(lambda s: np.array([float(s)]), 1, discount=0.95, max_iterations=300)
    fqi.set_params(observation_space=Box(1, 2, ()), tolerance=1e-9).fit(log)
    assert fqi.converged_
    assert abs(fqi.weights_[0]) <= fqi.limits_[1]


def test_an_action_that_is_not_in_the_log_is_worth_the_mean():
    log = some_log()
    fqi = FQI(GRID, 4, discount=0.9).fit(log)
    unknown = fqi.predict(log.observations)[:, 3]
    np.testing.assert_allclose(unknown, unknown[0], rtol=1e-9)
