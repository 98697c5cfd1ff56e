"""The basis that is used if the user does not choose one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.types import Matrix, Vector
from rblspi.features.base import Basis
from rblspi.features.bounds import is_unbounded, limits
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.rbf import RBFGrid

#: Gaussians along each dimension if there are 1, 2, ... dimensions: a few hundred in total
CELLS = (12, 12, 5, 3, 3, 2, 2, 2)


def default_basis(space: gym.Space[Any], scout: Callable[[], Matrix]) -> Basis:
    """Choose a basis by the observation space.

    Discrete observations are encoded one-hot. Up to eight dimensions get a grid of Gaussians, up
    to twenty a quadratic polynomial, and more than twenty a linear one.

    ``scout`` returns observations from the environment or the data, shape (N, d). It is called only
    if a dimension has no bounds; such a dimension is scaled to the range of these observations.
    """
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        return OneHot()
    low, high = limits(space)
    unbounded = is_unbounded(low, high)
    if unbounded.any():
        # A learning agent gets further than random actions do: hence a margin on either side.
        seen = scout()
        first, last = seen.min(axis=0), seen.max(axis=0)
        margin = np.maximum(0.25 * (last - first), 1e-6)
        low = np.where(unbounded, first - margin, low)
        high = np.where(unbounded, last + margin, high)
    return basis_over(low, high)


def basis_over(low: Vector, high: Vector) -> Basis:
    """A grid of Gaussians or, in many dimensions, a polynomial over a box."""
    constant = low == high  # a dimension of zero width cannot be scaled
    box: dict[str, Any] = {
        "low": np.where(constant, low - 0.5, low).tolist(),
        "high": np.where(constant, high + 0.5, high).tolist(),
    }
    if len(low) <= len(CELLS):
        return RBFGrid(CELLS[len(low) - 1], **box)
    return Polynomial(2 if len(low) <= 20 else 1, **box)
