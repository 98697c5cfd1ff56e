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
from rblspi.features import primitives as p
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

        content = onnx_file(policy, bool(policy.pessimism) if std is None else std)
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
        "basis_std": 0.0,
        "discount": float(policy.discount),
        "algorithm": printable(str(policy.provenance.get("algorithm", ""))),
    }


def basis_numbers(policy: LinearPolicy) -> dict[str, Any]:
    """The numbers of the basis, by name."""
    stages = policy.features.stages
    if not stages:
        raise ValueError(
            f"{policy.basis} cannot be exported: it is no basis of this library; "
            f"{', '.join(BASES)} are"
        )
    kind, found = _numbers([stage.code for stage in stages], [s.parameters for s in stages])
    return {"kind": kind} | {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in found.items()
    }


def _numbers(codes: list[int], parameters: list[Vector]) -> tuple[str, dict[str, Any]]:
    last = parameters[-1]
    low, slope = parameters[0].reshape(-1, 4).T[:2] if codes[0] == p.SCALE else (last, last)
    line = {"low": low, "slope": slope}
    if codes[-1] == p.GAUSSIANS:
        return "RBFGrid", _rbf_grid(last)
    if codes[-1] == p.PRODUCTS:
        return "RBFGridWithAngles", _rbf_grid_with_angles(parameters[0])
    if codes[-1] == p.MONOMIALS:
        return "Polynomial", line | {"products": last.astype(np.int64).reshape(-1, 2)}
    if codes[-1] == p.COSINES:
        return "Fourier", line | {"order": last.astype(np.int64)}
    if codes[-1] == p.WAVES:
        matrix = parameters[2].reshape(-1, len(parameters[2]) // (1 + _rows(parameters[1])))[1:]
        return "RandomFourier", line | {"circles": parameters[1] > 0, "frequencies": matrix}
    if codes[-1] == p.INTERPOLATION:
        vertices, low, slope, kinds = last.reshape(-1, 4).T
        grid = {"vertices": vertices.astype(np.int64), "low": low, "slope": slope}
        if kinds.any():
            return "MultilinearWithAngles", grid | {"kinds": kinds.astype(np.int64)}
        return "Multilinear", grid
    if codes[-1] == p.TILES:
        tiles = last[2 : 2 + len(line["low"])]
        moves = last[2 + len(tiles) :].reshape(-1, len(tiles))
        return "TileCoding", line | {
            "tiles": tiles.astype(np.int64),
            "active": float(last[1]),
            "displacements": moves,
        }
    kind = "OneHotJoint" if p.COMBINATION in codes else "OneHot"
    return kind, {"first": low, "counts": parameters[1].astype(np.int64)}


def _rows(circular: Vector) -> int:
    return len(circular) + int(circular.sum())


def _rbf_grid(parameters: Vector) -> dict[str, Any]:
    centres: list[list[float]] = []
    widths: list[float] = []
    position = 0
    while position < len(parameters):  # the last dimension comes first
        cells = int(parameters[position])
        widths.insert(0, 1.0 / float(parameters[position + 1]))
        centres.insert(0, parameters[position + 4 : position + 4 + cells].tolist())
        position += 4 + 2 * cells
    return {"centres": centres, "widths": widths}


def _rbf_grid_with_angles(parameters: Vector) -> dict[str, Any]:
    axes: list[tuple[list[float], float, float]] = []
    position = 0
    while position < len(parameters):
        cells, turn, precision = int(parameters[position]), *parameters[position + 1 : position + 3]
        centres = parameters[position + 3 : position + 3 + cells].tolist()
        axes.append((centres, float(turn), float(precision)))
        position += 3 + cells
    names = ("centres", "turns", "precisions")
    return {name: [axis[i] for axis in axes] for i, name in enumerate(names)}


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
