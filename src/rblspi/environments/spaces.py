"""Observation spaces: observations as vectors, bounds, and descriptions as plain data.

A Tuple or a Dict whose parts are all discrete becomes the vector of their values, as in a
MultiDiscrete space, so that a table can have an entry for every combination. Any other Tuple or
Dict is flattened by `gymnasium.spaces.flatten`: its discrete parts become indicators. The part
``action_mask`` of a Dict says which actions are allowed, and is left out of the vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple, flatten
from gymnasium.vector.utils import batch_space, iterate

from rblspi.core.types import Allowed, Array, Mask, Vector

#: the part of a Dict observation, and the entry of ``info``, that says which actions are allowed
ACTION_MASK = "action_mask"
#: how deeply Tuple and Dict spaces in a file may be nested
_DEEPEST = 8
#: the constructor arguments that a file holds for each space without parts
_ARGUMENTS = {
    "Discrete": ("n", "start"),
    "MultiDiscrete": ("nvec", "start"),
    "MultiBinary": ("n",),
    "Box": ("low", "high", "shape", "dtype"),
}
_NOT_NUMBERS = (
    "space {} does not hold a fixed number of numbers: wrap the environment so that it gives a "
    "Box, for example with gymnasium.wrappers.TransformObservation"
)


# Vectors -----------------------------------------------------------------------------------------


def vector_space(space: gym.Space[Any]) -> Box | Discrete | MultiDiscrete:
    """The space of the vectors; a space of arrays or numbers stays as it is.

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
    discrete = [_first_and_count(leaf) for leaf in leaves if not isinstance(leaf, Box)]
    if len(discrete) == len(leaves):
        start, count = (np.concatenate(column) for column in zip(*discrete, strict=True))
        return MultiDiscrete(count.astype(np.int64), start=start.astype(np.int64))
    flat = gym.spaces.flatten_space(seen)
    assert isinstance(flat, Box)
    return flat


def as_vector(space: gym.Space[Any], observation: Any) -> Vector:
    """One observation as a vector, shape (d,).

    Raises
    ------
    TypeError, ValueError
        If it does not consist of numbers, or has another shape than the space: a rotated picture
        has equally many numbers. Axes of length 1 do not count.
    """
    if not isinstance(space, Tuple | Dict):
        return _numbers(space, observation).ravel()
    seen = _seen_part(space)
    if isinstance(vector_space(seen), MultiDiscrete):
        return np.concatenate([np.ravel(part) for part in _parts(seen, observation)], dtype=float)
    return np.asarray(flatten(seen, observation), dtype=np.float64)


def as_vectors(space: gym.Space[Any], observations: Any) -> Any:
    """An observation, shape (d,), or a batch of them, (N, d), as features take them.

    A batch of a Tuple or a Dict is a Tuple or Dict of arrays, as vector environments give it, or a
    list of observations. Arrays of numbers are vectors already.
    """
    plain = isinstance(observations, np.ndarray) and observations.dtype != object
    if plain or not isinstance(space, Tuple | Dict):
        return observations
    if isinstance(observations, list | np.ndarray):
        if not any(np.ndim(one) or isinstance(one, Mapping) for one in observations):
            return np.asarray(observations, dtype=np.float64)
        return np.array([as_vector(space, one) for one in observations])
    seen = _seen_part(space)
    leaf, value = next(zip(_leaves(seen), _parts(seen, observations), strict=False))
    if np.ndim(value) == len(leaf.shape or ()):
        return as_vector(space, observations)
    if isinstance(seen, Dict):
        observations = {name: observations[name] for name in seen.spaces}
    rows = iterate(batch_space(seen, len(value)), observations)
    return np.array([as_vector(seen, row) for row in rows])


def observation_shape(space: gym.Space[Any]) -> tuple[int, ...]:
    """The shape of one observation; () in a Discrete space, (d,) where parts are flattened."""
    return tuple(vector_space(space).shape or ())


def input_size(space: gym.Space[Any]) -> int:
    """The number of components of an observation in this space."""
    return math.prod(observation_shape(space))


def has_image(space: gym.Space[Any]) -> bool:
    """Whether an observation has a part with bytes from 0 to 255 in rows and columns."""
    return any(
        isinstance(leaf, Box)
        and leaf.dtype == np.uint8
        and len(leaf.shape) in (2, 3)
        and bool((leaf.low == 0).all() and (leaf.high == 255).all())
        for leaf in _leaves(_seen_part(space))
    )


def _numbers(space: gym.Space[Any], observation: Any) -> Array:
    """An observation as an array of the shape of its space, except for axes of length 1."""
    try:
        array = np.asarray(observation, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"an observation that does not consist of numbers: {error}") from error
    given, wanted = ([n for n in shape if n != 1] for shape in (array.shape, space.shape or ()))
    if given != wanted:
        raise ValueError(
            f"an observation of shape {array.shape}, but its observation space has the shape "
            f"{space.shape}"
        )
    return array


def _seen_part(space: gym.Space[Any]) -> gym.Space[Any]:
    """The space without the part that says which actions are allowed."""
    if isinstance(space, Dict) and ACTION_MASK in space.spaces:
        return Dict([(name, part) for name, part in space.spaces.items() if name != ACTION_MASK])
    return space


def _leaves(space: gym.Space[Any]) -> Iterator[Box | Discrete | MultiDiscrete]:
    """The parts of a space that have no parts."""
    if isinstance(space, Tuple | Dict):
        for part in space.spaces.values() if isinstance(space, Dict) else space.spaces:
            yield from _leaves(part)
    elif isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary):
        yield vector_space(space)
    else:
        raise TypeError("observation " + _NOT_NUMBERS.format(space))


def _parts(space: gym.Space[Any], observation: Any) -> Iterator[Any]:
    """The entries of an observation, one for every leaf of the space."""
    if isinstance(space, Tuple):
        for part, value in zip(space.spaces, observation, strict=True):
            yield from _parts(part, value)
    elif isinstance(space, Dict):
        for name, part in space.spaces.items():
            yield from _parts(part, observation[name])
    else:
        yield observation


# Values and bounds -------------------------------------------------------------------------------


def finite_values(space: gym.Space[Any], whole: bool = False) -> tuple[Vector, Vector] | None:
    """The first value and the number of values of each component, if they are whole numbers.

    None where they are not, or where they have no bounds. With ``whole`` they are whole numbers
    between the bounds, also where the space is one of floats.
    """
    vectors = vector_space(space)
    if not isinstance(vectors, Box):
        return _first_and_count(vectors)
    low, high = _flat(vectors.low), _flat(vectors.high)
    known = whole or np.issubdtype(vectors.dtype, np.integer)
    if not known or is_unbounded(low, high).any():
        return None
    low = np.ceil(low)
    return low, np.floor(high) - low + 1.0


def states_of(space: gym.Space[Any], whole: bool = False) -> int | None:
    """How many different observations there are; None where they are not finitely many."""
    found = finite_values(space, whole)
    return None if found is None else math.prod(int(count) for count in found[1])


def limits(space: gym.Space[Any]) -> tuple[Vector, Vector]:
    """The lowest and the highest value of each dimension in the space; may be infinite."""
    vectors = vector_space(space)
    if has_image(space):
        raise TypeError(
            f"observation space {space} has images: these features are for a few numbers, such as "
            "positions and velocities. Wrap the environment so that it gives these, or pass a "
            "basis of your own, a function that makes a vector of features of an image"
        )
    if isinstance(vectors, Box):
        return _flat(vectors.low), _flat(vectors.high)
    lower, count = _first_and_count(vectors)
    return lower, lower + count - 1


def is_unbounded(lower: Vector, upper: Vector) -> Mask:
    """Which dimensions lack a bound.

    A Box of float32 may mark a missing bound by the largest float32 instead of infinity. The
    negation makes NaN count as a missing bound.
    """
    return ~((np.abs(lower) < 1e30) & (np.abs(upper) < 1e30))


def _first_and_count(space: Discrete | MultiDiscrete) -> tuple[Vector, Vector]:
    return _flat(space.start), _flat(space.n if isinstance(space, Discrete) else space.nvec)


def _flat(value: Any) -> Vector:
    return np.asarray(value, dtype=np.float64).ravel()


# Allowed actions ---------------------------------------------------------------------------------


def action_mask(
    space: gym.Space[Any], observation: Any, info: Mapping[str, Any] | None = None
) -> Any | None:
    """The mask in ``info["action_mask"]`` or in ``observation["action_mask"]``; None for neither.

    For a batch, the mask has a row for each observation.
    """
    if info is not None and ACTION_MASK in info:
        return info[ACTION_MASK]
    if not (isinstance(space, Dict) and ACTION_MASK in space.spaces):
        return None
    if isinstance(observation, Mapping):
        return observation[ACTION_MASK]
    if isinstance(observation, list) and observation and isinstance(observation[0], Mapping):
        return [one[ACTION_MASK] for one in observation]
    return None


def checked_masks(masks: Any, actions: int, rows: int) -> Allowed:
    """Masks as rows of 0 and 1, shape (rows, actions); each row must allow an action."""
    array = np.asarray(masks)
    if array.shape != (rows, actions) and (rows > 1 or array.shape != (actions,)):
        raise ValueError(
            f"action_masks of shape {array.shape} do not say which of {actions} actions are "
            f"allowed in {rows} observations"
        )
    flags = array.astype(np.bool_) if array.dtype.kind in "biuf" else None
    if flags is None or (flags != array).any():
        raise ValueError(f"action_masks={array.tolist()} must be true or false for every action")
    found: Allowed = flags.view(np.uint8).reshape(rows, actions)
    if not (found.any() if rows == 1 else found.any(axis=1).all()):
        raise ValueError(f"action_masks={found.tolist()} forbid every action of an observation")
    return found


# Plain data --------------------------------------------------------------------------------------


def describe_space(space: gym.Space[Any]) -> dict[str, Any]:
    """The description of a space, from which `space_from` makes it again."""
    name = type(space).__name__
    if isinstance(space, Tuple):
        return {"space": name, "parts": [describe_space(part) for part in space.spaces]}
    if isinstance(space, Dict):
        parts = [[key, describe_space(part)] for key, part in space.spaces.items()]
        return {"space": name, "parts": parts}
    if name not in _ARGUMENTS:
        raise TypeError(_NOT_NUMBERS.format(space))
    values = {argument: getattr(space, argument) for argument in _ARGUMENTS[name]}
    plain = {key: str(v) if key == "dtype" else np.asarray(v).tolist() for key, v in values.items()}
    return {"space": name, **plain}


def space_from(description: Mapping[str, Any], depth: int = 0) -> gym.Space[Any]:
    """The space of a description that is nested in ``depth`` others.

    Raises
    ------
    ValueError, TypeError, LookupError
        If it does not describe a space.
    """
    match description["space"]:
        case "Discrete":
            return Discrete(int(description["n"]), start=int(description["start"]))
        case "MultiDiscrete":
            nvec, start = (np.array(description[name], np.int64) for name in ("nvec", "start"))
            return MultiDiscrete(nvec, start=start)
        case "Box":
            shape = tuple(int(size) for size in description["shape"])
            dtype = np.dtype(description["dtype"])
            if dtype.kind not in "fiu":
                raise ValueError(f"a Box of {dtype} does not hold numbers")
            low, high = (
                np.array(description[name], np.float64).reshape(shape).astype(dtype)
                for name in ("low", "high")
            )
            return Box(low, high, shape, dtype.type)
        case "MultiBinary":
            n = description["n"]
            return MultiBinary([int(size) for size in n] if isinstance(n, list) else int(n))
        case "Tuple" if depth < _DEEPEST:
            return Tuple([space_from(part, depth + 1) for part in description["parts"]])
        case "Dict" if depth < _DEEPEST:
            parts = description["parts"]
            return Dict([(str(name), space_from(part, depth + 1)) for name, part in parts])
        case other:
            raise ValueError(f"space {str(other)[:60]!r} is none that a file may describe")
