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
