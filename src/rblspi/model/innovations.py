"""Whitened Bellman equations, for temporal differences of Gaussian processes.

Row t of a log says r_t = d_t'theta + N_t, where d_t = phi_t - g_t phi_t', and g_t is gamma, or 0
if s_t' is terminal. Part of the noise E_t of the return from s_t on is that of the next state's:

    N_t = E_t - lambda g_t E_{t+1},    E_t ~ N(0, 1 / beta), independent

The innovations, which are e_t / p_t^1/2 of

    e_t = (d_t, r_t) + c_t e_{t-1}    c_t = lambda g_{t-1} / p_{t-1}
    p_t = 1 + (lambda g_t)^2 - c_t^2 p_{t-1}

have independent noise of the precision beta. c_t is 0 where row t does not go on from row t - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Matrix, Vector
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, TDErrorSums, accumulate


class Innovation(NamedTuple):
    """The last row of some rows, from which the next may go on."""

    row: Vector  # e_t          (k + 1,)
    variance: float  # p_t
    carried: float  # lambda g_t


def whiten(
    equations: Matrix, carried: Vector, follows: Vector, before: Innovation | None
) -> Innovation:
    """Make innovations of equations, in place; the result is that of the last row.

    Parameters
    ----------
    equations : ndarray, shape (N, k + 1)
        The rows (d_t, r_t).
    carried : ndarray, shape (N,)
        lambda g_t.
    follows : ndarray, shape (N,)
        1 where a row goes on from the one before it, else 0.
    before : Innovation, optional
        Of the row before the first.
    """
    last = Innovation(np.zeros(equations.shape[1]), 1.0, 0.0) if before is None else before
    row = last.row.copy()
    variance = _whiten(equations, carried, follows, row, last.variance, last.carried)
    return Innovation(row, variance, float(carried[-1]))


def accumulate_innovations(
    statistics: Statistics, td_errors: TDErrorSums, innovations: Matrix
) -> None:
    """Add rows to sums of one block of k features, in place: those of a regression, C = A."""
    x, rewards = np.ascontiguousarray(innovations[:, :-1]), innovations[:, -1].copy()
    block, terminal = np.zeros(len(x), np.int64), np.full(len(x), TERMINAL)
    accumulate(statistics, x, block, rewards, x, terminal, 0.0)
    td_errors.add(x, terminal, rewards, 0.0)


@jit
def _whiten(
    equations: Matrix, carried: Vector, follows: Vector, row: Vector, variance: float, before: float
) -> float:
    """Whiten the equations in place, and the last e_t into ``row``; the result is its p_t."""
    for t in range(len(equations)):
        c = follows[t] * before / variance
        variance = 1.0 + carried[t] ** 2 - c * c * variance
        scale = 1.0 / np.sqrt(variance)
        for j in range(len(row)):
            row[j] = equations[t, j] + c * row[j]
            equations[t, j] = scale * row[j]
        before = carried[t]
    return variance
