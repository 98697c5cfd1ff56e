"""Factors and their updates against NumPy."""

import numpy as np
import pytest

from rblspi.core import linear_algebra as la


def test_rank_one_exchange():
    rng = np.random.default_rng(1)
    data = rng.standard_normal((50, 12))
    matrix = data.T @ data
    upper = np.linalg.cholesky(matrix).T.copy()
    v, w = rng.standard_normal((2, 12))
    expected = matrix + np.outer(v, v) - 0.01 * np.outer(w, w)
    assert la.rank_one_exchange(upper, v.copy(), 0.1 * w)
    np.testing.assert_allclose(upper.T @ upper, expected, rtol=1e-12, atol=1e-12)
    assert not la.rank_one_exchange(upper, np.zeros(12), 1e3 * w)


SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 30, 65, 100]


@pytest.mark.parametrize("size", SIZES)
def test_a_factor_whitens_the_columns_behind_it(size):
    """Columns after ``stop`` stay as they are."""
    rng = np.random.default_rng(size)
    data = rng.standard_normal((2 * size, size))
    matrix = np.hstack([data.T @ data, rng.standard_normal((size, 9))])
    result = matrix.copy()
    assert la.factor(result, size, size + 7)
    upper = np.linalg.cholesky(matrix[:, :size]).T
    np.testing.assert_allclose(np.triu(result[:, :size]), upper, rtol=1e-9, atol=1e-12)
    behind = np.linalg.solve(upper.T, matrix[:, size : size + 7])
    np.testing.assert_allclose(result[:, size : size + 7], behind, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(result[:, size + 7 :], matrix[:, size + 7 :])
    matrix[-1, size - 1] = -1.0
    assert not la.factor(matrix, size, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [1, 7, 8, 16, 21])
def test_whitening_and_unwhitening_solve_by_a_factor(size, columns):
    rng = np.random.default_rng(size)
    upper = np.triu(rng.standard_normal((size, size))) / size + 2.0 * np.eye(size)
    below = upper + np.tril(np.full((size, size), np.nan), -1)  # is never read
    right = rng.standard_normal((size, columns))
    whitened, solved = right.copy(), right.copy()
    la.whiten_columns(below, whitened)
    np.testing.assert_allclose(upper.T @ whitened, right, rtol=1e-12, atol=1e-12)
    la.unwhiten_columns(below, solved)
    np.testing.assert_allclose(upper @ solved, right, rtol=1e-12, atol=1e-12)
    one, other = right[:, 0].copy(), right[:, -1].copy()
    la.back_substitute_two(below, one, other)
    np.testing.assert_allclose(upper @ one, right[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(upper @ other, right[:, -1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_general_systems_are_solved_with_pivots(size):
    """Also where a diagonal is 0; a matrix without an inverse is recognised."""
    rng = np.random.default_rng(size)
    matrix = rng.permutation(np.eye(size)) + 1e-3 * rng.standard_normal((size, size))
    np.fill_diagonal(matrix, 0.0 if size > 1 else 1.0)
    matrix += np.roll(np.eye(size), 1, axis=0)
    solution, found = rng.standard_normal(size), np.zeros(size)
    system = np.column_stack([matrix, matrix @ solution])
    assert la.solve_general(system.copy(), found)
    error = 1e-13 * np.linalg.cond(matrix) * np.linalg.norm(solution)
    np.testing.assert_allclose(found, solution, rtol=0.0, atol=error)
    system[size // 2] = 0.0
    assert not la.solve_general(system, found)


def test_a_pivot_whose_inverse_is_infinite_is_a_pivot():
    found = np.zeros(2)
    assert la.solve_general(np.array([[1e-309, 0.0, 1e-309], [0.0, 2.0, 4.0]]), found)
    np.testing.assert_allclose(found, [1.0, 2.0])


def test_all_finite():
    for size in (1, 5, 33):
        values = np.full(size, -1e308)
        assert la.all_finite(values)
        for bad in (np.nan, np.inf, -np.inf):
            values[-1] = bad
            assert not la.all_finite(values)
