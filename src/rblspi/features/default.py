"""The basis that is used if the user does not choose one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.types import Mask, Matrix, Vector
from rblspi.environments.spaces import is_unbounded, limits, states_of, vector_space
from rblspi.features.base import Basis
from rblspi.features.bounds import (
    bounds,
    circles,
    components,
    find_angles,
    find_useless,
    per_dimension,
)
from rblspi.features.multilinear import Multilinear
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.random_fourier import RandomFourier
from rblspi.features.rbf import RBFGrid

#: Gaussians along each dimension if there are 1, 2, ... dimensions: a few hundred in total
CELLS = (12, 12, 5, 3, 3, 2, 2, 2)
#: dimensions for which a grid would be too coarse, and random Fourier features are used instead
FIRST_RANDOM, LAST_RANDOM = 5, 12
#: the most combinations of discrete values that become a table: with a few actions, the posterior
#: over its weights is updated in milliseconds
MOST_STATES = 1000
#: margin for a learning agent, as a fraction of the range that random actions reach
MARGIN = 0.25


def default_basis(space: gym.Space[Any], scout: Callable[[], Matrix]) -> Basis:
    """Choose a basis by the observation space.

    Discrete observations are encoded one-hot: as a table where there are at most a thousand
    combinations of values, otherwise component by component. Up to four dimensions get a grid of
    Gaussians, up to twelve random Fourier features, up to twenty a quadratic polynomial, and more
    than twenty a linear one.

    ``scout`` returns observations from the environment or the data, shape (N, d). It is called only
    if a dimension has no bounds, or for random Fourier features. Dimensions without bounds, and all
    dimensions of random Fourier features, are scaled to the range of these observations.
    """
    table = table_basis(space)
    if table is not None:
        return table
    low, high = limits(space)
    if FIRST_RANDOM <= len(low) <= LAST_RANDOM:
        return random_features_over(low, high, scout())
    return basis_over(*_bounded(low, high, scout))


def table_basis(space: gym.Space[Any]) -> OneHot | None:
    """The basis of discrete observations; None if another basis is better."""
    vectors, states = vector_space(space), states_of(space)
    if isinstance(vectors, gym.spaces.Discrete):
        return OneHot()
    if states is not None and states <= MOST_STATES:
        return OneHot(joint=True)
    return OneHot() if isinstance(vectors, gym.spaces.MultiDiscrete) else None


def with_bounds(basis: Basis, space: gym.Space[Any], scout: Callable[[], Matrix]) -> Basis:
    """The basis, scaled to the observed range where neither it nor the space has bounds.

    A grid also gets the angles that the observations contain, and leaves out components as
    `Multilinear` says. ``scout`` is as for `default_basis`.
    """
    recipe: Any = basis
    if not (hasattr(recipe, "low") and hasattr(recipe, "high")):
        return basis
    scout, (low, high) = cache(scout), limits(space)
    if isinstance(recipe, Multilinear) and recipe.angles is None:
        recipe = replace(recipe, angles=find_angles(low, high, scout))
    if isinstance(recipe, Multilinear) and recipe.left_out is None:
        recipe = replace(recipe, left_out=find_useless(scout(), recipe.angles))
    low = low if recipe.low is None else per_dimension("low", recipe.low, len(low))
    high = high if recipe.high is None else per_dimension("high", recipe.high, len(high))
    turning = circles(low, high, components(getattr(recipe, "angles", None)))
    missing = is_unbounded(low, high) & ~turning
    if missing.any():
        turn = (np.where(turning, -np.pi, low), np.where(turning, np.pi, high))
        low, high = _bounded(*turn, scout)
        recipe = replace(recipe, low=low.tolist(), high=high.tolist())
    found: Basis = recipe
    return found


def _bounded(low: Vector, high: Vector, scout: Callable[[], Matrix]) -> tuple[Vector, Vector]:
    """The bounds; the observed range replaces missing ones."""
    unbounded = is_unbounded(low, high)
    if not unbounded.any():
        return low, high
    first, last = _seen_range(scout())
    return np.where(unbounded, first, low), np.where(unbounded, last, high)


def _seen_range(seen: Matrix) -> tuple[Vector, Vector]:
    """A learning agent gets further than random actions do, so there is a margin on either side."""
    first, last = seen.min(axis=0), seen.max(axis=0)
    margin = np.maximum(MARGIN * (last - first), 1e-6)
    return first - margin, last + margin


def random_features_over(low: Vector, high: Vector, seen: Matrix) -> RandomFourier:
    """Random Fourier features scaled to the observations; bounds may be infinite.

    The units of every dimension are the range of the observations with its margin. In these units,
    the width is the median distance between two observations.
    """
    turning = circles(low, high)
    first, last = _seen_range(seen)
    first = np.where(turning, low, np.maximum(first, low))
    last = np.where(turning, high, np.minimum(last, high))
    still = ~(first < last)  # a dimension of zero width cannot be scaled
    first, last = np.where(still, first - 0.5, first), np.where(still, first + 0.5, last)
    angles = np.flatnonzero(turning).tolist()
    width = _median_distance(seen, last - first, turning)
    return RandomFourier(width=width, low=first.tolist(), high=last.tolist(), angles=angles)


def rescaled(basis: RandomFourier, space: gym.Space[Any], seen: Matrix) -> RandomFourier:
    """The same random features, in units of the observations' standard deviations.

    The width is the median distance between two observations. Angles keep their range.
    """
    low, high = bounds(space, basis.low, basis.high, basis.angles)
    turning = circles(low, high, basis.angles)
    std = seen.std(axis=0)
    unit = np.where(turning | ~(std > 0.0), high - low, std)
    low = np.where(turning, low, seen.mean(axis=0))
    return replace(
        basis,
        width=_median_distance(seen, unit, turning),
        low=low.tolist(),
        high=(low + unit).tolist(),
        angles=np.flatnonzero(turning).tolist(),
    )


def _median_distance(seen: Matrix, unit: Vector, turning: Mask) -> float | None:
    """The median distance of each observation to a nearly independent one, half the data later."""
    moved = np.abs(seen - np.roll(seen, len(seen) // 2, axis=0)) / unit
    moved = np.where(turning, np.minimum(moved, 1.0 - moved), moved)
    return float(np.median(np.linalg.norm(moved, axis=1))) or None


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
