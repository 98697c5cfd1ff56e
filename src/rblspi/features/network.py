"""A network: layers of learnt features, with a constant 1 at their end."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.types import Matrix, Vector
from rblspi.environments.spaces import input_size, observation_shape
from rblspi.features.base import Basis, Features
from rblspi.features.bounds import counts_per_dimension, per_dimension
from rblspi.features.composition import composed
from rblspi.features.default import table_basis
from rblspi.features.primitives import Stage, affine, normal_rectifier, scale
from rblspi.features.random_fourier import normal_draws


@dataclass(frozen=True)
class Network(Basis):
    """Layers, each affine, then normalised, then rectified; and a constant.

    With the observation h_0 in units of its standard deviation, or its indicators where it is
    discrete,

        z = h_l M_l + b_l,    h_(l+1) = max(0, (z - mean z) / (var z + 10^-5)^1/2),

    where mean and variance are those of the numbers of one layer (layer normalisation). The last
    layer and a constant 1 are the features. `DeepQ` and ``rblspi fit --basis network`` learn
    the weights; until then they are random, and the features are random too.

    Parameters
    ----------
    hidden : int or sequence of int
        The size of every layer.
    mean, std : float or sequence of float
        Origin and unit of the observations: one number for all dimensions, or one for each.
    weights : str, optional
        What was learnt: for every layer b and then the rows of M, as float32 in base64. By
        default the matrices are random, with variance 2 / (rows of the matrix), and b = 0.
    seed : int
        Seed of the random matrices.

    References
    ----------
    J. L. Ba, J. R. Kiros and G. E. Hinton (2016). Layer normalization. arXiv:1607.06450.
    """

    hidden: int | Sequence[int] = (128, 128)
    mean: float | Sequence[float] = 0.0
    std: float | Sequence[float] = 1.0
    weights: str | None = field(default=None, repr=False)
    seed: int = 0

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for any space of numbers."""
        sizes = self.sizes(space)
        layers: list[Stage] = []
        for bias, matrix in split(self.numbers(space), sizes):
            layers += [affine(matrix, bias), normal_rectifier(len(bias))]
        return composed(observation_shape(space), *self._units(space), *layers, one=True)

    def sizes(self, space: gym.Space[Any]) -> tuple[int, ...]:
        """The number of inputs, and the size of every layer."""
        layers = np.atleast_1d(np.asarray(self.hidden, dtype=np.float64))
        if layers.ndim > 1 or not layers.size:
            raise ValueError(f"hidden={self.hidden} must be the size of every layer, as (128, 128)")
        hidden = counts_per_dimension("hidden", layers.tolist(), layers.size)
        self._require_feasible(max(hidden))
        return self._units(space)[-1].size, *hidden

    def inputs(self, space: gym.Space[Any]) -> Callable[[Any], Matrix]:
        """From rows of observations to the inputs of the first layer, which are in their units."""
        if table_basis(space) is not None:
            return composed(observation_shape(space), *self._units(space)).__call__
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        return lambda seen: (seen.reshape(len(seen), -1) - mean) / std

    def scaled_to(self, seen: Matrix) -> Network:
        """The same network in units of the standard deviation of observations, shape (N, d)."""
        mean, std = seen.mean(axis=0), seen.std(axis=0)
        std = np.where(std > 1e-9 * np.abs(mean), std, 1.0)  # some numbers may never change
        return replace(self, mean=mean.tolist(), std=std.tolist())

    def numbers(self, space: gym.Space[Any]) -> Vector:
        """The weights of all layers in one vector: for each b, then the rows of M."""
        sizes = self.sizes(space)
        if self.weights is None:
            return _random(sizes, self.seed)
        try:
            found = np.frombuffer(base64.b64decode(self.weights, validate=True), "<f4")
        except (TypeError, ValueError, binascii.Error) as error:
            raise ValueError(f"weights are not float32 numbers in base64: {error}") from error
        if len(found) != count(sizes) or not np.isfinite(found).all():
            raise ValueError(
                f"weights hold {len(found)} numbers, but layers of the sizes {sizes} have "
                f"{count(sizes)}, which must be finite: give the space the network was learnt in"
            )
        return found.astype(np.float64)

    @property
    def scaled(self) -> bool:
        """Whether it has an origin and a unit of its own."""
        return bool(np.any(self.mean) or np.any(np.asarray(self.std) != 1.0))

    def _units(self, space: gym.Space[Any]) -> tuple[Stage, ...]:
        table = table_basis(space)
        if table is not None:
            if self.scaled:
                raise ValueError(
                    f"mean={self.mean} and std={self.std} are those of numbers, but the "
                    f"observations in {space} are discrete: leave them out"
                )
            return table.build(space).stages
        dimensions = input_size(space)
        mean = per_dimension("mean", self.mean, dimensions)
        std = per_dimension("std", self.std, dimensions)
        if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0.0).all()):
            raise ValueError(f"mean={self.mean} must be finite, and std={self.std} positive")
        return (scale(mean, 1.0 / std),)


def as_text(numbers: Vector) -> str:
    """Weights as the field ``weights`` holds them."""
    return base64.b64encode(np.asarray(numbers, "<f4").tobytes()).decode()


def count(sizes: Sequence[int]) -> int:
    """The number of weights of layers between these sizes."""
    return sum((given + 1) * size for given, size in pairwise(sizes))


def split(numbers: Any, sizes: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Bias, shape (m,), and matrix, shape (d, m), of every layer, as views of one vector."""
    first = 0
    for given, size in pairwise(sizes):
        middle, last = first + size, first + size * (given + 1)
        yield numbers[first:middle], numbers[middle:last].reshape(given, size)
        first = last


def _random(sizes: Sequence[int], seed: int) -> Vector:
    numbers = np.zeros(count(sizes))
    draws: Matrix = normal_draws(seed, (1, len(numbers)))
    for (_, matrix), (_, drawn) in zip(split(numbers, sizes), split(draws[0], sizes), strict=True):
        matrix[...] = math.sqrt(2.0 / len(matrix)) * drawn
    return numbers.astype(np.float32).astype(np.float64)
