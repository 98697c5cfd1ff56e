"""Kernels: what they compute, and to which bits."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi.core import kernels
from rblspi.core import linear_algebra as la

counts = st.integers(0, 40)
sizes = st.integers(1, 40)


@given(counts, sizes, sizes, st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_products_of_whole_numbers_are_exact(count, rows, columns, seed):
    """Also where A is transposed, and where C is part of a larger matrix, whose rest stays."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, (count, rows)).astype(float)
    b = rng.integers(-9, 9, (count, columns)).astype(float)
    around = rng.integers(-9, 9, (rows + 2, columns + 3)).astype(float)
    expected = around.copy()
    expected[1:-1, 1:-2] -= 2.0 * a.T @ b
    for factor in (a, np.ascontiguousarray(a.T).T):
        result = around.copy()
        kernels.add_product(-2.0, factor, b, result[1:-1, 1:-2])
        np.testing.assert_array_equal(result, expected)
    square = rng.integers(-9, 9, (rows, rows)).astype(float)
    result = square.copy()
    kernels.add_square(3.0, a, result)
    np.testing.assert_array_equal(np.triu(result), np.triu(square + 3.0 * a.T @ a))


@given(counts, sizes, sizes, st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_no_bit_depends_on_where_in_a_tile_an_entry_is(count, rows, columns, seed):
    """Tiles differ between processors; runs on them should not."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((count, rows)), rng.standard_normal((count, columns))
    start = rng.standard_normal((rows, columns))
    whole, one_by_one = start.copy(), start.copy()
    kernels.add_product(0.3, a, b, whole)
    for i in range(rows):
        for j in range(columns):
            entry = one_by_one[i : i + 1, j : j + 1]
            kernels.add_product(0.3, a[:, i : i + 1], b[:, j : j + 1], entry)
    np.testing.assert_array_equal(whole, one_by_one)


@pytest.mark.parametrize("rows", range(1, kernels.ROWS + 1))
@pytest.mark.parametrize("columns", [1, kernels.LANES, kernels.COLUMNS, 37])
def test_products_that_are_solved_for(rows, columns):
    rng = np.random.default_rng(rows)
    upper = np.triu(rng.standard_normal((rows, rows))) + 3.0 * np.eye(rows)
    a, b = rng.standard_normal((11, rows)), rng.standard_normal((11, columns))
    start = rng.standard_normal((rows, columns))
    whitened, unwhitened = start.copy(), start.copy()
    kernels.solve_product(upper, a, b, whitened, False)
    np.testing.assert_allclose(upper.T @ whitened, start - a.T @ b, rtol=1e-12, atol=1e-12)
    kernels.solve_product(upper, a, b, unwhitened, True)
    np.testing.assert_allclose(upper @ unwhitened, start - a.T @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [0, *range(1, 20), 31, 32, 33, 65, 199])
def test_dot_has_the_bits_of_the_written_order(size):
    """Sixteen sums, which are then added in pairs."""
    rng = np.random.default_rng(size)
    a, b = rng.standard_normal((2, size)) * 10.0 ** rng.integers(-8, 8, (2, size))
    rows = -(-size // 16)
    padded = np.zeros(16 * rows)
    padded[:size] = a * b
    sums = np.zeros(16)
    for row in padded.reshape(rows, 16):
        sums += row
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert kernels.dot(a, b) == sums[0]
    assert kernels.dot(a, b) == pytest.approx(a @ b, rel=1e-6)


@pytest.mark.parametrize("size", range(1, kernels.ROWS + 1))
def test_blocks_are_factored(size):
    data = np.random.default_rng(size).standard_normal((size + 3, size))
    block, expected = data.T @ data, np.linalg.cholesky(data.T @ data).T
    assert kernels.factor_block(block)
    np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-14)
    for bad in (0.0, -1.0, np.nan):
        block = data.T @ data
        block[-1, -1] = bad
        assert not kernels.factor_block(block)


def test_dot_of_numbers_that_are_not_adjacent():
    """Rows of a matrix by columns, for one."""
    a = np.asfortranarray(np.random.default_rng(0).standard_normal((5, 40)))
    assert kernels.dot(a[2], a[3]) == pytest.approx(float(a[2] @ a[3]), rel=1e-12)


def digest_of_results():
    """Of all bits that factors and solutions of some matrices have."""
    digest, rng = hashlib.sha256(), np.random.default_rng(0)
    for size in (1, 4, 7, 8, 21, 65, 300):
        data = rng.standard_normal((size + 3, size))
        matrix = np.hstack([data.T @ data, rng.standard_normal((size, 9))])
        columns, system = matrix[:, size:].copy(), data.T @ data[:, -1:]
        system, found = np.hstack([matrix[:, :size], system]), np.zeros(size)
        assert la.factor(matrix, size, size + 9)
        la.unwhiten_columns(matrix, columns)
        assert la.solve_general(system, found)
        for result in (np.triu(matrix), columns, found):
            digest.update(result.tobytes())
    return digest.hexdigest()


OTHER_PROCESSOR = """
import llvmlite.binding
features = llvmlite.binding.FeatureMap({"avx": True, "fma": True})
llvmlite.binding.get_host_cpu_features = lambda: features
from tests.core.test_kernels import digest_of_results, kernels
assert (kernels.LANES, kernels.ABREAST) == (4, 1)
print(digest_of_results())
"""


@pytest.mark.slow
@pytest.mark.skipif(kernels.LANES != 8, reason="this processor has no other registers than that")
def test_results_have_the_same_bits_on_a_processor_with_smaller_registers(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESSOR],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == digest_of_results()
