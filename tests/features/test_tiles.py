import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi.features import TileCoding


def unit_box(dimensions):
    return gym.spaces.Box(0.0, 1.0, (dimensions,), dtype=np.float64)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 9), st.integers(0, 2**32)
)
def test_one_tile_of_each_tiling_is_active(tiles, tilings, seed):
    features = TileCoding(tiles, tilings).build(unit_box(len(tiles)))
    assert features.size == tilings * np.prod(tiles) + 1
    observations = np.random.default_rng(seed).uniform(-0.5, 1.5, (20, len(tiles)))
    values = features(observations)
    np.testing.assert_array_equal(values[:, -1], 1.0)
    by_tiling = values[:, :-1].reshape(20, tilings, -1)
    np.testing.assert_array_equal((by_tiling > 0).sum(axis=2), 1)
    np.testing.assert_allclose((values[:, :-1] ** 2).sum(axis=1), 1.0)


@pytest.mark.parametrize("tilings", [1, 3, 4, 8])
def test_every_tile_can_be_active(tilings):
    features = TileCoding((4, 3), tilings).build(unit_box(2))
    axis = np.linspace(0.0, 1.0, 200)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert (features(grid) > 0).any(axis=0).all()


def test_one_tiling_is_a_grid_of_equal_tiles():
    features = TileCoding(5, 1).build(unit_box(1))
    middles = (np.arange(5) + 0.5) / 5
    np.testing.assert_array_equal(features(middles[:, None])[:, :-1], np.eye(5))


def test_shared_tiles_fall_off_with_the_distance():
    """In one dimension the kernel is a triangle: 1 - distance / tile, in steps of 1/tilings."""
    tiles, tilings = 6, 8
    tile = 1.0 / (tiles - 1 + 1 / tilings)
    features = TileCoding(tiles, tilings).build(unit_box(1))
    middle = 0.37
    for parts in range(12):
        other = middle + parts * tile / tilings
        shared = features([middle])[:-1] @ features([other])[:-1]
        assert shared == pytest.approx(max(0.0, 1.0 - parts / tilings))


@pytest.mark.parametrize("tilings", [3, 5, 6, 8, 9])
def test_displacements_along_each_dimension_are_all_different(tilings):
    """Moving across one tile along a dimension, the tilings change one after the other."""
    features = TileCoding(4, tilings).build(unit_box(3))
    tile = 1.0 / (3 + 1 / tilings)
    steps = (np.arange(tilings + 1) + 0.5) / tilings * tile
    for d in range(3):
        observations = np.full((tilings + 1, 3), 1e-6)
        observations[:, d] = steps
        values = features(observations)[:, :-1] > 0
        changed = (values[1:] & ~values[:-1]).sum(axis=1)
        np.testing.assert_array_equal(changed, 1)


def test_outside_counts_as_on_the_bound():
    features = TileCoding(5, 7).build(unit_box(2))
    np.testing.assert_array_equal(features([-3.0, 0.3]), features([0.0, 0.3]))
    np.testing.assert_array_equal(features([0.3, 1e12]), features([0.3, 1.0]))
