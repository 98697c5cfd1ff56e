"""A policy as one file, with the posterior of its values if there is one: arrays and plain data."""

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
from rblspi.environments.actions import action_set
from rblspi.environments.spaces import describe_space, space_from
from rblspi.features import BasisLike, as_basis, basis_from_settings
from rblspi.model.posterior import Posterior
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import ValuePosterior, values_of

FORMAT = "rblspi-policy"
VERSION = 5

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
_OTHERS = {"basis", "inputs", "posterior", "values"}
_VALUES = {"basis", "basis_std", "limits", "posterior"}
#: see `rblspi.environments.lookup.describe`
_ENVIRONMENT = {"id", "arguments", "limit", "wrappers", "module"}


def save(policy: LinearPolicy | ValuePosterior, path: str | PathLike[str]) -> None:
    """Write a policy, alone or with its values; the file appears once it is whole."""
    values = policy if isinstance(policy, ValuePosterior) else None
    policy = policy.policy if isinstance(policy, ValuePosterior) else policy
    arrays = {"weights": policy.weights}
    description: dict[str, Any] = {name: getattr(policy, name) for name in _FIELDS}
    description |= {name: describe_space(getattr(policy, name)) for name in _SPACES}
    description |= {
        "basis": policy.basis.settings(),
        "inputs": None if policy.inputs is None else policy.inputs.plain(),
        "posterior": None,
        "values": None,
    }
    if values is None or policy.pessimism:  # otherwise the posterior of the values is enough
        description["posterior"] = _describe(policy.posterior, "posterior", arrays)
    if values is not None:
        shared = bool(policy.pessimism) and values.posterior is policy.posterior
        description["values"] = {
            "basis": None if values.basis is None else values.basis.settings(),
            "basis_std": values.basis_std,
            # JSON has no infinity
            "limits": [v if math.isfinite(v) else None for v in values.limits],
            "posterior": None if shared else _describe(values.posterior, "values", arrays),
        }
    archive.write(path, FORMAT, VERSION, description, arrays)


def _describe(
    posterior: Posterior | None, prefix: str, arrays: dict[str, Array]
) -> dict[str, Any] | None:
    """The numbers of a posterior, whose arrays are added under their names."""
    if posterior is None:
        return None
    found = {name: getattr(posterior, name) for name in _ARRAYS + _OPTIONAL}
    arrays |= {f"{prefix}.{name}": array for name, array in found.items() if array is not None}
    return {name: getattr(posterior, name) for name in _NUMBERS}


def load(path: str | PathLike[str], basis: BasisLike | None = None) -> ValuePosterior:
    """Read a policy and its values; those by which it acts, if the file has no others.

    Raises
    ------
    FileError
        Whatever is wrong with the file.
    """
    description, arrays = archive.read(path, FORMAT, VERSION)
    try:
        policy = _policy(description, arrays, basis)
        values = _values(policy, description["values"], arrays)
        if arrays:
            raise FileError(f"it has an array {short(next(iter(arrays)))} that no policy has")
        return values
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
    policy = LinearPolicy(
        **{name: description[name] for name in _FIELDS}
        | {"action_names": tuple(map(str, names)), "seed": tuple(map(int, seed))}
        | spaces
        | {"action_axes": axes},
        basis=recipe,
        inputs=None if inputs is None else Encoding.from_plain(inputs),
        features=recipe.build(spaces["observation_space"]),
        weights=_finite(arrays, "weights"),
        posterior=_posterior(description["posterior"], "posterior", arrays, actions),
    )
    np.random.default_rng(policy.seed)  # refuses numbers that are no seed
    return policy


def _values(policy: LinearPolicy, stored: Any, arrays: dict[str, NDArray[Any]]) -> ValuePosterior:
    if stored is None:
        return values_of(policy)
    if set(stored) != _VALUES or type(stored["basis_std"]) not in (int, float):
        raise FileError(f"values={short(stored)} do not say how they are distributed")
    own = _posterior(stored["posterior"], "values", arrays, policy.actions)
    return ValuePosterior(
        policy,
        policy.posterior if own is None else own,
        basis=None if stored["basis"] is None else basis_from_settings(stored["basis"]),
        basis_std=stored["basis_std"],
        limits=_limits(stored["limits"]),
    )


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
