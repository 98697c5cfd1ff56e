"""Finer versions of a basis; where they disagree with it, the basis is too coarse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.spatial.distance import cdist

from rblspi.core.types import Matrix
from rblspi.environments.spaces import limits, observation_shape, states_of
from rblspi.features.base import Basis, Features
from rblspi.features.one_hot import OneHot
from rblspi.features.rbf import RBFGrid

#: the most features of a finer version: their least squares take about a second
MOST = 400
#: the fewest bins of a dimension: wider cells are not finer than a usual basis
LEAST_BINS = 8


@dataclass(frozen=True)
class WithCentres(Basis):
    """A basis and, beside its features, Gaussians around given observations.

    Parameters
    ----------
    basis : Basis
    centres : sequence of sequences of float
        Observations, flattened.
    widths : sequence of float
        Standard deviation along each dimension.
    """

    basis: Basis
    centres: Any
    widths: Any

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for the space of the observations."""
        inner = self.basis.build(space)
        widths = np.asarray(self.widths)
        centres = np.asarray(self.centres) / widths

        def batch(observations: Matrix) -> Matrix:
            rows = np.asarray(observations).reshape(len(observations), -1)
            near = np.exp(-0.5 * cdist(rows / widths, centres, "sqeuclidean"))
            return np.column_stack([inner(rows), near])

        constant = inner.constant
        if constant is not None:
            constant = np.append(constant, np.zeros(len(centres)))
        return Features.of_batches(batch, inner.size + len(centres), inner.shape, constant)


@dataclass(frozen=True)
class Cells(Basis):
    """An indicator for every cell of a grid whose lines are at given places.

    Least squares in cells are averages over transitions: unlike those in features that overlap,
    they cannot carry a value to places where there is no transition.

    Parameters
    ----------
    edges : sequence of sequences of float
        For every dimension, where one cell ends and the next one begins.
    """

    edges: Any

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for the space of the observations."""
        edges = [np.asarray(line) for line in self.edges]
        shape = tuple(len(line) + 1 for line in edges)
        size = int(np.prod(shape))

        def batch(observations: Matrix) -> Matrix:
            columns = np.asarray(observations).reshape(len(observations), -1).T
            places = [np.searchsorted(line, x) for line, x in zip(edges, columns, strict=True)]
            out = np.zeros((len(observations), size))
            out[np.arange(len(out)), np.ravel_multi_index(places, shape)] = 1.0
            return out

        return Features.of_batches(batch, size, observation_shape(space), np.ones(size))


def finer(basis: Basis, space: gym.Space[Any], observations: Matrix) -> list[Basis]:
    """Finer versions of a basis, for the places where the observations are.

    A table of discrete states cannot be refined: there are none. Any other basis over discrete
    states has the table as its finer version. Over continuous states there are up to three kinds: a
    grid with one and a half times as many Gaussians along each dimension, if the basis is such a
    grid and not too large; the basis with Gaussians around some observations; and cells with
    equally many observations, if there are few dimensions.

    Parameters
    ----------
    basis : Basis
    space : gymnasium.Space
    observations : ndarray, shape (N, d)
        A sample of them.
    """
    single, states = observation_shape(space) == (), states_of(space)
    if single or (states is not None and states <= MOST):
        table = isinstance(basis, OneHot) and (single or basis.joint)
        small = states is not None and states <= MOST
        return [OneHot(joint=not single)] if small and not table else []
    grids = [_finer_grid(basis, space)] if isinstance(basis, RBFGrid) else []
    bins = int(MOST ** (1.0 / observations.shape[1]))
    cells = [cells_of(observations, bins)] if bins >= LEAST_BINS else []
    counts = {min(basis.build(space).size, MOST // 2), MOST // 2}
    return [*grids, *cells, *(with_centres(basis, observations, n) for n in sorted(counts))]


def cells_of(observations: Matrix, bins: int) -> Cells:
    """Cells that cut every dimension into bins with equally many observations."""
    shares = np.arange(1, bins) / bins
    return Cells([np.unique(np.quantile(column, shares)) for column in observations.T])


def with_centres(basis: Basis, observations: Matrix, count: int) -> WithCentres:
    """The basis with Gaussians around some observations, chosen at random.

    In units of the observations' standard deviations, their width is the median distance from a
    centre to its (2d)-th nearest neighbour in d dimensions.
    """
    rng = np.random.default_rng(0)
    unique = np.unique(observations.reshape(len(observations), -1), axis=0)
    std = unique.std(axis=0)
    std[std == 0.0] = 1.0
    centres = unique[rng.choice(len(unique), min(count, len(unique)), replace=False)]
    distances = np.sort(cdist(centres / std, centres / std), axis=1)
    neighbour = min(2 * len(std), len(centres) - 1)
    width = float(np.median(distances[:, neighbour])) or 1.0
    return WithCentres(basis, centres, width * std)


def _finer_grid(basis: RBFGrid, space: gym.Space[Any]) -> RBFGrid:
    """One and a half times the cells in each dimension, as long as `MOST` is not exceeded."""
    dimensions = len(limits(space)[0])
    given = (basis.cells,) * dimensions if isinstance(basis.cells, int) else tuple(basis.cells)
    cells = list(given)
    for d, count in enumerate(given):
        more = [*cells[:d], count + max(1, count // 2), *cells[d + 1 :]]
        if np.prod(more) <= MOST:
            cells = more
    return replace(basis, cells=tuple(cells))
