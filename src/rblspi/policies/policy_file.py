"""A policy as one file, with the draws of its values if there are any: arrays and plain data."""

from __future__ import annotations

import math
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core import archive
from rblspi.core.archive import FileError, short
from rblspi.data.encoding import Encoding
from rblspi.environments.actions import action_set
from rblspi.environments.spaces import describe_space, space_from
from rblspi.features import BasisLike, as_basis, basis_from_settings
from rblspi.model.posterior import Posterior
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import Draws

FORMAT = "rblspi-policy"
VERSION = 6

#: of every posterior, and of some
_ARRAYS = ("mean", "factor", "gram_factor")
_OPTIONAL = ("flat",)
_NUMBERS = ("residual", "prior_precision", "noise_precision", "jitter", "jitter_count")
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("pessimism", "epsilon", "discount"), int | float),
    "environment": dict | None,
    "provenance": dict,
    "action_names": list,
    "action_axes": list,
    "seed": list,
}
_SPACES = ("observation_space", "action_space")
_OTHERS = {"basis", "inputs", "posterior", "unknown"}
#: see `rblspi.environments.lookup.describe`
_ENVIRONMENT = {"id", "arguments", "limit", "wrappers", "module"}


def save(policy: LinearPolicy, path: str | PathLike[str]) -> None:
    """Write a policy and the draws of its values; the file appears once it is whole."""
    arrays: dict[str, NDArray[Any]] = {"weights": policy.weights}
    description: dict[str, Any] = {name: getattr(policy, name) for name in _FIELDS}
    description |= {name: describe_space(getattr(policy, name)) for name in _SPACES}
    posterior, draws = policy.posterior if policy.pessimism else None, policy.value_draws
    description |= {
        "basis": policy.basis.settings(),
        "inputs": None if policy.inputs is None else policy.inputs.plain(),
        "posterior": _describe(posterior, "posterior", arrays),
        "unknown": None if draws is None else draws.unknown,
    }
    if draws is not None:
        arrays |= {"deviations": draws.deviations, "common": draws.common}
    archive.write(path, FORMAT, VERSION, description, arrays)


def _describe(
    posterior: Posterior | None, prefix: str, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any] | None:
    """The numbers of a posterior, whose arrays are added under their names."""
    if posterior is None:
        return None
    found = {name: getattr(posterior, name) for name in _ARRAYS + _OPTIONAL}
    arrays |= {f"{prefix}.{name}": array for name, array in found.items() if array is not None}
    return {name: getattr(posterior, name) for name in _NUMBERS}


def load(path: str | PathLike[str], basis: BasisLike | None = None) -> LinearPolicy:
    """Read a policy.

    Raises
    ------
    FileError
        Whatever is wrong with the file.
    """
    description, arrays = archive.read(path, FORMAT, VERSION)
    try:
        policy = _policy(description, arrays, basis)
        if arrays:
            raise FileError(f"it has an array {short(next(iter(arrays)))} that no policy has")
        return policy
    except KeyError as error:
        raise FileError(f"{path} cannot be loaded: it has no {error}") from error
    except Exception as error:  # whatever a stranger's values make a constructor raise
        raise FileError(f"{path} cannot be loaded: {error}") from error


def _policy(
    description: dict[str, Any], arrays: dict[str, NDArray[Any]], basis: BasisLike | None
) -> LinearPolicy:
    if set(description) != {*_FIELDS, *_SPACES, *_OTHERS}:
        raise FileError("fields are missing, or there are too many")
    for name, kind in _FIELDS.items():
        if not isinstance(description[name], kind) or isinstance(description[name], bool):
            raise FileError(f"{name}={short(description[name])} is of another type")
    environment, inputs = description["environment"], description["inputs"]
    if environment is not None and {*environment, "module"} != _ENVIRONMENT:
        raise FileError(f"environment={short(environment)} does not say how to make it")
    spaces: dict[str, Any] = {name: space_from(description[name]) for name in _SPACES}
    recipe = basis_from_settings(description["basis"]) if basis is None else as_basis(basis)
    names, seed = description["action_names"], description["seed"]
    axes = tuple(tuple(map(float, axis)) for axis in description["action_axes"])
    actions = action_set(spaces["action_space"], axes).count
    features = recipe.build(spaces["observation_space"])
    policy = LinearPolicy(
        **{name: description[name] for name in _FIELDS}
        | {"action_names": tuple(map(str, names)), "seed": tuple(map(int, seed))}
        | spaces
        | {"action_axes": axes},
        basis=recipe,
        inputs=None if inputs is None else Encoding.from_plain(inputs),
        features=features,
        weights=_finite(arrays, "weights"),
        draws=_draws(description["unknown"], arrays, actions, features.size),
        posterior=_posterior(description["posterior"], "posterior", arrays, actions),
    )
    np.random.default_rng(policy.seed)  # refuses numbers that are no seed
    return policy


def _draws(
    unknown: Any, arrays: dict[str, NDArray[Any]], actions: int, features: int
) -> Draws | None:
    if unknown is None:
        return None
    deviations = _finite(arrays, "deviations", np.float32)
    common = _finite(arrays, "common", np.float32)
    if deviations.shape[1:] != (actions, features) or len(deviations) < 2:
        raise FileError(f"deviations has the shape {deviations.shape}")
    finite = type(unknown) in (int, float) and 0.0 <= unknown < math.inf
    if common.shape != (features,) or not finite:
        raise FileError(f"unknown={short(unknown)}, common{common.shape} are no errors of values")
    return Draws(deviations, common, float(unknown))


def _posterior(
    numbers: Any, prefix: str, arrays: dict[str, NDArray[Any]], actions: int
) -> Posterior | None:
    if numbers is None:
        return None
    names = [*_ARRAYS, *(name for name in _OPTIONAL if f"{prefix}.{name}" in arrays)]
    found: dict[str, Any] = {name: _finite(arrays, f"{prefix}.{name}") for name in names}
    k, n = len(found["mean"]), len(found["mean"]) // actions
    if found["gram_factor"].shape[:1] == (1,):  # with eligibility traces
        n = k
    shapes: dict[str, Any] = {"factor": (k, k), "gram_factor": (k // n, n, n)}
    for name, array in found.items():
        if array.shape != shapes.get(name, (k,)):
            raise FileError(f"{name} has the shape {array.shape}, not {shapes.get(name, (k,))}")
    values: dict[str, Any] = {name: float(numbers[name]) for name in _NUMBERS}
    precisions = values["prior_precision"], values["noise_precision"]
    if not (np.isfinite(list(values.values())).all() and min(precisions) > 0.0):
        raise FileError(f"its posterior has the numbers {short(numbers)}")
    values["jitter_count"] = int(values["jitter_count"])
    return Posterior(**found, **values, actions=actions)


def _finite(
    arrays: dict[str, NDArray[Any]], name: str, dtype: type[np.floating[Any]] = np.float64
) -> NDArray[Any]:
    array = arrays.pop(name)
    if array.dtype != dtype or not np.isfinite(array).all():
        raise FileError(f"{name} does not hold finite numbers")
    return array.copy()
