"""Factor and solve inside compiled code: BLAS and LAPACK by name, and rank-one updates.

A symmetric positive definite matrix F is stored as its upper triangular factor R, F = R'R, by
rows. Only the upper triangle of F is read. Rows may be longer than R has columns: the further
columns are right-hand sides that are transformed along with it.

Compiled code that calls a function by its address cannot be cached on disk; code that calls it
by a name can. The addresses of SciPy's BLAS and LAPACK are therefore given names here.
"""

from __future__ import annotations

import math
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import NDArray

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Matrix, Vector

_LIBRARY = {
    "dgemm": "blas",
    "dsyrk": "blas",
    "dtrsm": "blas",
    "dpotrf": "lapack",
    "dpocon": "lapack",
    "dgesv": "lapack",
}
for _name, _library in _LIBRARY.items():
    llvmlite.binding.add_symbol(
        f"rblspi_{_name}", get_cython_function_address(f"scipy.linalg.cython_{_library}", _name)
    )


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _fortran(_context: Any, name: Any, *arguments: Any) -> Any:
    """Call a Fortran routine; everything goes by reference. Returns its last integer argument.

    LAPACK's last argument is ``info``. Characters are literal strings, integers become 32 bits.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointers, last = [], None
        unpacked = cgutils.unpack_tuple(builder, values[1])
        for kind, value in zip(signature.args[1], unpacked, strict=True):
            if isinstance(kind, types.Array):
                pointers.append(context.make_array(kind)(context, builder, value).data)
                continue
            if isinstance(kind, types.StringLiteral):
                value = ir.Constant(ir.IntType(8), ord(kind.literal_value))
            elif isinstance(kind, types.Integer):
                value = context.cast(builder, value, kind, types.int32)
            slot = cgutils.alloca_once_value(builder, value)
            builder.store(value, slot)
            last = slot if isinstance(kind, types.Integer) else last
            pointers.append(slot)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [p.type for p in pointers]),
            f"rblspi_{name.literal_value}",
        )
        builder.call(function, pointers)
        return builder.load(last)

    # Literal integers would make one call's type differ from the next one's.
    plain = [types.unliteral(a) if isinstance(a, types.Integer) else a for a in arguments]
    return types.int32(name, types.StarArgTuple.from_types(plain)), generate


#: size up to which loops are faster than LAPACK
SMALL = 80


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
def add_product(alpha: float, a: Matrix, b: Matrix, beta: float, c: Matrix) -> None:
    """C <- alpha A B + beta C."""
    m, n = c.shape
    _fortran("dgemm", "N", "N", n, m, a.shape[1], alpha, b, b.shape[1], a, a.shape[1], beta, c, n)


@jit_borrowing
def add_product_nt(alpha: float, a: Matrix, b: Matrix, beta: float, c: Matrix) -> None:
    """C <- alpha A B' + beta C; rows of C may be longer than the result."""
    m, n = len(a), len(b)
    k = a.shape[1]
    _fortran("dgemm", "T", "N", n, m, k, alpha, b, k, a, k, beta, c, c.shape[1])


@jit_borrowing
def add_product_tn(alpha: float, a: Matrix, b: Matrix, beta: float, c: Matrix) -> None:
    """C <- alpha A'B + beta C."""
    m, n = c.shape
    _fortran("dgemm", "N", "T", n, m, len(a), alpha, b, n, a, m, beta, c, n)


@jit_borrowing
def add_square(alpha: float, a: Matrix, beta: float, c: Matrix) -> None:
    """C <- alpha A'A + beta C, upper triangle only; A may be a slice of longer rows."""
    n, width = c.shape[1], a.strides[0] // a.itemsize
    _fortran("dsyrk", "L", "N", n, len(a), alpha, a, width, beta, c, n)


@jit_borrowing
def factor(matrix: Matrix, size: int, stop: int) -> bool:
    """F <- R in place, and B <- R'^-1 B for the columns B from ``size`` up to ``stop``.

    F is the leading square of this size. Returns False if it is not positive definite.
    """
    if size <= SMALL:
        return _factor_by_rows(matrix, size, stop)
    width = matrix.shape[1]
    if _fortran("dpotrf", "L", size, matrix, width, 0) != 0:
        return False
    if stop > size:
        extra = matrix[:, size:]
        _fortran("dtrsm", "R", "L", "T", "N", stop - size, size, 1.0, matrix, width, extra, width)
    return True


@jit_borrowing
def whiten_rows(upper: Matrix, rows: Matrix) -> None:
    """B <- R'^-1 b for every row b."""
    p, n = rows.shape
    _fortran("dtrsm", "L", "L", "N", "N", n, p, 1.0, upper, upper.shape[1], rows, n)


@jit_borrowing
def unwhiten_rows(upper: Matrix, rows: Matrix) -> None:
    """V <- R^-1 v for every row v."""
    p, n = rows.shape
    _fortran("dtrsm", "L", "L", "T", "N", n, p, 1.0, upper, upper.shape[1], rows, n)


@jit_borrowing
def whiten_columns(upper: Matrix, columns: Matrix) -> None:
    """B <- R'^-1 B."""
    n, m = columns.shape
    if n <= SMALL:
        _whiten_by_rows(upper, columns)
        return
    _fortran("dtrsm", "R", "L", "T", "N", m, n, 1.0, upper, upper.shape[1], columns, m)


@jit_borrowing
def solve_general(matrix: Matrix, right: Vector, pivots: NDArray[np.int32]) -> bool:
    """Solve A theta = b by LU factors; ``matrix`` holds A' and both arrays are overwritten."""
    n = len(right)
    return bool(_fortran("dgesv", n, 1, matrix, matrix.shape[1], pivots, right, n, 0) == 0)


@jit
def reciprocal_condition(upper: Matrix, size: int, norm: float) -> float:
    """Estimate 1 / cond(F) from its factor and the 1-norm of F."""
    result = np.zeros(1)
    work = np.empty(3 * size)
    integers = np.empty(size, np.int32)
    _fortran("dpocon", "L", size, upper, upper.shape[1], norm, result, work, integers, 0)
    return float(result[0])


@jit_borrowing
def dot(a: Vector, b: Vector) -> float:
    """a'b, as four sums that do not wait for one another.

    The order is written out. A compiler that may choose it chooses anew wherever the function is
    inlined, and the last bits then depend on what was compiled before.
    """
    n, rest = len(a), len(a) % 4
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    for i in range(rest):
        one += a[i] * b[i]
    for i in range(rest, n, 4):
        one += a[i] * b[i]
        two += a[i + 1] * b[i + 1]
        three += a[i + 2] * b[i + 2]
        four += a[i + 3] * b[i + 3]
    return (one + two) + (three + four)


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
def _factor_by_rows(matrix: Matrix, size: int, stop: int) -> bool:
    """As `factor`."""
    for i in range(size):
        row = matrix[i, i:stop]
        _subtract_rows(row, matrix, i, matrix, i)
        if not row[0] > 0.0:
            return False
        _multiply(row, 1.0 / math.sqrt(row[0]))
    return True


@jit_borrowing
def _whiten_by_rows(upper: Matrix, columns: Matrix) -> None:
    """As `whiten_columns`."""
    for i in range(len(columns)):
        _subtract_rows(columns[i], upper, i, columns, 0)
        _multiply(columns[i], 1.0 / upper[i, i])


@jit_borrowing
def _subtract_rows(row: Vector, upper: Matrix, i: int, rows: Matrix, start: int) -> None:
    """Subtract R_ji times row j from a row, for all j < i, mostly four at a time."""
    for j in range(i % 4):
        a, first = upper[j, i], rows[j, start:]
        for k in range(len(row)):
            row[k] -= a * first[k]
    for j in range(i % 4, i, 4):
        a, b, c, d = upper[j, i], upper[j + 1, i], upper[j + 2, i], upper[j + 3, i]
        first, second = rows[j, start:], rows[j + 1, start:]
        third, fourth = rows[j + 2, start:], rows[j + 3, start:]
        for k in range(len(row)):
            row[k] -= a * first[k] + b * second[k] + c * third[k] + d * fourth[k]


@jit_borrowing
def _multiply(row: Vector, factor: float) -> None:
    for k in range(len(row)):
        row[k] *= factor


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
