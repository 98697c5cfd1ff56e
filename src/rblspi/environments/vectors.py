"""Observations of any space as vectors of numbers, flattened as Gymnasium does it.

A Tuple or a Dict whose parts are all discrete becomes the vector of their values, as in a
MultiDiscrete space, so that a table can have an entry for every combination. Any other Tuple or
Dict is flattened by `gymnasium.spaces.flatten`: its discrete parts become indicators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple, flatten
from gymnasium.vector.utils import batch_space, iterate

from rblspi.core.types import Array, Vector

#: the part of a Dict observation that says which actions are allowed
ACTION_MASK = "action_mask"


def vector_space(space: gym.Space[Any]) -> Box | Discrete | MultiDiscrete:
    """The space of the vectors, or of the arrays and numbers where observations are such already.

    Raises
    ------
    TypeError
        If a part of the space does not hold a fixed number of numbers.
    """
    if isinstance(space, Box | Discrete | MultiDiscrete):
        return space
    if isinstance(space, MultiBinary):
        return MultiDiscrete(np.full(space.shape, 2))
    seen = _seen_part(space)
    leaves = list(_leaves(seen))
    if not leaves:
        raise TypeError(f"observation space {space} has no parts to learn from")
    discrete = [leaf for leaf in leaves if isinstance(leaf, Discrete | MultiDiscrete)]
    if len(discrete) == len(leaves):
        return MultiDiscrete(
            np.concatenate([np.ravel(_counts(leaf)) for leaf in discrete]),
            start=np.concatenate([np.ravel(leaf.start) for leaf in discrete]),
        )
    flat = gym.spaces.flatten_space(seen)
    assert isinstance(flat, Box)
    return flat


def as_vector(space: gym.Space[Any], observation: Any) -> Vector:
    """One observation as a vector, shape (d,).

    Raises
    ------
    TypeError, ValueError
        If it does not consist of numbers, or has another shape than the space: a picture on its
        side has as many numbers as an upright one. Axes of length 1 do not count.
    """
    if not _is_compound(space):
        return _numbers(space, observation).ravel()
    seen = _seen_part(space)
    if isinstance(vector_space(seen), MultiDiscrete):
        return np.fromiter(_values(seen, observation), dtype=np.float64)
    return np.asarray(flatten(seen, observation), dtype=np.float64)


def _numbers(space: gym.Space[Any], observation: Any) -> Array:
    """An observation as an array of the shape of its space, but for axes of length 1."""
    try:
        array = np.asarray(observation, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"an observation that does not consist of numbers: {error}") from error
    if array.shape != space.shape and _long_axes(array.shape) != _long_axes(space.shape or ()):
        raise ValueError(
            f"an observation of shape {array.shape}, but its observation space has the shape "
            f"{space.shape}"
        )
    return array


def _long_axes(shape: tuple[int, ...]) -> list[int]:
    return [length for length in shape if length != 1]


def as_vectors(space: gym.Space[Any], observations: Any) -> Any:
    """An observation, shape (d,), or a batch of them, (N, d), as features take them.

    A batch of a Tuple or a Dict is one of arrays, as vector environments give it, or a list of
    observations. Arrays of numbers are vectors already.
    """
    if not _is_compound(space) or (
        isinstance(observations, np.ndarray) and observations.dtype != object
    ):
        return observations
    if isinstance(observations, list | np.ndarray):
        if not any(np.ndim(one) or isinstance(one, Mapping) for one in observations):
            return np.asarray(observations, dtype=np.float64)
        return np.array([as_vector(space, one) for one in observations])
    seen = _seen_part(space)
    leaf, value = next(zip(_leaves(seen), _parts(seen, observations), strict=False))
    if np.ndim(value) == len(leaf.shape or ()):
        return as_vector(space, observations)
    rows = iterate(batch_space(seen, len(value)), _without_mask(space, observations))
    return np.array([as_vector(seen, row) for row in rows])


def is_image(space: gym.Space[Any]) -> bool:
    """Whether observations are pictures, of bytes from 0 to 255 in rows and columns."""
    return (
        isinstance(space, Box)
        and space.dtype == np.uint8
        and len(space.shape) in (2, 3)
        and bool((space.low == 0).all() and (space.high == 255).all())
    )


def has_image(space: gym.Space[Any]) -> bool:
    """Whether observations are pictures, or have one as a part."""
    return any(map(is_image, _leaves(_seen_part(space))))


def _is_compound(space: gym.Space[Any]) -> bool:
    return isinstance(space, Tuple | Dict)


def _seen_part(space: gym.Space[Any]) -> gym.Space[Any]:
    """The space without the part that says which actions are allowed."""
    if isinstance(space, Dict) and ACTION_MASK in space.spaces:
        return Dict([(name, part) for name, part in space.spaces.items() if name != ACTION_MASK])
    return space


def _without_mask(space: gym.Space[Any], observations: Any) -> Any:
    if isinstance(space, Dict):
        return {name: observations[name] for name in space.spaces if name != ACTION_MASK}
    return observations


def _leaves(space: gym.Space[Any]) -> Iterator[Box | Discrete | MultiDiscrete]:
    """The parts of a space that have no parts."""
    if isinstance(space, Tuple):
        for part in space.spaces:
            yield from _leaves(part)
    elif isinstance(space, Dict):
        for part in space.spaces.values():
            yield from _leaves(part)
    elif isinstance(space, MultiBinary):
        yield vector_space(space)
    elif isinstance(space, Box | Discrete | MultiDiscrete):
        yield space
    else:
        raise TypeError(
            f"observation space {space} does not hold a fixed number of numbers: wrap the "
            "environment so that it gives a Box, for example with "
            "gymnasium.wrappers.TransformObservation"
        )


def _parts(space: gym.Space[Any], observation: Any) -> Iterator[Any]:
    """What an observation has in every leaf of the space."""
    if isinstance(space, Tuple):
        for part, value in zip(space.spaces, observation, strict=True):
            yield from _parts(part, value)
    elif isinstance(space, Dict):
        for name, part in space.spaces.items():
            yield from _parts(part, observation[name])
    else:
        yield observation


def _values(space: gym.Space[Any], observation: Any) -> Iterator[float]:
    for part in _parts(space, observation):
        yield from np.ravel(part)


def _counts(space: Discrete | MultiDiscrete) -> Any:
    return space.n if isinstance(space, Discrete) else space.nvec
