"""The numbers on the page: from them it computes what a policy says at any point."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.progress import say
from rblspi.core.types import Matrix, Vector
from rblspi.features import BASES
from rblspi.features import primitives as p
from rblspi.plotting.domain import Domain
from rblspi.plotting.maps import action_colours, ask
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import LITTLE_KNOWN, ValuePosterior

#: pixels along the side of a map, at the most
FINEST = 61
#: multiplications for a map: a tenth of a second in a browser, so that sliders are followed
MULTIPLICATIONS = 1e8
#: pixels along the side of a map, at the least
COARSEST = 15
#: points along the line of a single dimension
POINTS = 241
#: the largest size of what standard deviations need; the plotting library takes 2 MB
MOST_MEGABYTES = 20.0
#: observations that show where the data are
MOST_DATA = 1500


def page_numbers(values: ValuePosterior, domain: Domain) -> dict[str, Any]:
    """Everything that the scripts of the page need, as data for JSON."""
    listed = len(domain.names) == 1 or domain.grid is not None
    rng = np.random.default_rng(0)
    seen = domain.data
    if len(seen) > MOST_DATA:
        seen = seen[rng.choice(len(seen), MOST_DATA, replace=False)]
    if domain.whole:  # so that observations in one place do not hide each other
        seen = seen + rng.uniform(-0.35, 0.35, seen.shape)
    return {
        "names": domain.names,
        "actions": domain.actions,
        "colours": action_colours(len(domain.actions)),
        "low": domain.low.tolist(),
        "high": domain.high.tolist(),
        "point": domain.point.tolist(),
        "whole": domain.whole,
        "grid": domain.grid,
        "resolution": _resolution(values),
        "episodes": [_encoded(path, np.float32) for path in domain.episodes],
        "data": _encoded(seen, np.float32),
        "values": {
            "limits": np.nan_to_num(values.limits).tolist(),  # JSON has no infinity
            **(_listed_values(values, domain) if listed else _linear_values(values)),
        },
    }


def line_points(domain: Domain) -> Matrix:
    """Coordinates along the line of a domain of one dimension, shape (N, 1)."""
    (low,), (high,) = domain.low, domain.high
    count = int(high - low) + 1 if domain.whole else POINTS
    return np.linspace(low, high, count)[:, None]


def _listed_values(values: ValuePosterior, domain: Domain) -> dict[str, Any]:
    """What the policy says along a line, or in every cell of a grid."""
    if domain.grid is None:
        points = line_points(domain)
        counts, step = [len(points)], (points[1] - points[0]).tolist()
    else:
        rows, columns = domain.grid
        x, y = np.meshgrid(np.arange(columns), np.arange(rows))
        points = np.column_stack([x.ravel(), y.ravel()]).astype(np.float64)
        counts, step = [columns, rows], [1.0, 1.0]
    mean, std, chosen, unknown = ask(values, domain, points)
    return {
        "first": points[0].tolist(),
        "step": step,
        "counts": counts,
        "actions": values.policy.actions,
        "mean": _encoded(mean, np.float64),
        "std": None if std is None else _encoded(std, np.float64),
        "policy": _encoded(chosen, np.int32),
        "unknown": None if unknown is None else _encoded(unknown, np.uint8),
    }


def _linear_values(values: ValuePosterior) -> dict[str, Any]:
    """The features, their weights, and the factors T of the covariance, S_aa = T'T.

    The page computes phi'm and |T phi|. T is an upper triangle; single precision suffices for a
    standard deviation.
    """
    policy, posterior, n = values.policy, values.posterior, values.features.size
    megabytes = policy.actions * n * (n + 1) / 2 * 4 * 4 / 3 / 1e6
    if posterior is not None and megabytes > MOST_MEGABYTES and not policy.pessimism:
        say(
            f"the page leaves out standard deviations: for {n} features and {policy.actions} "
            f"actions they would take {megabytes:.0f} MB. A coarser basis has them"
        )
        posterior = None
    upper = np.triu_indices(n)
    return {
        "basis": basis_numbers(policy if values.basis is None else replace_basis(values)),
        "actions": policy.actions,
        "acting": _encoded(
            policy.weights if posterior is None or values.basis is None else posterior.mean,
            np.float64,
        ),
        "plan": None
        if values.basis is None
        else {"basis": basis_numbers(policy), "weights": _encoded(policy.weights, np.float64)},
        "weights": _encoded(
            policy.weights if values.posterior is None else values.posterior.weights, np.float64
        ),
        "triangles": None
        if posterior is None
        else _encoded(np.array([t[upper] for t in posterior.covariance_factors]), np.float32),
        "basis_std": float(values.basis_std),
        "prior_std": 0.0 if posterior is None else float(posterior.prior_precision) ** -0.5,
        "most_std": float(np.nan_to_num((values.limits[1] - values.limits[0]) / 12.0**0.5)),
        "threshold": LITTLE_KNOWN,
        "pessimism": float(policy.pessimism),
    }


def replace_basis(values: ValuePosterior) -> LinearPolicy:
    """A policy in the basis of the values."""
    assert values.basis is not None
    assert values.posterior is not None
    return replace(
        values.policy,
        basis=values.basis,
        features=values.features,
        weights=values.posterior.mean,
        posterior=None,
        pessimism=0.0,
    )


def _resolution(policy: ValuePosterior) -> int:
    """Pixels along the side of a map; one costs about n^2 / 2 multiplications."""
    cost = policy.features.size * policy.policy.actions
    if policy.posterior is not None:
        cost += policy.features.size**2 // 2
    return int(np.clip((MULTIPLICATIONS / cost) ** 0.5, COARSEST, FINEST))


def _encoded(numbers: Any, kind: Any) -> str:
    """Numbers in base64, in the order of bytes that browsers have."""
    array: NDArray[Any] = np.ascontiguousarray(numbers).astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(array.tobytes()).decode()


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
    grids, dimensions, active, clipped = (float(number) for number in last[:4])
    rows = last[4:].reshape(int(grids), -1)[:, 1:].reshape(int(grids), int(dimensions), 2)
    counts = rows[:, :, 0].astype(np.int64)
    if clipped:
        return "TileCoding", line | {
            "tiles": counts[0],
            "active": active,
            "displacements": rows[:, :, 1],
        }
    kind = "OneHotJoint" if grids == 1 and dimensions > 1 else "OneHot"
    return kind, {"first": low, "counts": counts.ravel()}


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
