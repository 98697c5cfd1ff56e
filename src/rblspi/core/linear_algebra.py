"""Factor and solve inside compiled code, and update factors.

A symmetric positive definite matrix F is stored as its upper triangular factor R, F = R'R, by
rows. Only the upper triangles of F and R are read. Rows may be longer than R has columns: the
further columns are right-hand sides that are transformed along with it.

All functions proceed by a few rows at a time, so that most of the work is in `kernels`.
"""

from __future__ import annotations

import math

import numpy as np

from rblspi.core.compiled import jit_borrowing
from rblspi.core.kernels import (
    ROWS,
    add_product,
    dot,
    factor_block,
    solve_product,
    subtract,
)
from rblspi.core.types import Matrix, Vector


@jit_borrowing
def copy_vector(source: Vector, target: Vector) -> None:
    """Write one vector over another of the same length."""
    for i in range(len(target)):
        target[i] = source[i]


@jit_borrowing
def copy(source: Matrix, target: Matrix) -> None:
    """Write one matrix over another; they must not overlap, which is not checked."""
    for i in range(len(source)):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@jit_borrowing
def clear(matrix: Matrix) -> None:
    """Write zeros over a matrix."""
    for i in range(len(matrix)):
        for j in range(matrix.shape[1]):
            matrix[i, j] = 0.0


@jit_borrowing
def factor(matrix: Matrix, size: int, stop: int) -> bool:
    """F <- R in place, and B <- R'^-1 B for the columns B from ``size`` up to ``stop``.

    F is the leading square of this size. Returns False if it is not positive definite.
    """
    for i in range(0, size, ROWS):
        end = min(i + ROWS, size)
        above, block = matrix[:i, i:end], matrix[i:end, i:end]
        add_product(-1.0, above, above, block)
        if not factor_block(block):
            return False
        solve_product(block, above, matrix[:i, end:stop], matrix[i:end, end:stop], False)
    return True


@jit_borrowing
def whiten_columns(upper: Matrix, columns: Matrix) -> None:
    """B <- R'^-1 B."""
    size = len(columns)
    for i in range(0, size, ROWS):
        end = min(i + ROWS, size)
        above = upper[:i, i:end]
        solve_product(upper[i:end, i:end], above, columns[:i], columns[i:end], False)


@jit_borrowing
def unwhiten_columns(upper: Matrix, columns: Matrix) -> None:
    """V <- R^-1 V."""
    size = len(columns)
    for end in range(size, 0, -ROWS):
        i = max(end - ROWS, 0)
        right = upper[i:end, end:size].T
        solve_product(upper[i:end, i:end], right, columns[end:], columns[i:end], True)


@jit_borrowing
def solve_general(system: Matrix, solution: Vector) -> bool:
    """Solve A theta = b by LU factors with partial pivoting; rows of the system are [A b].

    The system is overwritten. Returns False if A is singular.
    """
    size = len(system)
    for i in range(0, size, ROWS):
        end = min(i + ROWS, size)
        add_product(-1.0, system[i:, :i].T, system[:i, i:end], system[i:, i:end])
        for j in range(i, end):
            if not _exchange_for_pivot(system, j):
                return False
            _eliminate(system[j:, j:end])
        add_product(-1.0, system[i:end, :i].T, system[:i, end:], system[i:end, end:])
        for j in range(i, end):
            for k in range(i, j):
                subtract(system[j, end:], system[j, k], system[k, end:])
    for i in range(size - 1, -1, -1):
        known = dot(system[i, i + 1 : size], solution[i + 1 :])
        solution[i] = (system[i, size] - known) / system[i, i]
    return True


@jit_borrowing
def _exchange_for_pivot(system: Matrix, i: int) -> bool:
    """Exchange row i for the one below it whose entry in column i is largest, unless all are 0."""
    best, largest = i, 0.0
    for j in range(i, len(system)):
        if abs(system[j, i]) > largest:
            best, largest = j, abs(system[j, i])
    if best != i:
        for k in range(system.shape[1]):
            system[i, k], system[best, k] = system[best, k], system[i, k]
    return largest > 0.0


@jit_borrowing
def _eliminate(block: Matrix) -> None:
    """Subtract multiples of the first row from the others; these factors replace the column."""
    pivot = block[0, 0]
    inverse = 1.0 / pivot
    for i in range(1, len(block)):
        # The inverse of a subnormal number may be infinite.
        factor = block[i, 0] * inverse if abs(pivot) > 1e-300 else block[i, 0] / pivot
        block[i, 0] = factor
        for k in range(1, block.shape[1]):
            block[i, k] -= factor * block[0, k]


@jit_borrowing
def all_finite(values: Vector) -> bool:
    """Whether no entry is NaN or infinite: a count, because that vectorises."""
    bad = 0
    for i in range(len(values)):
        bad += not abs(values[i]) < np.inf
    return bad == 0


# The loops below run over slices from their start: the compiler then sees that indices are in
# range and vectorises, which is three times as fast.


@jit_borrowing
def back_substitute_two(upper: Matrix, first: Vector, second: Vector) -> None:
    """V <- R^-1 v for two vectors in one pass over R."""
    n = len(first)
    for j in range(n - 1, -1, -1):
        row = upper[j, j + 1 : n]
        first[j] = (first[j] - dot(row, first[j + 1 :])) / upper[j, j]
        second[j] = (second[j] - dot(row, second[j + 1 :])) / upper[j, j]


@jit_borrowing
def rank_one_update(upper: Matrix, v: Vector) -> None:
    """R'R <- R'R + vv' by Givens rotations; ``v`` is overwritten."""
    for j in range(len(upper)):
        row, rest = upper[j, j:], v[j:]
        r = math.sqrt(row[0] * row[0] + rest[0] * rest[0])
        c = row[0] / r
        s = rest[0] / r
        for i in range(len(row)):
            old, a = row[i], rest[i]
            row[i] = c * old + s * a
            rest[i] = c * a - s * old


@jit_borrowing
def rank_one_exchange(upper: Matrix, v: Vector, w: Vector) -> bool:
    """R'R <- R'R + vv' - ww' in one pass over R: an update and a downdate.

    Givens rotations come first, then hyperbolic rotations. Both vectors are overwritten. Returns
    False, with R spoilt, if the result is not positive definite at working precision.
    """
    for j in range(len(upper)):
        row, rest_v, rest_w = upper[j, j:], v[j:], w[j:]
        r = math.sqrt(row[0] * row[0] + rest_v[0] * rest_v[0])
        c = row[0] / r
        s = rest_v[0] / r
        t = rest_w[0] / r
        square = 1.0 - t * t
        if not square > 1e-14:
            return False
        h = math.sqrt(square)
        inverse = 1.0 / h
        for i in range(len(row)):
            old, a, b = row[i], rest_v[i], rest_w[i]
            updated = c * old + s * a
            downdated = (updated - t * b) * inverse
            row[i] = downdated
            rest_v[i] = c * a - s * old
            rest_w[i] = h * b - t * downdated
    return True
