"""Random Fourier features are inner products of a kernel, in any number of dimensions."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import RandomFourier, RBFGrid, basis_from_text

CUBE = gym.spaces.Box(0.0, 1.0, (6,), np.float64)
POINTS = np.random.default_rng(0).uniform(-0.5, 1.5, (40, 6))
CIRCLE = gym.spaces.Box(np.array([-np.pi, -1.0]), np.array([np.pi, 1.0]), dtype=np.float64)


def products(features, points):
    rows = features(points)
    return rows @ rows.T


def test_every_observation_has_the_same_length_and_a_constant():
    features = RandomFourier(64).build(CUBE)
    assert features.size == 65
    np.testing.assert_allclose((features(POINTS) ** 2).sum(axis=1), 2.0, rtol=1e-14)
    np.testing.assert_allclose(features(POINTS) @ features.constant, 1.0)


def test_products_depend_on_differences_alone():
    features = RandomFourier(32, width=0.3).build(CUBE)
    moved = products(features, POINTS + np.array([3.0, -1.0, 0.5, 0.0, 2.0, 7.0]))
    np.testing.assert_allclose(moved, products(features, POINTS), atol=1e-13)


def test_products_are_those_of_a_gaussian_kernel():
    """The mean of m cosines has a standard deviation of at most (1 / 2m)^1/2."""
    m, width = 50_000, 0.8
    differences = POINTS[:, None] - POINTS
    kernel = 1.0 + np.exp(-0.5 * (differences**2).sum(axis=2) / width**2)
    for seed in (0, 1):
        found = products(RandomFourier(2 * m - 2, width=width, seed=seed).build(CUBE), POINTS)
        assert np.abs(found - kernel).max() < 6.0 * (0.5 / m) ** 0.5


def test_widths_are_in_units_of_the_range_of_each_dimension():
    space = gym.spaces.Box(np.array([0.0, -5.0]), np.array([1.0, 5.0]), dtype=np.float64)
    one = RandomFourier(20, width=(0.5, 0.25)).build(space)
    other = RandomFourier(20, width=1.0, low=0.0, high=(0.5, 2.5)).build(space)
    points = np.random.default_rng(1).uniform(-1, 1, (10, 2))
    np.testing.assert_allclose(products(one, points), products(other, points), atol=1e-13)


def test_seeds_give_the_same_frequencies_for_ever():
    """A file holds the seed and not the frequencies."""
    from scipy.special import ndtri

    built = RandomFourier(4, width=1.0, seed=7).build(gym.spaces.Box(0.0, 1.0, (1,), np.float64))
    bits = np.random.PCG64(7).random_raw(2)
    expected = ndtri(((bits >> np.uint64(11)) + 0.5) / 2**53)
    np.testing.assert_array_equal(built.stages[2].parameters[2:], expected)
    assert not np.array_equal(RandomFourier(4, seed=8).build(CUBE).parameters, built.parameters)


@pytest.mark.parametrize("basis", [RandomFourier(64), RBFGrid((7, 3)), RBFGrid((8, 3), "edge")])
def test_bounds_of_minus_pi_and_pi_make_a_circle(basis):
    features = basis.build(CIRCLE)
    angles = np.linspace(-np.pi, np.pi, 30)
    points = np.column_stack([angles, np.linspace(-1, 1, 30)])
    around = points + np.array([2 * np.pi, 0.0])
    np.testing.assert_allclose(features(points), features(around), atol=1e-12)
    one, other = features([[np.pi - 1e-4, 0.3], [-np.pi + 1e-4, 0.3]])
    assert np.abs(one - other).max() < 1e-3


def test_a_turn_by_one_cell_moves_the_gaussians_of_a_circle_by_one():
    features = RBFGrid(6).build(gym.spaces.Box(-np.pi, np.pi, (1,), np.float64))
    angles = np.linspace(-np.pi, np.pi, 17)[:, None]
    moved = features(angles + 2 * np.pi / 6)[:, :6]
    np.testing.assert_allclose(np.roll(features(angles)[:, :6], 1, axis=1), moved, atol=1e-13)


def test_gaussians_on_a_circle_are_nearly_those_on_a_line_far_from_its_ends():
    """-t^2 / 2 <= cos t - 1 <= -t^2 / 2 + t^4 / 24."""
    space, angle = gym.spaces.Box(-np.pi, np.pi, (1,), np.float64), 0.07
    circle, line = (
        RBFGrid(60, angles=angles).build(space)([[angle]])[0, 20:40] for angles in (None, ())
    )
    delta = 2 * np.pi / 60
    away = angle - (-np.pi + (np.arange(20, 40) + 0.5) * delta)
    excess = np.log(circle) - np.log(line)
    assert (excess > -1e-10).all()
    assert (excess < away**4 / (24 * delta**2) + 1e-10).all()


def test_the_user_says_what_is_a_circle():
    degrees = gym.spaces.Box(0.0, 360.0, (1,), np.float64)
    endless = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    for basis in (RBFGrid(5, angles=(0,)), RandomFourier(10, angles=0)):
        np.testing.assert_allclose(basis.build(degrees)([[0.0]]), basis.build(degrees)([[360.0]]))
        once, twice = basis.build(endless)([[1.0], [1.0 + 2 * np.pi]])
        np.testing.assert_allclose(once, twice)
    assert basis_from_text("RBFGrid(5, angles=(0,))") == RBFGrid(5, angles=(0,))
    with pytest.raises(ValueError, match=r"angles=\(1,\) must be numbers of dimensions"):
        RBFGrid(5, angles=(1,)).build(degrees)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (RandomFourier(3), "features=3 must be even"),
        (RandomFourier(0), "features=0 must be whole numbers, 2 or more"),
        (RandomFourier(width=0.0), "width=0.0 must be positive"),
        (RandomFourier(seed=-1), "seed=-1 must be whole numbers"),
    ],
)
def test_impossible_recipes_are_explained(basis, message):
    with pytest.raises(ValueError, match=message):
        basis.build(CUBE)
