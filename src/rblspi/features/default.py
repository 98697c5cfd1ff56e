"""The basis for people who do not want to choose one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.features.base import Basis, Matrix, Vector
from rblspi.features.bounds import is_unbounded, limits
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.rbf import RBFGrid

#: Gaussians along each of 1, 2, ... dimensions: at most a few hundred in all
CELLS = (12, 12, 5, 3, 3, 2, 2, 2)


def default_basis(space: gym.Space[Any], scout: Callable[[], Matrix]) -> Basis:
    """One-hot for discrete states; a grid of Gaussians up to eight dimensions; else a polynomial.

    The polynomial is quadratic up to twenty dimensions, and linear beyond.

    Parameters
    ----------
    space : gymnasium.Space
        Of the observations.
    scout : callable
        Returns observations that were really seen, shape (N, d). Called only where a dimension
        has no bounds, which is then scaled to the range seen.
    """
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        return OneHot()
    low, high = limits(space)
    if is_unbounded(low, high).any():
        low, high = _scaled_from(scout(), low, high)
    constant = low == high  # a dimension that never changes has no width to divide
    box: dict[str, Any] = {
        "low": np.where(constant, low - 0.5, low).tolist(),
        "high": np.where(constant, high + 0.5, high).tolist(),
    }
    if len(low) <= len(CELLS):
        return RBFGrid(CELLS[len(low) - 1], **box)
    return Polynomial(2 if len(low) <= 20 else 1, **box)


def _scaled_from(seen: Matrix, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Bounds where there are some; else the range seen, and a quarter of it on either side.

    A learner goes further than random actions do, hence the margin.
    """
    first, last = seen.min(axis=0), seen.max(axis=0)
    margin = np.maximum(0.25 * (last - first), 1e-6)
    unbounded = is_unbounded(low, high)
    return np.where(unbounded, first - margin, low), np.where(unbounded, last + margin, high)
