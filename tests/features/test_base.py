"""Shapes of observations, and what is refused."""

import math

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import Fourier, OneHot, Polynomial, RBFGrid, TileCoding

PLANE = gym.spaces.Box(np.array([-1.2, -0.07]), np.array([0.5, 0.07]), dtype=np.float64)
CHAIN = gym.spaces.Discrete(20)


def observations(rows=200, seed=0):
    """Inside the plane and some way outside of it."""
    rng = np.random.default_rng(seed)
    return rng.uniform(1.3 * PLANE.low, 1.3 * PLANE.high, (rows, 2))


def test_shapes_of_vector_observations():
    features = Polynomial(1).build(PLANE)
    assert features.input_size == 2
    assert features.size == 3
    assert features([0.0, 0.0]).shape == (3,)
    assert features([[0.0, 0.0]]).shape == (1, 3)
    assert features(np.empty((0, 2))).shape == (0, 3)
    assert features([]).shape == (0, 3)
    assert features(np.zeros((2, 5)).T).shape == (5, 3)
    assert features(np.zeros((5, 2), dtype=np.float32)).shape == (5, 3)


def test_observations_may_be_read_only():
    batch = observations(5)
    expected = RBFGrid(3).build(PLANE)(batch)
    batch.flags.writeable = False
    np.testing.assert_array_equal(RBFGrid(3).build(PLANE)(batch), expected)


def test_shapes_of_one_dimensional_observations():
    features = Polynomial(2).build(gym.spaces.Box(-1.0, 1.0, (1,)))
    assert features(0.5).shape == (3,)
    assert features([0.5]).shape == (3,)
    assert features([[0.5]]).shape == (1, 3)
    with pytest.raises(ValueError, match="5 dimensions, but these features take 1"):
        features(np.zeros(5))


def test_shapes_of_discrete_observations():
    features = OneHot().build(CHAIN)
    assert features.input_size == 1
    assert features(3).shape == (20,)
    assert features(np.int64(3)).shape == (20,)
    assert features(np.array(3)).shape == (20,)
    assert features([3]).shape == (1, 20)
    assert features(np.arange(20)).shape == (20, 20)
    assert features(np.arange(20)[:, None]).shape == (20, 20)
    assert features(np.empty(0, dtype=int)).shape == (0, 20)


def test_an_observation_with_several_axes_is_a_vector_in_their_order():
    image = gym.spaces.Box(0.0, 1.0, (2, 3))
    features = Polynomial(1).build(image)
    pixels = np.arange(6).reshape(2, 3) / 6
    np.testing.assert_allclose(features(pixels), [1.0, *pixels.ravel()])
    np.testing.assert_array_equal(features(pixels.ravel()), features(pixels))
    assert features(np.stack([pixels] * 4)).shape == (4, 7)
    assert features(np.zeros((4, 6))).shape == (4, 7)


@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 5, 3)])
def test_wrong_dimension_names_both_numbers(shape):
    features = RBFGrid(3).build(PLANE)
    with pytest.raises(ValueError, match=r"\d+ dimensions, but these features take 2") as error:
        features(np.zeros(shape))
    assert f"{math.prod(shape[1:] or shape)} dimensions" in str(error.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_observation_that_is_not_finite_names_its_row(bad):
    batch = np.zeros((5, 2))
    batch[3, 1] = bad
    with pytest.raises(ValueError, match="row 3 is not finite"):
        RBFGrid(3).build(PLANE)(batch)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (RBFGrid(low=[0.0, 0.0, 0.0]), r"low=.* has 3 values, .* 2 dimensions"),
        (RBFGrid(low=1.0, high=-1.0), r"low=\[1.0, 1.0\] must lie below high=\[-1.0, -1.0\]"),
        (RBFGrid((8, 8, 8)), r"cells=\(8, 8, 8\) has 3 values, .* 2 dimensions"),
        (RBFGrid(0), "cells=0 must be whole numbers, 1 or more"),
        (RBFGrid(2.5), "cells=2.5 must be whole numbers"),
        (RBFGrid(1, centres="edge"), "cells=1 must be whole numbers, 2 or more"),
        (RBFGrid(centres="middle"), "centres='middle' is neither"),
        (RBFGrid(width=0.0), "width=0.0 must be positive"),
        (RBFGrid(width=math.nan), "width=nan must be positive"),
        (RBFGrid(1000), "1000001 features"),
        (Polynomial(0), "degree=0 must be whole numbers, 1 or more"),
        (Polynomial(scale=0.0), "scale=0.0"),
        (Fourier(0), "order=0 must be whole numbers, 1 or more"),
        (TileCoding(0), "tiles=0"),
        (TileCoding(8, 0), "tilings=0"),
    ],
    ids=str,
)
def test_impossible_recipes_are_explained(basis, message):
    with pytest.raises(ValueError, match=message):
        basis.build(PLANE)


def test_grid_in_many_dimensions_is_refused_before_it_is_made():
    with pytest.raises(ValueError, match=f"{8**17 + 1} features"):
        RBFGrid(8).build(gym.spaces.Box(-1.0, 1.0, (17,)))
