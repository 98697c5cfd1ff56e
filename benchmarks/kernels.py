"""The kernels of `rblspi.core.kernels` beside BLAS and LAPACK, in microseconds.

    python -m benchmarks.kernels

Both are called from compiled code, in turn and in one process; the fastest of several rounds
counts.
BLAS and LAPACK are SciPy's, as Numba calls them for ``np.dot``, ``np.linalg.cholesky`` and
``np.linalg.solve``, with one thread.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rblspi.core import linear_algebra as la
from rblspi.core.compiled import jit
from rblspi.core.kernels import add_product, add_square

#: numbers of weights of the paper's domains, and larger ones
SIZES = (30, 78, 164, 195, 260, 500, 1000)
#: rows that enter a product: as many as improvements are often apart
ROWS = 20
ROUNDS = 7
#: multiplications of one round
WORK = 3e8


@jit
def factor(times: int, matrix: Any, out: Any) -> None:
    """Cholesky factors by tiles; the copy that they overwrite counts."""
    for _ in range(times):
        la.copy(matrix, out)
        la.factor(out, len(matrix), len(matrix))


@jit
def lapack_factor(times: int, matrix: Any, out: Any) -> None:
    """Cholesky factors by LAPACK."""
    for _ in range(times):
        out[:] = np.linalg.cholesky(matrix)


@jit
def solve(times: int, system: Any, out: Any) -> None:
    """A general system by tiles; rows of ``system`` are [A b], as are those of ``out``."""
    solution = np.zeros(len(system))
    for _ in range(times):
        la.copy(system, out)
        la.solve_general(out, solution)


@jit
def lapack_solve(times: int, system: Any, out: Any) -> None:
    """A general system by LAPACK."""
    matrix, right = system[:, :-1].copy(), system[:, -1].copy()
    for _ in range(times):
        out[:, 0] = np.linalg.solve(matrix, right)


@jit
def square(times: int, rows: Any, out: Any) -> None:
    """The upper triangle of C + A'A by tiles."""
    for _ in range(times):
        add_square(1e-9, rows, out)


@jit
def product(times: int, rows: Any, out: Any) -> None:
    """C + A'A, all of it, by tiles."""
    for _ in range(times):
        add_product(1e-9, rows, rows, out)


@jit
def blas_product(times: int, rows: Any, out: Any) -> None:
    """A'A by BLAS, which is added to C."""
    for _ in range(times):
        out += np.dot(rows.T, rows)


def fastest(functions: list[Callable[..., None]], work: float, *arguments: Any) -> list[float]:
    """Microseconds of each function, called in turn."""
    times = max(2, int(WORK / work / ROUNDS))
    best = [np.inf] * len(functions)
    for function in functions:
        function(1, *arguments)
    for _ in range(ROUNDS):
        for i, function in enumerate(functions):
            start = time.process_time()
            function(times, *arguments)
            best[i] = min(best[i], 1e6 * (time.process_time() - start) / times)
    return best


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print("| k | factor | LAPACK | solve | LAPACK | square of 20 rows | product | BLAS |")
    print("|---|---|---|---|---|---|---|---|")
    for k in SIZES:
        data = rng.standard_normal((2 * k, k))
        matrix, out = data.T @ data, np.zeros((k, k))
        system = rng.standard_normal((k, k + 1))
        rows = rng.standard_normal((ROWS, k))
        found = [
            *fastest([factor, lapack_factor], k**3 / 6, matrix, out),
            *fastest([solve, lapack_solve], k**3 / 3, system, np.zeros((k, k + 1))),
            *fastest([square, product, blas_product], ROWS * k**2, rows, out),
        ]
        print(f"| {k} | {' | '.join(f'{value:.1f}' for value in found)} |", flush=True)


if __name__ == "__main__":
    main()
