"""Finer versions of a basis."""

import gymnasium as gym
import numpy as np

from rblspi.features import OneHot, Polynomial, RBFGrid
from rblspi.features.refinement import MOST, cells_of, finer, with_centres

PLANE = gym.spaces.Box(-1.0, 2.0, (2,), np.float64)
POINTS = np.random.default_rng(0).uniform(-1.0, 2.0, (200, 2))


def test_a_table_has_no_finer_version_and_is_that_of_other_bases():
    states = gym.spaces.Discrete(10)
    observations = np.arange(10.0)[:, None]
    assert finer(OneHot(), states, observations) == []
    assert finer(Polynomial(2), states, observations) == [OneHot()]


def test_finer_grids_have_half_as_many_cells_more_as_far_as_they_fit():
    grid, cells, few, many = finer(RBFGrid(8), PLANE, POINTS)
    assert grid == RBFGrid((12, 12))
    assert cells.build(PLANE).size == MOST
    assert few.build(PLANE).size == 2 * 65
    assert many.build(PLANE).size == 65 + MOST // 2
    grid, *_ = finer(RBFGrid((19, 20)), PLANE, POINTS)
    assert grid.cells == (19, 20)
    assert np.prod(grid.cells) <= MOST


def test_cells_hold_as_many_observations_each_along_every_dimension():
    inside = cells_of(POINTS, 4).build(PLANE)(POINTS)
    np.testing.assert_array_equal(inside.sum(axis=1), 1.0)
    counts = inside.sum(axis=0).reshape(4, 4)
    assert np.abs(counts.sum(axis=0) - 50).max() <= 1
    assert np.abs(counts.sum(axis=1) - 50).max() <= 1


def test_centres_are_the_same_at_every_call_whatever_the_order_of_the_data():
    assert with_centres(RBFGrid(2), POINTS, 9) == with_centres(RBFGrid(2), POINTS[::-1], 9)
