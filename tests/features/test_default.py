"""The basis where the user chooses none, and the bounds where the user gives none."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import (
    OneHot,
    Polynomial,
    RandomFourier,
    RBFGrid,
    basis_from_text,
    default_basis,
    with_bounds,
)

BOX = gym.spaces.Box


def never():
    raise AssertionError("nothing to scout in a bounded space")


def test_the_default_basis_follows_the_space():
    assert default_basis(gym.spaces.Discrete(5), never) == OneHot()
    assert default_basis(BOX(0.0, 1.0, (2,)), never) == RBFGrid(12, low=(0, 0), high=(1, 1))
    assert isinstance(default_basis(BOX(0.0, 1.0, (13,)), never), Polynomial)


def test_dimensions_without_bounds_are_scaled_to_what_is_seen():
    space = BOX(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    basis = default_basis(space, lambda: np.array([[0.0, 10.0], [0.5, 30.0]]))
    assert basis == RBFGrid(12, low=(-1.0, 5.0), high=(1.0, 35.0))


def test_a_dimension_that_never_changes_is_no_obstacle():
    space = BOX(np.array([0.0, 3.0]), np.array([1.0, 3.0]), dtype=np.float64)
    basis = default_basis(space, lambda: np.empty((0, 2)))
    assert basis == RBFGrid(12, low=(0.0, 2.5), high=(1.0, 3.5))
    assert np.isfinite(basis.build(space)([0.5, 3.0])).all()


def test_five_to_twelve_dimensions_are_scaled_by_what_is_seen():
    rng = np.random.default_rng(0)
    scales = np.array([1.0, 1e-3, 50.0, 1.0, 1.0])
    seen = scales * rng.uniform(-1.0, 1.0, (500, 5))
    space = gym.spaces.Box(-np.inf, np.inf, (5,), np.float64)
    basis = default_basis(space, lambda: seen)
    assert isinstance(basis, RandomFourier)
    np.testing.assert_allclose(basis.high, 1.5 * scales, rtol=0.02)
    other = default_basis(space, lambda: 10.0 * seen)
    assert other.width == pytest.approx(basis.width)  # units of observations change nothing
    np.testing.assert_allclose(
        basis.build(space)(seen), other.build(space)(10.0 * seen), atol=1e-12
    )


def test_bounds_stay_bounds_and_circles_stay_circles():
    low, high = np.array([-np.pi, -1.0, 0, 0, 0]), np.array([np.pi, 1.0, 9.0, 9.0, 0.0])
    seen = np.random.default_rng(0).uniform(0.0, 0.9, (100, 5)) * (high > 0)
    basis = default_basis(gym.spaces.Box(low, high, dtype=np.float64), lambda: seen)
    assert basis.angles == (0,)
    assert (basis.low[0], basis.high[0]) == (-np.pi, np.pi)
    assert basis.high[1] == 1.0
    assert basis.high[2] < 1.2
    assert basis.low[4] < basis.high[4]


@pytest.mark.parametrize("text", ["rbf:20", "fourier:3", "polynomial:2", "tiles:4", "random:10"])
def test_a_given_basis_finds_its_bounds_as_the_default_does(text):
    space = gym.spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    basis = with_bounds(basis_from_text(text), space, lambda: np.array([[0.0, 10.0], [0.5, 30.0]]))
    assert (basis.low, basis.high) == ((-1.0, 5.0), (1.0, 35.0))
    assert with_bounds(basis, space, lambda: pytest.fail("it has bounds")) == basis
