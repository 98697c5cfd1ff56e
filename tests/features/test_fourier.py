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
