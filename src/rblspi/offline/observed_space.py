"""The observation space of logged transitions, and the features that are built for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, Features, as_basis
from rblspi.offline.accumulation import conformed, not_empty, over_chunks


def build_features(
    basis: BasisLike, space: gym.Space[Any] | None, chunks: Iterable[Transitions], look: bool
) -> tuple[Features, gym.Space[Any]]:
    """Build the features for a given observation space, or for one that is found in the data.

    A basis that has its own bounds is built without a pass over the data. Any other basis needs
    the range of all observations, for which ``look`` allows a pass.
    """
    recipe = as_basis(basis)
    if space is not None:
        return recipe.build(space), space
    first = conformed(not_empty(next(iter(chunks), None), chunks))
    if not are_states(first.observations):
        try:
            unbounded = gym.spaces.Box(-np.inf, np.inf, first.observations.shape[1:], np.float64)
            return recipe.build(unbounded), unbounded
        except ValueError:  # the basis needs bounds
            pass
    if not look:
        raise ValueError(
            "observation_space=None, and partial_fit cannot tell the range of all observations "
            "from the first of them: give observation_space, or a basis with low and high"
        )
    observed = observed_space(chunks)
    return recipe.build(observed), observed


def observed_space(chunks: Iterable[Transitions]) -> gym.Space[Any]:
    """The smallest space of all observations: Discrete if they are whole numbers, else a Box."""
    low, high, states = over_chunks(chunks, _range_of_chunk, _Range.merge)
    if states:
        return gym.spaces.Discrete(int(high - low) + 1, start=int(low))
    return gym.spaces.Box(low, high, np.shape(low), np.float64)


def sample_observations(chunks: Iterable[Transitions], count: int = 2000) -> Matrix:
    """Some observations from all over the data, shape (N, d), the same ones at every call."""
    return over_chunks(chunks, partial(_spread, count), lambda a, b: _thinned(count, [a, b]))


def _spread(count: int, chunk: Transitions) -> Matrix:
    return _thinned(count, [chunk.observations.reshape(chunk.size, -1).astype(np.float64)])


def _thinned(count: int, rows: list[Matrix]) -> Matrix:
    """At most so many rows, evenly spaced."""
    every = np.concatenate(rows)
    places = np.linspace(0, len(every) - 1, min(count, len(every)))
    return every[places.astype(np.int64)]


class _Range(NamedTuple):
    low: NDArray[Any]
    high: NDArray[Any]
    states: bool  # whether every observation is a whole number

    def merge(self, other: _Range) -> _Range:
        return _Range(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.states and other.states,
        )


def _range_of_chunk(chunk: Transitions) -> _Range:
    one, other = (
        _Range(column.min(axis=0), column.max(axis=0), are_states(column))
        for column in (chunk.observations, chunk.next_observations)
    )
    found = one.merge(other)
    if not (np.isfinite(found.low).all() and np.isfinite(found.high).all()):
        chunk.checked()  # names the row that is not finite
    return found


def are_states(observations: NDArray[Any]) -> bool:
    """Whether the observations are whole numbers: the states of a Discrete space."""
    return observations.ndim == 1 and observations.dtype.kind in "iu"
