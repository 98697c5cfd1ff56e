"""A policy as one file: arrays and plain data, never code."""

from __future__ import annotations

import math
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core import archive
from rblspi.core.archive import FileError, short
from rblspi.core.types import Array
from rblspi.data.encoding import Encoding
from rblspi.environments.spaces import describe_space, space_from
from rblspi.features import BasisLike, as_basis, basis_from_settings
from rblspi.model.posterior import Posterior
from rblspi.policies.linear import LinearPolicy

FORMAT = "rblspi-policy"
VERSION = 3

#: of every posterior, and of some
_ARRAYS = ("mean", "factor", "whitened", "gram_factor")
_OPTIONAL = ("flat", "prior_mean")
_NUMBERS = ("residual", "prior_precision", "noise_precision", "jitter", "jitter_count")
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("pessimism", "epsilon", "discount", "basis_std"), int | float),
    "environment": dict | None,
    "provenance": dict,
    "action_names": list,
    "seed": list,
}
#: see `rblspi.environments.lookup.describe`
_ENVIRONMENT = {"id", "arguments", "limit", "wrappers", "module"}
#: only in files of policies from logs with named columns, and of those whose values have limits
_INPUTS, _LIMITS = "inputs", "limits"
_SPACES = ("observation_space", "action_space")


def save(policy: LinearPolicy, path: str | PathLike[str]) -> None:
    """Write a policy; the file appears under its name once it is whole."""
    posterior = policy.posterior
    arrays = {"weights": policy.weights}
    description: dict[str, Any] = {name: getattr(policy, name) for name in _FIELDS}
    description |= {name: describe_space(getattr(policy, name)) for name in _SPACES}
    description |= {"basis": policy.basis.settings(), "posterior": None}
    if policy.inputs is not None:
        description[_INPUTS] = policy.inputs.plain()
    if np.isfinite(policy.limits).any():  # JSON has no infinity
        description[_LIMITS] = [v if math.isfinite(v) else None for v in policy.limits]
    if posterior is not None:
        found = {f"posterior.{name}": getattr(posterior, name) for name in _ARRAYS + _OPTIONAL}
        arrays |= {name: array for name, array in found.items() if array is not None}
        description["posterior"] = {name: getattr(posterior, name) for name in _NUMBERS}
    archive.write(path, FORMAT, VERSION, description, arrays)


def load(path: str | PathLike[str], basis: BasisLike | None = None) -> LinearPolicy:
    """Read a policy.

    Raises
    ------
    FileError
        Whatever is wrong with the file.
    """
    description, arrays = archive.read(path, FORMAT, VERSION)
    try:
        return _policy(description, arrays, basis)
    except KeyError as error:
        raise FileError(f"{path} cannot be loaded: it has no {error}") from error
    except Exception as error:  # whatever a stranger's values make a constructor raise
        raise FileError(f"{path} cannot be loaded: {error}") from error


def _policy(
    description: dict[str, Any], arrays: dict[str, NDArray[Any]], basis: BasisLike | None
) -> LinearPolicy:
    inputs, limits = description.pop(_INPUTS, None), description.pop(_LIMITS, [None, None])
    if set(description) != {*_FIELDS, *_SPACES, "basis", "posterior"}:
        raise FileError("fields are missing, or there are too many")
    for name, kind in _FIELDS.items():
        if not isinstance(description[name], kind) or isinstance(description[name], bool):
            raise FileError(f"{name}={short(description[name])} is of another type")
    environment = description["environment"]
    if environment is not None and {*environment, "module"} != _ENVIRONMENT:
        raise FileError(f"environment={short(environment)} does not say how to make it")
    spaces: dict[str, Any] = {name: space_from(description[name]) for name in _SPACES}
    recipe = basis_from_settings(description["basis"]) if basis is None else as_basis(basis)
    names, seed = description["action_names"], description["seed"]
    policy = LinearPolicy(
        **{name: description[name] for name in _FIELDS}
        | {"action_names": tuple(map(str, names)), "seed": tuple(map(int, seed))}
        | spaces,
        basis=recipe,
        inputs=None if inputs is None else Encoding.from_plain(inputs),
        features=recipe.build(spaces["observation_space"]),
        limits=_limits(limits),
        weights=_finite(arrays, "weights"),
        posterior=_posterior(description["posterior"], arrays, int(spaces["action_space"].n)),
    )
    np.random.default_rng(policy.seed)  # refuses numbers that are no seed
    if arrays:
        raise FileError(f"it has an array {short(next(iter(arrays)))} that no policy has")
    return policy


def _posterior(numbers: Any, arrays: dict[str, NDArray[Any]], actions: int) -> Posterior | None:
    if numbers is None:
        return None
    names = [*_ARRAYS, *(name for name in _OPTIONAL if f"posterior.{name}" in arrays)]
    found: dict[str, Any] = {name: _finite(arrays, f"posterior.{name}") for name in names}
    k, n = len(found["mean"]), len(found["mean"]) // actions
    shapes: dict[str, Any] = {"factor": (k, k), "gram_factor": (actions, n, n)}
    for name, array in found.items():
        if array.shape != shapes.get(name, (k,)):
            raise FileError(f"{name} has the shape {array.shape}, not {shapes.get(name, (k,))}")
    values: dict[str, Any] = {name: float(numbers[name]) for name in _NUMBERS}
    precisions = values["prior_precision"], values["noise_precision"]
    if not (np.isfinite(list(values.values())).all() and min(precisions) > 0.0):
        raise FileError(f"its posterior has the numbers {short(numbers)}")
    values["jitter_count"] = int(values["jitter_count"])
    return Posterior(**found, **values, actions=actions)


def _limits(pair: Any) -> tuple[float, float]:
    kinds = [type(v) in (int, float, type(None)) for v in pair] if isinstance(pair, list) else []
    if kinds != [True, True]:
        raise FileError(f"limits={short(pair)} are not two numbers")
    low, high = pair
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _finite(arrays: dict[str, NDArray[Any]], name: str) -> Array:
    array = arrays.pop(name)
    if array.dtype != np.float64 or not np.isfinite(array).all():
        raise FileError(f"{name} does not hold finite numbers")
    return array.copy()
