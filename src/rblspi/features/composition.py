"""A basis is a composition of primitives, which yields compiled features and an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Matrix, Vector
from rblspi.features import primitives
from rblspi.features.base import Features, constant_at

#: header of the parameters: the number of stages, and of the numbers between them
_HEAD = 2
#: header of a stage's parameters: its code, its size, and the number of parameters
_STAGE_HEAD = 3


def composed(
    shape: tuple[int, ...],
    *stages: primitives.Stage,
    one: bool = False,
    constant: Vector | None = None,
) -> Features:
    """Features from stages; the output of each stage is the input of the next.

    Parameters
    ----------
    shape : tuple of int
        Shape of one observation.
    *stages : Stage
    one : bool
        Whether a constant 1 follows the output of the last stage.
    constant : ndarray, optional
        As for `Features`; it need not be given if ``one`` is true.
    """
    between = sum(stage.size for stage in stages[:-1])
    parts: list[Vector] = [np.array([len(stages), between])]
    for stage in stages:
        head = [stage.code, stage.size, len(stage.parameters)]
        parts += [np.array(head, np.float64), stage.parameters]
    size = stages[-1].size + one
    return Features(
        *(_evaluate, np.concatenate(parts).astype(np.float64), size, shape),
        constant=constant_at(-1, size) if one else constant,
        stages=stages,
    )


def emit(features: Features, graph: primitives.Graph, observations: str) -> Callable[[Matrix], str]:
    """Add the features to an ONNX graph: from a matrix M, shape (n, m), to the name of phi(s)'M."""
    x = observations
    for stage in features.stages:
        x = stage.emit(graph, x)
    end = features.stages[-1].size

    def times(matrix: Matrix) -> str:
        found = primitives.product(graph, x, matrix[:end])
        return found if end == features.size else graph("Add", found, matrix[end])

    return times


@jit
def _evaluate(parameters: Vector, observation: Vector, out: Vector) -> None:
    """Write phi(observation): the compiled function of all compositions."""
    between = out
    if parameters[1] > 0.0:
        between = np.empty(int(parameters[1]))
    _run(parameters, observation, between, out)


@jit_borrowing
def _run(parameters: Vector, observation: Vector, between: Vector, out: Vector) -> None:
    """Run the stages in order; ``between`` takes the output of all but the last."""
    stages, position, first, last = int(parameters[0]), _HEAD, 0, 0
    given = observation
    for i in range(stages):
        code, last = int(parameters[position]), int(parameters[position + 1])
        start = position + _STAGE_HEAD
        position = start + int(parameters[position + 2])
        found = out[:last] if i == stages - 1 else between[first : first + last]
        _stage(code, parameters[start:position], given, found)
        first += last
        given = found
    if last < len(out):
        out[last] = 1.0


@jit_borrowing
def _stage(code: int, parameters: Vector, given: Vector, out: Vector) -> None:
    if code == primitives.SCALE:
        primitives.evaluate_scale(parameters, given, out)
    elif code == primitives.GAUSSIANS:
        primitives.evaluate_gaussians(parameters, given, out)
    elif code == primitives.INTERPOLATION:
        primitives.evaluate_interpolation(parameters, given, out)
    elif code == primitives.CELLS:
        primitives.evaluate_cells(parameters, given, out)
    elif code == primitives.COSINES:
        primitives.evaluate_cosines(parameters, given, out)
    elif code == primitives.MONOMIALS:
        primitives.evaluate_monomials(parameters, given, out)
    elif code == primitives.AFFINE:
        primitives.evaluate_affine(parameters, given, out)
    elif code == primitives.WAVES:
        primitives.evaluate_waves(parameters, given, out)
    elif code == primitives.TURNS:
        primitives.evaluate_turns(parameters, given, out)
    elif code == primitives.BUMPS:
        primitives.evaluate_bumps(parameters, given, out)
    elif code == primitives.GAUSSIANS_AT:
        primitives.evaluate_gaussians_at(parameters, given, out)
    elif code == primitives.PRODUCTS:
        primitives.evaluate_products(parameters, given, out)
    elif code == primitives.NORMAL_RECTIFIER:
        primitives.evaluate_normal_rectifier(parameters, given, out)
