"""A policy as an ONNX graph, for ONNX Runtime and whatever else reads such files.

The graph computes in float64. It has an input for every column of a state, as in the log: text for
words, float64 for numbers, each of shape (N,); or one input ``observation`` of shape (N, d) where
states have no names. Its outputs are ``action``, shape (N,), by name if actions have names,
``values``, shape (N, actions), and ``std`` if the policy was exported with standard deviations.

Operators cannot raise errors of their own. What a state must not be, an unknown word or a number
that is not finite, is made a place outside of a table, which the runtime refuses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: versions of the operators, old enough for runtimes of the last years
OPSETS = {"": 17, "ai.onnx.ml": 3}
#: the version of the file format that came with them
IR_VERSION = 8

#: from a matrix (n, m) to the name of phi(s)'M, shape (N, m)
Product = Callable[[NDArray[Any]], str]


def onnx_file(model: Mapping[str, Any]) -> bytes:
    """The bytes of an ONNX file, made of what ``policy.json`` holds."""
    onnx = _onnx()
    graph = _Graph()
    product = _PRODUCTS[model["basis"]["kind"]](graph, model["basis"], _observation(graph, model))
    scores = values = product(np.array(model["weights"]).T)
    outputs = {"values": graph.named("values", values)}
    if model["deviations"] is not None:
        lengths = _lengths(graph, product, np.array(model["deviations"]))
        squares = graph("Add", graph("Mul", lengths, lengths), np.square([model["basis_std"]]))
        outputs["std"] = graph.named("std", graph("Sqrt", squares))
        if model["pessimism"]:
            scores = graph("Sub", values, graph("Mul", lengths, np.array(model["pessimism"])))
    best = graph("ArgMax", scores, axis=1, keepdims=0)
    words = any(isinstance(action, str) for action in model["actions"])
    actions = np.array(model["actions"], object if words else np.int64)
    outputs["action"] = graph.named("action", graph("Gather", actions, best))
    return graph.file(onnx, outputs, model, words)


class _Graph:
    """Nodes, in the order in which they compute, and the constants that they need."""

    def __init__(self) -> None:
        self.onnx = _onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def __call__(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node; arrays among its inputs become constants. Returns the name of its output."""
        names = [name if isinstance(name, str) else self._constant(name) for name in inputs]
        out = f"{operator.lower()}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, names, [out], domain=domain, **attributes)
        self.nodes.append(node)
        return out

    def named(self, name: str, value: str) -> str:
        """Give a name to a value."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        return name

    def input(self, name: str, kind: str, *shape: int) -> str:
        """An input of the graph with a row for every state."""
        types = self.onnx.TensorProto
        kinds = {"text": types.STRING, "number": types.DOUBLE}
        info = self.onnx.helper.make_tensor_value_info(name, kinds[kind], ["N", *shape])
        self.inputs.append(info)
        return name

    def _constant(self, array: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def file(
        self, onnx: Any, outputs: Mapping[str, str], model: Mapping[str, Any], words: bool
    ) -> bytes:
        """The whole graph, checked, as the bytes of a file."""
        types, helper = onnx.TensorProto, onnx.helper
        count = len(model["actions"])
        infos = [
            helper.make_tensor_value_info(name, types.DOUBLE, ["N", count])
            for name in outputs
            if name != "action"
        ]
        kind = types.STRING if words else types.INT64
        infos.insert(0, helper.make_tensor_value_info("action", kind, ["N"]))
        graph = helper.make_graph(self.nodes, "policy", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, producer_name="rblspi")
        made.ir_version = IR_VERSION
        about = {name: model[name] for name in ("actions", "inputs", "discount", "algorithm")}
        helper.set_model_props(made, {k: json.dumps(v) for k, v in about.items()})
        onnx.checker.check_model(made)
        return bytes(made.SerializeToString())


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError('ONNX files need onnx: pip install "rblspi[onnx]"') from error
    return onnx


# From the columns of a state to an observation (N, d) ------------------------------------------


def _observation(graph: _Graph, model: Mapping[str, Any]) -> str:
    columns = model["inputs"]
    if not columns:
        return _finite(graph, graph.input("observation", "number", model["observation_size"]))
    alone = len(columns) == 1
    parts = [_words(graph, c, alone) if c["words"] else _numbers(graph, c) for c in columns]
    return parts[0] if alone else graph("Concat", *parts, axis=1)


def _words(graph: _Graph, column: Mapping[str, Any], alone: bool) -> str:
    """One indicator for every word, and one for a missing word, which is an empty text."""
    words, fill = list(column["words"]), column["fill"]
    rows = np.arange(float(len(words)))[:, None] if alone and fill is None else np.eye(len(words))
    if fill is not None:
        words, rows = [*words, ""], np.eye(len(words) + 1)
    places = graph(
        *("LabelEncoder", graph.input(column["name"], "text")),
        domain="ai.onnx.ml",
        keys_strings=words,
        values_int64s=list(range(len(words))),
        default_int64=len(words),  # outside of the table
    )
    return graph("Gather", rows, places)


def _numbers(graph: _Graph, column: Mapping[str, Any]) -> str:
    """A number; if it may be missing, which is NaN, also an indicator of that."""
    given = graph("Unsqueeze", graph.input(column["name"], "number"), np.array([1]))
    if column["fill"] is None:
        return _finite(graph, given)
    absent = graph("IsNaN", given)
    number = _finite(graph, graph("Where", absent, np.array(column["fill"]), given))
    return graph("Concat", number, graph("Cast", absent, to=graph.onnx.TensorProto.DOUBLE), axis=1)


def _finite(graph: _Graph, numbers: str) -> str:
    """The same numbers; one that is not finite is a place outside of a table with one row."""
    odd = graph("IsNaN", graph("Mul", numbers, np.array(0.0)))
    place = graph("Cast", odd, to=graph.onnx.TensorProto.INT64)
    return graph("Add", numbers, graph("Gather", np.zeros(1), place))


# From an observation u to features, and to products with them ----------------------------------


def _dense(graph: _Graph, features: str) -> Product:
    return lambda matrix: graph("MatMul", features, matrix)


def _sparse(graph: _Graph, places: str, scale: NDArray[Any], last: int | None = None) -> Product:
    """Sums of the rows at ``places``, shape (N, K); behind the last row, there is one of zeros."""

    def product(matrix: NDArray[Any]) -> str:
        rows = np.concatenate([scale[:, None] * matrix, np.zeros((1, matrix.shape[1]))])
        total = graph("ReduceSum", graph("Gather", rows, places), np.array([1]), keepdims=0)
        return total if last is None else graph("Add", total, matrix[last])

    return product


def _ones(graph: _Graph, u: str) -> str:
    """A column of ones, shape (N, 1)."""
    first = graph("Gather", u, np.array([0]), axis=1)
    return graph("Add", graph("Mul", first, np.array(0.0)), np.array(1.0))


def _rbf_grid(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    lines = [
        (c, 0.0, width**-2) for c, width in zip(basis["centres"], basis["widths"], strict=True)
    ]
    return _gaussians(graph, lines, u)


def _rbf_grid_with_angles(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    axes = zip(basis["centres"], basis["turns"], basis["precisions"], strict=True)
    return _gaussians(graph, list(axes), u)


def _gaussians(graph: _Graph, axes: Sequence[tuple[Any, float, float]], u: str) -> Product:
    """Products of Gaussians over a grid, on lines (turn 0) and on circles; then 1."""
    grid, size = _ones(graph, u), 1
    for d, (centres, turn, precision) in enumerate(axes):
        away = graph("Sub", graph("Gather", u, np.array([d]), axis=1), np.array([centres]))
        if turn:
            cosine = graph("Cos", graph("Mul", away, np.array(turn)))
            exponent = graph("Mul", graph("Sub", cosine, np.array(1.0)), np.array(precision))
        else:
            exponent = graph("Mul", graph("Mul", away, away), np.array(-0.5 * precision))
        size *= len(centres)
        grid = _products(graph, grid, graph("Exp", exponent), size)
    return _dense(graph, graph("Concat", grid, _ones(graph, u), axis=1))


def _products(graph: _Graph, grid: str, near: str, size: int) -> str:
    """All products of a number of one and a number of the other, the latter varying fastest."""
    pairs = (graph("Unsqueeze", grid, np.array([2])), graph("Unsqueeze", near, np.array([1])))
    return graph("Reshape", graph("Mul", *pairs), np.array([0, size]))


def _multilinear(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    return _hats(graph, basis, np.zeros(len(basis["low"])), u)


def _multilinear_with_angles(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    if 2 in basis["kinds"]:
        raise ValueError(
            "its grid has the angles of pairs of cosine and sine, and ONNX Runtime has no arc "
            "tangent in float64: export the policy as .py or .json"
        )
    return _hats(graph, basis, np.array(basis["kinds"]), u)


def _hats(graph: _Graph, basis: Mapping[str, Any], kinds: NDArray[Any], u: str) -> Product:
    """Products of hat functions over a grid, on lines (kind 0) and around circles."""
    line = graph("Mul", graph("Sub", u, np.array(basis["low"])), np.array(basis["slope"]))
    counts = np.array(basis["vertices"])
    v = graph("Min", graph("Max", line, np.array(0.0)), counts - 1.0)
    grid, size = _ones(graph, u), 1
    for d, count in enumerate(counts):
        circle = bool(kinds[d])
        along = graph("Gather", line if circle else v, np.array([d]), axis=1)
        away = graph("Sub", along, np.arange(float(count)))
        if circle:  # the shorter way around it
            turns = graph("Round", graph("Mul", away, np.array(1.0 / count)))
            away = graph("Sub", away, graph("Mul", turns, np.array(float(count))))
        near = graph("Max", graph("Sub", np.array(1.0), graph("Abs", away)), np.array(0.0))
        size *= int(count)
        grid = _products(graph, grid, near, size)
    return _dense(graph, grid)


def _polynomial(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    line = graph("Mul", graph("Sub", u, np.array(basis["low"])), np.array(basis["slope"]))
    out = graph("Concat", _ones(graph, u), line, axis=1)
    size, products = 1 + len(basis["low"]), np.array(basis["products"], np.int64).reshape(-1, 2)
    while len(products):  # as many as are made of features that are there already
        there = (products < size).all(axis=1)
        count = len(products) if there.all() else int(there.argmin())
        factors = (graph("Gather", out, column, axis=1) for column in products[:count].T)
        out = graph("Concat", out, graph("Mul", *factors), axis=1)
        size, products = size + count, products[count:]
    return _dense(graph, out)


def _fourier(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    line = graph("Mul", graph("Sub", u, np.array(basis["low"])), np.array(basis["slope"]))
    v = graph("Min", graph("Max", line, np.array(0.0)), np.array(1.0))
    counts = [int(order) + 1 for order in basis["order"]]
    frequencies = np.indices(counts).reshape(len(counts), -1).astype(np.float64)
    return _dense(graph, graph("Cos", graph("MatMul", v, math.pi * frequencies)))


def _random_fourier(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    line = graph("Mul", graph("Sub", u, np.array(basis["low"])), np.array(basis["slope"]))
    parts, turn = [], 2.0 * math.pi
    for d, circle in enumerate(basis["circles"]):
        place = graph("Gather", line, np.array([d]), axis=1)
        angle = graph("Mul", place, np.array(turn))
        ring = [graph("Div", graph(wave, angle), np.array(turn)) for wave in ("Cos", "Sin")]
        parts += ring if circle else [place]
    frequencies = np.array(basis["frequencies"])
    phases = graph("MatMul", graph("Concat", *parts, axis=1), frequencies)
    scale = np.array(frequencies.shape[1] ** -0.5)
    waves = [graph("Mul", graph(wave, phases), scale) for wave in ("Cos", "Sin")]
    return _dense(graph, graph("Concat", *waves, _ones(graph, u), axis=1))


def _tile_coding(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    tiles, moves = np.array(basis["tiles"]), np.array(basis["displacements"])
    size, last = int(tiles.prod()), int(tiles.prod()) * len(moves)
    line = graph("Mul", graph("Sub", u, np.array(basis["low"])), np.array(basis["slope"]))
    moved = graph("Add", graph("Unsqueeze", line, np.array([1])), moves)  # (N, tilings, d)
    place = graph("Min", graph("Max", moved, np.array(0.0)), tiles - 1.0)
    strides = np.append(np.cumprod(tiles[:0:-1])[::-1], 1).astype(np.float64)
    index = graph(
        "ReduceSum", graph("Mul", graph("Floor", place), strides), np.array([2]), keepdims=0
    )
    offset = graph("Add", index, size * np.arange(float(len(moves))))
    scale = np.full(last + 1, basis["active"])
    return _sparse(graph, graph("Cast", offset, to=graph.onnx.TensorProto.INT64), scale, last)


def _one_hot(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    counts = np.array(basis["counts"], np.float64)
    starts, total = np.cumsum(counts) - counts, int(counts.sum())
    value = graph("Sub", u, np.array(basis["first"], np.float64))
    inside = graph("And", graph("GreaterOrEqual", value, np.zeros(1)), graph("Less", value, counts))
    place = graph(
        "Where", inside, graph("Add", graph("Floor", value), starts), np.array(float(total))
    )
    indices = graph("Cast", place, to=graph.onnx.TensorProto.INT64)
    return _sparse(graph, indices, np.ones(total))


def _one_hot_joint(graph: _Graph, basis: Mapping[str, Any], u: str) -> Product:
    counts = np.array(basis["counts"], np.float64)
    total, strides = int(counts.prod()), np.append(np.cumprod(counts[:0:-1])[::-1], 1.0)
    value = graph("Sub", u, np.array(basis["first"], np.float64))
    inside = graph("And", graph("GreaterOrEqual", value, np.zeros(1)), graph("Less", value, counts))
    numbers = graph("Cast", inside, to=graph.onnx.TensorProto.DOUBLE)
    all_inside = graph("ReduceMin", numbers, axes=[1], keepdims=1)
    steps = graph("Mul", graph("Floor", value), strides)
    place = graph("ReduceSum", steps, np.array([1]), keepdims=1)
    known = graph("Cast", all_inside, to=graph.onnx.TensorProto.BOOL)
    places = graph("Where", known, place, np.array(float(total)))
    indices = graph("Cast", places, to=graph.onnx.TensorProto.INT64)
    return _sparse(graph, indices, np.ones(total))


_PRODUCTS: dict[str, Callable[[_Graph, Mapping[str, Any], str], Product]] = {
    "RBFGrid": _rbf_grid,
    "RBFGridWithAngles": _rbf_grid_with_angles,
    "Polynomial": _polynomial,
    "Fourier": _fourier,
    "RandomFourier": _random_fourier,
    "Multilinear": _multilinear,
    "MultilinearWithAngles": _multilinear_with_angles,
    "TileCoding": _tile_coding,
    "OneHot": _one_hot,
    "OneHotJoint": _one_hot_joint,
}


def _lengths(graph: _Graph, product: Product, deviations: NDArray[Any]) -> str:
    """|T_a x| for every action, from the matrices T_a, shape (actions, n, n)."""
    actions, n, _ = deviations.shape
    whitened = product(deviations.reshape(actions * n, n).T)
    by_action = graph("Reshape", whitened, np.array([0, actions, n]))
    squares = graph("ReduceSum", graph("Mul", by_action, by_action), np.array([2]), keepdims=0)
    return graph("Sqrt", squares)
