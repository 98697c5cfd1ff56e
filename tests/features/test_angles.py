"""Angles are found in what was seen, and become one number."""

import numpy as np
import pytest

from rblspi.features.bounds import components, coordinates_of, find_angles, find_useless
from rblspi.features.primitives import LINE, PAIR

ONE, FREE = np.ones(4), np.full(4, np.inf)
RNG = np.random.default_rng(0)
TURNS = RNG.uniform(-np.pi, np.pi, 50)
REST = RNG.uniform(-1.0, 1.0, (50, 2))


def found(seen, high=ONE):
    return find_angles(-high, high, lambda: np.asarray(seen, np.float64))


@pytest.mark.parametrize("high", [ONE, FREE])
@pytest.mark.parametrize("waves", [(np.cos, np.sin), (np.sin, np.cos)])
def test_neighbours_on_the_unit_circle_are_an_angle(high, waves):
    pair = np.stack([wave(TURNS) for wave in waves], axis=1)
    for exact in (pair, pair.astype(np.float32)):
        assert found(np.column_stack([REST, exact]), high) == ((2, 3),)
        assert found(np.column_stack([exact, exact]), high) == ((0, 1), (2, 3))
        assert found(np.column_stack([REST[:, 0], exact, REST[:, 1]]), high) == ((1, 2),)


def test_neighbours_that_are_not_quite_on_it_are_not():
    pair = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=1)
    pair[7, 0] += 1e-4
    assert found(np.column_stack([REST, pair])) == ()


def test_indicators_and_constants_lie_on_the_unit_circle_and_are_no_angle():
    indicators = np.eye(2)[RNG.integers(0, 2, 50)]
    constants = np.tile([0.6, 0.8], (50, 1))
    assert found(np.column_stack([indicators, constants])) == ()


def test_nothing_is_looked_at_where_bounds_leave_no_room_for_a_pair():
    def scout():
        raise AssertionError("it was called")

    high = np.array([1.0, np.pi, 1.0, 0.5])
    assert find_angles(-high, high, scout) == (1,)


def test_coordinates_and_components():
    rows = np.column_stack([REST[:, 0], np.cos(TURNS), np.sin(TURNS), REST[:, 1]])
    wanted = np.column_stack([REST[:, 0], TURNS, REST[:, 1]])
    np.testing.assert_allclose(coordinates_of(rows, np.array([LINE, PAIR, LINE])), wanted)
    assert components(((0, 1), 4)) == (0, 1, 4)
    assert components(2) == (2,)
    assert components(None) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_constants_duplicates_and_linear_functions_are_useless(kind):
    pair = np.stack([np.cos(TURNS), np.sin(TURNS)], axis=1)
    constant, noise = np.full(50, 0.3), RNG.standard_normal(50)
    columns = (REST, REST[:, :1], constant, 2.0 * REST @ [1.0, 3.0] + 5.0, noise, pair, pair)
    seen = np.column_stack(columns).astype(kind).astype(np.float64)
    assert find_useless(seen, ((6, 7), (8, 9))) == (2, 3, 4, 8, 9)
    half = np.column_stack([pair[:, 1], pair])  # the sine alone, and then the angle
    assert find_useless(half, ((1, 2),)) == ()
    assert find_useless(np.full((50, 2), 0.3), ()) == ()
