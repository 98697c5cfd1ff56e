from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rblspi.features import RBFGrid


def box(dimensions):
    low = -1.0 - np.arange(dimensions)
    return gym.spaces.Box(low, low + 2.5 + 0.7 * np.arange(dimensions), dtype=np.float64)


def textbook(observations, space, cells, centres, width):
    """exp(-1/2 sum_d ((s_d - c_d) / sigma_d)^2) over all centres, written out."""
    axes, sigma = [], []
    for d, n in enumerate(cells):
        low, high = space.low[d], space.high[d]
        delta = (high - low) / (n if centres == "cell" else n - 1)
        shift = 0.5 if centres == "cell" else 0.0
        axes.append([low + (i + shift) * delta for i in range(n)])
        sigma.append(width[d] * delta)
    grid = np.array(list(product(*axes)))
    z = (observations[:, None] - grid) / np.array(sigma)
    return np.column_stack([np.exp(-0.5 * (z**2).sum(axis=2)), np.ones(len(observations))])


@pytest.mark.parametrize("centres", ["cell", "edge"])
@pytest.mark.parametrize("cells", [(9,), (8, 8), (3, 7), (4, 2, 5), (3, 3, 3, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_equals_the_formula(cells, centres, width):
    space = box(len(cells))
    widths = width * (1.0 + 0.3 * np.arange(len(cells)))
    features = RBFGrid(cells, centres, widths).build(space)
    assert features.size == np.prod(cells) + 1
    observations = np.random.default_rng(0).uniform(space.low, space.high, (100, len(cells)))
    expected = textbook(observations, space, cells, centres, widths)
    np.testing.assert_allclose(features(observations), expected, rtol=1e-13, atol=1e-200)
    np.testing.assert_allclose(features(observations), expected, rtol=0, atol=5e-15)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 60), st.floats(0.005, 20.0), st.floats(-1e4, 1e4))
@example(19, 0.005, 2.0**-14)  # the centre in the middle is exactly 0
def test_equals_the_formula_far_outside_and_for_all_widths(cells, width, observation):
    """Nothing overflows, and the difference is what rounding the distance alone would make.

    Gaussians narrower than a thirtieth of a cell may give 0 for what is below 1e-80.
    """
    space = gym.spaces.Box(-1.0, 1.0, (1,), dtype=np.float64)
    value = RBFGrid(cells, width=width).build(space)([observation])
    expected = textbook(np.array([[observation]]), space, [cells], "cell", [width])[0]
    np.testing.assert_allclose(value, expected, rtol=0, atol=2e-14)
    normal = expected > 1e-80
    distance = np.sqrt(-2.0 * np.log(expected[normal]))
    sigma = width * 2.0 / cells
    places = cells + distance * (distance + max(1.0, abs(observation)) / sigma)
    error = np.abs(value[normal] / expected[normal] - 1.0)
    assert (error <= 8 * np.finfo(float).eps * places).all()


def test_zero_at_infinite_distance():
    features = RBFGrid((5, 1)).build(box(2))
    for far in (1e9, -1e9, 1e300, -1e300):
        np.testing.assert_array_equal(features([far, 0.0]), [0.0] * 5 + [1.0])


def test_discrete_observations_are_numbers():
    chain, line = gym.spaces.Discrete(20, start=1), gym.spaces.Box(1.0, 20.0, (1,))
    states = np.arange(1, 21)
    np.testing.assert_array_equal(
        RBFGrid(5).build(chain)(states), RBFGrid(5).build(line)(states[:, None])
    )
