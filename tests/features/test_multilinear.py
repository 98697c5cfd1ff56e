"""Linear interpolation on a grid."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import Multilinear

PLANE = gym.spaces.Box(np.array([-1.0, 2.0]), np.array([1.0, 5.0]), dtype=np.float64)
INSIDE = np.random.default_rng(0).uniform(PLANE.low, PLANE.high, (200, 2))


def test_features_are_not_negative_and_sum_to_one_inside_and_outside() -> None:
    features = Multilinear((4, 7)).build(PLANE)
    x = features(np.concatenate([INSIDE, 3.0 * INSIDE]))
    assert (x >= 0.0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1.0)
    assert (np.count_nonzero(x, axis=1) <= 4).all()


def test_functions_that_are_linear_in_each_dimension_are_exact() -> None:
    features = Multilinear((3, 5)).build(PLANE)
    lines = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(2, 5, 5), indexing="ij")

    def function(s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return 1.0 + 2.0 * s - t + 0.5 * s * t

    found = features(INSIDE) @ function(*lines).ravel()
    np.testing.assert_allclose(found, function(*INSIDE.T))


def test_a_vertex_has_one_feature_and_beyond_the_bounds_it_is_as_on_them() -> None:
    features = Multilinear(3).build(PLANE)
    np.testing.assert_array_equal(features([0.0, 3.5]), np.eye(9)[4])
    np.testing.assert_array_equal(features([9.0, 9.0]), features([1.0, 5.0]))


def test_one_vertex_is_too_few() -> None:
    with pytest.raises(ValueError, match="vertices=1 must be whole numbers, 2 or more"):
        Multilinear(1).build(PLANE)
