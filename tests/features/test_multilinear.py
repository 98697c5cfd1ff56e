"""Linear interpolation on a grid."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import Multilinear

PLANE = gym.spaces.Box(np.array([-1.0, 2.0]), np.array([1.0, 5.0]), dtype=np.float64)
INSIDE = np.random.default_rng(0).uniform(PLANE.low, PLANE.high, (200, 2))


def test_features_are_not_negative_and_sum_to_one_inside_and_outside():
    features = Multilinear((4, 7)).build(PLANE)
    x = features(np.concatenate([INSIDE, 3.0 * INSIDE]))
    assert (x >= 0.0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1.0)
    assert (np.count_nonzero(x, axis=1) <= 4).all()


def test_functions_that_are_linear_in_each_dimension_are_exact():
    features = Multilinear((3, 5)).build(PLANE)
    lines = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(2, 5, 5), indexing="ij")

    def function(s, t):
        return 1.0 + 2.0 * s - t + 0.5 * s * t

    found = features(INSIDE) @ function(*lines).ravel()
    np.testing.assert_allclose(found, function(*INSIDE.T))


def test_a_vertex_has_one_feature_and_beyond_the_bounds_it_is_as_on_them():
    features = Multilinear(3).build(PLANE)
    np.testing.assert_array_equal(features([0.0, 3.5]), np.eye(9)[4])
    np.testing.assert_array_equal(features([9.0, 9.0]), features([1.0, 5.0]))


RING = gym.spaces.Box(np.array([-np.pi, 2.0]), np.array([np.pi, 5.0]), dtype=np.float64)
PAIR = gym.spaces.Box(np.array([-1.0, -1.0, 2.0]), np.array([1.0, 1.0, 5.0]), dtype=np.float64)


def test_around_a_circle_features_have_no_seam():
    features = Multilinear((5, 3)).build(RING)
    just = np.array([[-np.pi, 3.0], [np.pi, 3.0], [-np.pi - 1e-12, 3.0], [np.pi - 1e-12, 3.0]])
    for x in features(just):
        np.testing.assert_allclose(x, features([-np.pi, 3.0]), atol=1e-11)
    x = features(np.column_stack([np.linspace(-20.0, 20.0, 301), np.full(301, 3.0)]))
    np.testing.assert_allclose(x.sum(axis=1), 1.0)
    # hat functions of five vertices: the features change by at most 5 / (2 pi) a radian, each
    steps = np.abs(np.diff(x, axis=0)).max()
    assert steps <= 5.0 / (2.0 * np.pi) * 40.0 / 300.0 + 1e-12


@pytest.mark.parametrize("cells", [1, 4, -2])
def test_turning_by_some_cells_moves_the_features_by_as_many(cells):
    features = Multilinear((7, 4)).build(RING)
    rng = np.random.default_rng(0)
    states = rng.uniform(RING.low, RING.high, (100, 2))
    turned = features(states + np.array([cells * np.pi / 3.5, 0.0])).reshape(-1, 7, 4)
    expected = np.roll(features(states).reshape(-1, 7, 4), cells, axis=1)
    np.testing.assert_allclose(turned, expected, atol=1e-13)


def test_a_pair_has_the_features_of_its_angle():
    angles = np.random.default_rng(0).uniform(RING.low, RING.high, (100, 2))
    pairs = np.column_stack([np.cos(angles[:, 0]), np.sin(angles[:, 0]), angles[:, 1]])
    wanted = Multilinear((7, 4)).build(RING)(angles)
    found = Multilinear((7, 4), angles=((0, 1),)).build(PAIR)(pairs)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    longer = Multilinear((7, 4), angles=[[0, 1]]).build(PAIR)(pairs * [3.0, 3.0, 1.0])
    np.testing.assert_allclose(longer, wanted, atol=1e-12)


def test_a_circle_of_other_length_and_what_is_not_a_number():
    features = Multilinear((4, 2), low=(0.0, 2.0), high=(360.0, 5.0), angles=0).build(PLANE)
    np.testing.assert_allclose(features([350.0, 2.0])[[0, 6]], [1 - 10 / 90, 10 / 90])
    np.testing.assert_allclose(features([-10.0, 2.0]), features([350.0, 2.0]))
    x = np.empty(8)
    for odd in (np.nan, np.inf, -1e-30):
        features.function(features.parameters, np.array([odd, 2.0]), x)
        np.testing.assert_array_equal(x, np.eye(8)[0])


def test_about_ten_thousand_vertices_are_shared_among_the_dimensions():
    assert Multilinear(None).build(PLANE).size == 100**2
    assert Multilinear(None, angles=((0, 1),)).build(PAIR).size == 100**2
    assert Multilinear(None).build(PAIR).size == 22**3


@pytest.mark.parametrize("angles", [((0, 2),), ((1, 0),), ((0, 1), (1, 2)), ((0, 1), 1), (0, 0)])
def test_angles_that_are_none_are_refused(angles):
    with pytest.raises(ValueError, match="a pair is two neighbouring components"):
        Multilinear(3, angles=angles).build(PAIR)


def test_one_vertex_is_too_few():
    with pytest.raises(ValueError, match="vertices=1 must be whole numbers, 2 or more"):
        Multilinear(1).build(PLANE)


def test_a_component_that_is_left_out_changes_nothing():
    """The grid over three components, without the first, is that over the other two."""
    wide = gym.spaces.Box(np.append(-7.0, PLANE.low), np.append(7.0, PLANE.high), dtype=np.float64)
    seen = np.column_stack([np.linspace(-7.0, 7.0, 200), INSIDE])
    for angles, other in (((2,), (1,)), (((1, 2),), ((0, 1),)), ((0,), ())):
        some = Multilinear(5, angles=angles, left_out=(0,)).build(wide)
        found = Multilinear(5, angles=other).build(PLANE)
        np.testing.assert_array_equal(some(seen), found(INSIDE))
    with pytest.raises(ValueError, match=r"left_out=\(3,\) must be some, but not all.*from 0 to 2"):
        Multilinear(5, left_out=(3,)).build(wide)
