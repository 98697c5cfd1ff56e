from itertools import product

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import Fourier


def unit_box(dimensions):
    return gym.spaces.Box(0.0, 1.0, (dimensions,), dtype=np.float64)


@pytest.mark.parametrize(
    "order", [(1,), (7,), (3, 3), (1, 4), (4, 1), (2, 3, 1), (1, 2, 3), (3, 3, 3, 3)]
)
def test_equals_the_formula(order):
    features = Fourier(order).build(unit_box(len(order)))
    frequencies = np.array(list(product(*[range(n + 1) for n in order])))
    assert features.size == len(frequencies)
    u = np.random.default_rng(0).uniform(size=(50, len(order)))
    np.testing.assert_allclose(features(u), np.cos(np.pi * u @ frequencies.T), atol=2e-14)


def test_scaled_by_the_bounds_and_clipped_to_them():
    features = Fourier(4, low=-2.0, high=6.0).build(unit_box(1))
    np.testing.assert_allclose(features([0.0]), np.cos(np.pi * np.arange(5) / 4), atol=1e-15)
    np.testing.assert_array_equal(features([9.0]), features([6.0]))
    np.testing.assert_array_equal(features([-9.0]), features([-2.0]))


def test_cosines_are_orthogonal():
    """Over the middles of n cells the mean of a product is that of the integral, exactly."""
    middles = (np.arange(16) + 0.5) / 16
    grid = np.array(list(product(middles, repeat=2)))
    values = Fourier(3).build(unit_box(2))(grid)
    frequencies = np.array(list(product(range(4), repeat=2)))
    # The mean of cos(pi c . u)^2 is 1 for the constant and 1/2 for all others.
    gram = values.T @ values / len(grid)
    norms = np.where((frequencies == 0).all(axis=1), 1.0, 0.5)
    np.testing.assert_allclose(np.diag(gram), norms, atol=1e-14)
    # cos(a + b) = cos a cos b - sin a sin b, and on [0, 1] sines are orthogonal to cosines only
    # of the same parity: so are the features.
    same_parity = (frequencies[:, None] % 2 == frequencies % 2).all(axis=2)
    off_diagonal = ~np.eye(len(gram), dtype=bool)
    np.testing.assert_allclose(gram[same_parity & off_diagonal], 0.0, atol=1e-14)


def test_one_dimension_is_orthogonal():
    middles = (np.arange(32) + 0.5) / 32
    values = Fourier(9).build(unit_box(1))(middles[:, None])
    np.testing.assert_allclose(values.T @ values / 32, np.diag([1.0] + [0.5] * 9), atol=1e-14)
