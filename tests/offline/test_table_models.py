"""Models that are drawn given a log know what it leaves open."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OneHot
from rblspi.data import Transitions
from rblspi.offline.table_models import drawn_values
from rblspi.offline.value_errors import evaluate_values
from tests.support.garnet import Garnet


def test_much_data_leave_the_exact_values() -> None:
    rng = np.random.default_rng(0)
    garnet = Garnet.random(rng, 5, 2, 2)
    log, _ = garnet.log(rng, 200, 500, garnet.following(0.5))
    drawn = drawn_values(log, garnet.policy, 2, 0.9, (-100.0, 100.0), models=20)
    exact = garnet.action_values(0.9).T
    assert np.abs(drawn.mean(axis=0) - exact).max() < 0.2
    assert drawn.std(axis=0).max() < 0.2


def test_what_was_never_tried_may_be_worth_anything() -> None:
    log = Transitions.from_arrays([0, 0], [0, 0], [1.0, 1.0], [0, 0], [False, False])
    drawn = drawn_values(log, np.zeros(1, np.int64), 2, 0.9, (0.0, 10.0), models=2000)
    assert drawn[:, 1].min() >= 0.0
    assert drawn[:, 1].max() <= 10.0
    assert drawn[:, 1].mean() == pytest.approx(5.0, abs=4 * 10 / 12**0.5 / 2000**0.5)
    assert drawn[:, 1].std() == pytest.approx(10 / 12**0.5, rel=0.1)


def test_an_end_has_no_future() -> None:
    """A log without chance, of which nothing is unseen: the last state is never left."""
    log = Transitions.from_arrays(
        [0, 1] * 500, [0, 0] * 500, [0.0, 1.0] * 500, [1, 2] * 500, [False, True] * 500
    )
    drawn = drawn_values(log, np.zeros(3, np.int64), 1, 0.5, (0.0, 1.0), models=50)
    assert drawn[:, 0, 1] == pytest.approx(1.0, abs=0.01)
    assert drawn[:, 0, 0] == pytest.approx(0.5, abs=0.01)


def test_units_and_offsets_are_units_and_offsets() -> None:
    rng = np.random.default_rng(1)
    garnet = Garnet.random(rng, 5, 2, 2)
    log, _ = garnet.log(rng, 10, 20, garnet.following(0.5))
    found = []
    for factor, added in ((1.0, 0.0), (1e6, 0.0), (1.0, 1e4)):
        changed = replace(log, rewards=factor * log.rewards + added)
        posterior = evaluate_values(
            changed, garnet.act, OneHot(), 2, 0.9, gym.spaces.Discrete(5)
        ).posterior
        mean, std = posterior.predict(np.eye(5))
        found.append(((mean - added / (1 - 0.9)) / factor, std / factor))
    for mean, std in found[1:]:
        np.testing.assert_allclose(mean, found[0][0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(std, found[0][1], rtol=1e-5)


def test_a_few_visits_do_not_say_that_nothing_else_happens() -> None:
    """Three visits that all led back: the rest of the table may still be reached."""
    states = np.repeat([0, 1], [3, 400])
    rewards = np.where(states == 0, 0.0, 1.0)
    log = Transitions.from_arrays(states, np.zeros(403, int), rewards, states, np.zeros(403, bool))
    drawn = drawn_values(log, np.zeros(2, np.int64), 1, 0.99, (0.0, 100.0), models=400)
    assert np.median(drawn[:, 0, 0]) < 1.0
    assert np.quantile(drawn[:, 0, 0], 0.975) > 20.0
