"""A policy for other programs: as JSON, as a Python module that needs no package, or as ONNX.

The schema of the JSON file is in docs/policy-json.md; `standalone` is a reader of it.
"""

from __future__ import annotations

import inspect
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rblspi.core.archive import printable
from rblspi.core.files import replacing, write_text
from rblspi.core.types import Vector
from rblspi.features import BASES
from rblspi.features.bounds import input_size
from rblspi.policies import standalone

if TYPE_CHECKING:
    from rblspi.policies.linear import LinearPolicy

FORMAT = "rblspi-policy-json"


def export(policy: LinearPolicy, path: str | PathLike[str], std: bool | None = None) -> None:
    """Write a policy in the form that the end of the name says: .json, .py or .onnx."""
    target = Path(path)
    model = model_of(policy, bool(policy.pessimism) if std is None else std)
    if target.suffix == ".json":
        write_text(target, json.dumps(model, ensure_ascii=False) + "\n")
    elif target.suffix == ".py":
        write_text(target, _module(model))
    elif target.suffix == ".onnx":
        from rblspi.policies.onnx_graph import onnx_file

        content = onnx_file(model)
        with replacing(target) as temporary:
            temporary.write_bytes(content)
    else:
        raise ValueError(f"{path}: a policy is exported as .json, as .py or as .onnx")


def model_of(policy: LinearPolicy, std: bool = False) -> dict[str, Any]:
    """Everything that is needed to act, as plain data.

    Parameters
    ----------
    policy : LinearPolicy
    std : bool
        Whether to write down what standard deviations need: n x n numbers for every action.
    """
    if std and policy.posterior is None:
        raise ValueError("std=True: the policy has no posterior, and knows no standard deviation")
    start = int(policy.action_space.start)
    return {
        "format": FORMAT,
        "version": standalone.VERSION,
        "actions": list(policy.action_names) or list(range(start, start + policy.actions)),
        "inputs": [] if policy.inputs is None else policy.inputs.plain(),
        "observation_size": input_size(policy.observation_space),
        "basis": basis_numbers(policy),
        "weights": policy.weights_by_action.tolist(),
        "pessimism": float(policy.pessimism),
        "deviations": [factor.tolist() for factor in policy.posterior.covariance_factors]
        if std and policy.posterior is not None
        else None,
        "basis_std": float(policy.basis_std),
        "discount": float(policy.discount),
        "algorithm": printable(str(policy.provenance.get("algorithm", ""))),
    }


def basis_numbers(policy: LinearPolicy) -> dict[str, Any]:
    """The numbers of the basis, by name."""
    function = getattr(policy.features.function, "__name__", "")
    if type(policy.basis).__name__ not in BASES or function not in _NUMBERS:
        raise ValueError(
            f"{policy.basis} cannot be exported: it is no basis of this library; "
            f"{', '.join(BASES)} are"
        )
    kind, numbers = _NUMBERS[function]
    found = numbers(policy.features.parameters, policy.features.input_size)
    return {"kind": kind} | {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in found.items()
    }


def _rbf_grid(parameters: Vector, dimensions: int) -> dict[str, Any]:
    centres: list[list[float]] = []
    widths: list[float] = []
    position = 0
    for _ in range(dimensions):  # the last dimension comes first
        cells = int(parameters[position])
        widths.insert(0, 1.0 / float(parameters[position + 1]))
        centres.insert(0, parameters[position + 4 : position + 4 + cells].tolist())
        position += 4 + 2 * cells
    return {"centres": centres, "widths": widths}


def _rbf_grid_with_angles(parameters: Vector, dimensions: int) -> dict[str, Any]:
    axes: list[tuple[list[float], float, float]] = []
    position = 0
    for _ in range(dimensions):  # the last dimension comes first
        cells, turn, precision = int(parameters[position]), *parameters[position + 1 : position + 3]
        centres = parameters[position + 3 : position + 3 + cells].tolist()
        axes.insert(0, (centres, float(turn), float(precision)))
        position += 3 + cells
    names = ("centres", "turns", "precisions")
    return {name: [axis[i] for axis in axes] for i, name in enumerate(names)}


def _random_fourier(parameters: Vector, dimensions: int) -> dict[str, Any]:
    circles, low, slope = parameters[: 3 * dimensions].reshape(-1, 3).T
    along = dimensions + int(circles.sum())
    frequencies = parameters[3 * dimensions :].reshape(along, -1)
    return {"circles": circles > 0, "low": low, "slope": slope, "frequencies": frequencies}


def _polynomial(parameters: Vector, dimensions: int) -> dict[str, Any]:
    lines = parameters[: 2 * dimensions].reshape(-1, 2)
    products = parameters[2 * dimensions :].astype(np.int64).reshape(-1, 2)
    return {"low": lines[:, 0], "slope": lines[:, 1], "products": products}


def _fourier(parameters: Vector, dimensions: int) -> dict[str, Any]:
    order, low, slope = parameters.reshape(-1, 3).T
    return {"order": order.astype(np.int64), "low": low, "slope": slope}


def _multilinear(parameters: Vector, dimensions: int) -> dict[str, Any]:
    vertices, low, slope, _ = parameters.reshape(-1, 4).T
    return {"vertices": vertices.astype(np.int64), "low": low, "slope": slope}


def _multilinear_with_angles(parameters: Vector, dimensions: int) -> dict[str, Any]:
    kinds = parameters.reshape(-1, 4)[:, 3].astype(np.int64)
    return _multilinear(parameters, dimensions) | {"kinds": kinds}


def _tile_coding(parameters: Vector, dimensions: int) -> dict[str, Any]:
    tiles, low, slope = parameters[2 : 2 + 3 * dimensions].reshape(-1, 3).T
    return {
        "tiles": tiles.astype(np.int64),
        "low": low,
        "slope": slope,
        "active": float(parameters[1]),
        "displacements": parameters[2 + 3 * dimensions :].reshape(-1, dimensions),
    }


def _one_hot(parameters: Vector, dimensions: int) -> dict[str, Any]:
    first, counts = parameters.reshape(-1, 2).T
    return {"first": first, "counts": counts.astype(np.int64)}


#: by the compiled function of the features: the name of their kind, and what takes them apart
_NUMBERS = {
    "_rbf_grid": ("RBFGrid", _rbf_grid),
    "_rbf_grid_with_angles": ("RBFGridWithAngles", _rbf_grid_with_angles),
    "_polynomial": ("Polynomial", _polynomial),
    "_fourier": ("Fourier", _fourier),
    "_random_fourier": ("RandomFourier", _random_fourier),
    "_multilinear": ("Multilinear", _multilinear),
    "_multilinear_with_angles": ("MultilinearWithAngles", _multilinear_with_angles),
    "_tile_coding": ("TileCoding", _tile_coding),
    "_one_hot": ("OneHot", _one_hot),
    "_one_hot_joint": ("OneHotJoint", _one_hot),
}


def _module(model: dict[str, Any]) -> str:
    """The source of a module that acts like the policy."""
    numbers = "\n".join(f"    {name!r}: {value!r}," for name, value in model.items())
    return f"""{inspect.getsource(standalone)}

MODEL: dict[str, Any] = {{
{numbers}
}}

POLICY = StandalonePolicy(MODEL)
act, values, std = POLICY.act, POLICY.values, POLICY.std

if __name__ == "__main__":
    answer_lines(POLICY)
"""
