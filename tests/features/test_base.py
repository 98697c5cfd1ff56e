"""What all features have in common: shapes, errors, one result at both speeds."""

import math

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import (
    Fourier,
    Multilinear,
    OneHot,
    Polynomial,
    RandomFourier,
    RBFGrid,
    TileCoding,
)

PLANE = gym.spaces.Box(np.array([-1.2, -0.07]), np.array([0.5, 0.07]), dtype=np.float64)
CHAIN = gym.spaces.Discrete(20)
BASES = [
    RBFGrid(8),
    RBFGrid((3, 5), centres="edge", width=(0.5, 2.0)),
    Polynomial(3),
    Fourier(3),
    Fourier((2, 5)),
    TileCoding(4, 8),
    Multilinear((3, 5)),
    RandomFourier(20),
    RandomFourier(20, angles=(1,)),
    RBFGrid((3, 5), angles=(0,)),
]


def observations(rows=200, seed=0):
    """Inside the plane and some way outside of it."""
    rng = np.random.default_rng(seed)
    return rng.uniform(1.3 * PLANE.low, 1.3 * PLANE.high, (rows, 2))


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_compiled_equals_plain_source(basis):
    features = basis.build(PLANE)
    assert features.compiled
    plain = features._replace(function=features.function.py_func)
    assert not plain.compiled
    batch = observations(50)
    np.testing.assert_allclose(features(batch), plain(batch), rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_batch_equals_rows_to_the_bit(basis):
    features = basis.build(PLANE)
    batch = observations(50)
    values = features(batch)
    assert values.shape == (50, features.size)
    rows = [features(row) for row in batch]
    assert rows[0].shape == (features.size,)
    np.testing.assert_array_equal(values, rows)
    np.testing.assert_array_equal(values, features(batch))


@pytest.mark.parametrize("basis", BASES, ids=str)
def test_every_entry_is_written_and_nothing_beyond(basis):
    features = basis.build(PLANE)
    frame = np.full(features.size + 8, np.nan)
    for observation in observations():
        frame[4:-4] = np.nan
        features.function(features.parameters, observation, frame[4:-4])
        assert np.isfinite(frame[4:-4]).all()
        assert np.isnan(frame[:4]).all()
        assert np.isnan(frame[-4:]).all()


@pytest.mark.parametrize("basis", BASES, ids=str)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_compiled_code_stays_within_its_arrays_on_observations_that_are_not_finite(basis, bad):
    features = basis.build(PLANE)
    frame = np.full(features.size + 8, 7.0)
    features.function(features.parameters, np.array([bad, 0.0]), frame[4:-4])
    assert (frame[:4] == 7.0).all()
    assert (frame[-4:] == 7.0).all()


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
    "basis", [RBFGrid(3), Polynomial(2), Fourier(2), TileCoding(3)], ids=lambda b: type(b).__name__
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unbounded_dimensions_need_bounds(basis, dtype):
    infinite = np.inf if dtype is np.float64 else np.finfo(dtype).max
    space = gym.spaces.Box(
        np.array([-1.0, -infinite], dtype), np.array([1.0, infinite], dtype), dtype=dtype
    )
    with pytest.raises(ValueError, match=r"dimensions \[1\] have no bounds.*low=\[-1.0, -1.0\]"):
        basis.build(space)
    bounded = type(basis)(low=[-1.0, -3.0], high=[1.0, 3.0]).build(space)
    assert np.isfinite(bounded([0.5, 100.0])).all()


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


def test_spaces_without_a_fixed_number_of_numbers_are_refused():
    with pytest.raises(TypeError, match="fixed number of numbers"):
        RBFGrid(3).build(gym.spaces.Sequence(gym.spaces.Discrete(3)))
