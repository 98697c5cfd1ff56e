"""Factors and their updates against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from rblspi.core import linear_algebra as la


def test_rank_one_exchange() -> None:
    rng = np.random.default_rng(1)
    data = rng.standard_normal((50, 12))
    matrix = data.T @ data
    upper = np.linalg.cholesky(matrix).T.copy()
    v, w = rng.standard_normal((2, 12))
    expected = matrix + np.outer(v, v) - 0.01 * np.outer(w, w)
    assert la.rank_one_exchange(upper, v.copy(), 0.1 * w)
    np.testing.assert_allclose(upper.T @ upper, expected, rtol=1e-12, atol=1e-12)
    assert not la.rank_one_exchange(upper, np.zeros(12), 1e3 * w)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 30, la.SMALL, la.SMALL + 1])
def test_a_factor_whitens_the_columns_behind_it(size: int) -> None:
    """By loops and by LAPACK; columns after ``stop`` stay as they are."""
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
    columns = matrix[:, size:].copy()
    la.whiten_columns(upper.copy(), columns)
    np.testing.assert_allclose(columns[:, :7], behind, rtol=1e-8, atol=1e-11)
    matrix[-1, size - 1] = -1.0
    assert not la.factor(matrix, size, size)


@pytest.mark.parametrize("size", [*range(1, 10), 25, 64, 199])
def test_compiled_sums_have_the_bits_of_the_written_order(size: int) -> None:
    """No term is moved or fused, so a saved agent goes on with the same bits anywhere."""
    rng = np.random.default_rng(size)
    a, b = rng.standard_normal((2, size)) * 10.0 ** rng.integers(-8, 8, (2, size))
    assert la.dot(a, b) == la.dot.py_func(a, b)
    assert la.dot(a, b) == pytest.approx(a @ b, rel=1e-6)
    data = rng.standard_normal((2 * size, size))
    compiled, plain = data.T @ data, data.T @ data
    assert la._factor_by_rows(compiled, size, size)
    assert la._factor_by_rows.py_func(plain, size, size)
    np.testing.assert_array_equal(compiled, plain)
    results = [np.array([a, b]) for _ in range(2)]
    la.back_substitute_two(compiled, *results[0])
    la.back_substitute_two.py_func(compiled, *results[1])
    np.testing.assert_array_equal(*results)


def test_all_finite() -> None:
    for size in (1, 5, 33):
        values = np.full(size, -1e308)
        assert la.all_finite(values)
        for bad in (np.nan, np.inf, -np.inf):
            values[-1] = bad
            assert not la.all_finite(values)
