"""Finer versions of a basis: what the basis cannot represent shows where they disagree with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.spatial.distance import cdist

from rblspi.core.types import Matrix, Vector
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import limits
from rblspi.features.one_hot import OneHot
from rblspi.features.rbf import RBFGrid

#: the most features of a finer version: their least squares take about a second
MOST = 400


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

        def evaluate(_parameters: Vector, observation: Vector, out: Vector) -> None:
            out[:] = batch(observation[None])[0]

        constant = inner.constant
        if constant is not None:
            constant = np.append(constant, np.zeros(len(centres)))
        size = inner.size + len(centres)
        return Features(evaluate, np.empty(0), size, inner.shape, batch, constant)


def finer(basis: Basis, space: gym.Space[Any], observations: Matrix) -> list[Basis]:
    """Finer versions of a basis, for the places where the observations are.

    A table of discrete states cannot be refined: there are none. Any other basis over discrete
    states has the table as its finer version. Over continuous states there are a grid with half as
    many Gaussians more along each dimension, where the basis is such a grid and not too large, and
    the basis with Gaussians around as many observations as it has features.

    Parameters
    ----------
    basis : Basis
    space : gymnasium.Space
    observations : ndarray, shape (N, d)
        A sample of them.
    """
    if isinstance(space, gym.spaces.Discrete):
        table = not isinstance(basis, OneHot) and int(space.n) <= MOST
        return [OneHot()] if table else []
    grids = [_finer_grid(basis, space)] if isinstance(basis, RBFGrid) else []
    count = min(basis.build(space).size, MOST // 2, len(np.unique(observations, axis=0)))
    return [*grids, with_centres(basis, observations, count)]


def with_centres(basis: Basis, observations: Matrix, count: int) -> WithCentres:
    """The basis with Gaussians around some observations, chosen at random.

    In units of the observations' standard deviations, they are as wide as the median distance of a
    centre from its nearest neighbours, two along each dimension.
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
    """Half as many cells more in one dimension after the other, as far as the number allows."""
    dimensions = len(limits(space)[0])
    given = (basis.cells,) * dimensions if isinstance(basis.cells, int) else tuple(basis.cells)
    cells = list(given)
    for d, count in enumerate(given):
        more = [*cells[:d], count + max(1, count // 2), *cells[d + 1 :]]
        if np.prod(more) <= MOST:
            cells = more
    return replace(basis, cells=tuple(cells))
