"""A policy as an ONNX graph, for ONNX Runtime and whatever else reads such files.

The graph computes in float64. It has an input for every column of a state, as in the log: text for
words, float64 for numbers, each of shape (N,); or one input ``observation`` of shape (N, d) where
states have no names. Its outputs are ``action``, shape (N,), by name if actions have names, or
of the shape of a Box of actions with one row for every state,
``values``, shape (N, actions), and ``std`` if the policy was exported with standard deviations.

Operators cannot raise errors of their own. What a state must not be, an unknown word or a number
that is not finite, is made a place outside of a table, which the runtime refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rblspi.core.archive import printable
from rblspi.core.files import replacing
from rblspi.environments.actions import GridActions
from rblspi.features import BASES
from rblspi.features.composition import emit

if TYPE_CHECKING:
    from rblspi.policies.linear import LinearPolicy
    from rblspi.policies.values import Draws

#: versions of the operators, old enough for runtimes of the last years
OPSETS = {"": 17, "ai.onnx.ml": 3}
#: the version of the file format that came with them
IR_VERSION = 8


def write(policy: LinearPolicy, path: str | PathLike[str], std: bool) -> None:
    """Write a policy as ONNX; with ``std`` also n x n numbers for every action."""
    target = Path(path)
    if target.suffix != ".onnx":
        raise ValueError(f"{path}: a policy is exported as .onnx")
    if std and policy.value_draws is None:
        raise ValueError("std=True: the policy has no draws, and knows no standard deviation")
    if not policy.features.stages:
        raise ValueError(
            f"{policy.basis} cannot be exported: it is no basis of this library; "
            f"{', '.join(BASES)} are"
        )
    content = _content(policy, std)
    with replacing(target) as temporary:
        temporary.write_bytes(content)


def _content(policy: LinearPolicy, std: bool) -> bytes:
    graph = _Graph()
    times = emit(policy.features, graph, _observation(graph, policy))
    scores = graph.named("values", times(policy.weights_by_action.T))
    outputs = ["values"]
    if policy.pessimism and policy.posterior is not None:
        lengths = _lengths(graph, times, np.array(policy.posterior.covariance_factors))
        scores = graph("Sub", scores, graph("Mul", lengths, np.array(policy.pessimism)))
    if std and policy.value_draws is not None:
        outputs.append(graph.named("std", _deviations(graph, times, policy.value_draws)))
    action, kind, shape = _action(graph, policy, scores)
    graph.named("action", action)
    about = {
        "actions": [*(policy.action_names or policy.action_set.listed)],
        "inputs": [] if policy.inputs is None else policy.inputs.plain(),
        "discount": float(policy.discount),
        "algorithm": printable(str(policy.provenance.get("algorithm", ""))),
    }
    return graph.file(outputs, about, kind, shape)


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
        if "to" in attributes:
            attributes["to"] = getattr(self.onnx.TensorProto, attributes["to"])
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
        self, outputs: Sequence[str], about: Mapping[str, Any], kind: str, shape: Sequence[int]
    ) -> bytes:
        """The whole graph, checked, as the bytes of a file with facts about it as metadata."""
        types, helper = self.onnx.TensorProto, self.onnx.helper
        infos = [helper.make_tensor_value_info("action", getattr(types, kind), ["N", *shape])]
        by_action = ["N", len(about["actions"])]
        infos += [helper.make_tensor_value_info(name, types.DOUBLE, by_action) for name in outputs]
        graph = helper.make_graph(self.nodes, "policy", self.inputs, infos, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, producer_name="rblspi")
        made.ir_version = IR_VERSION
        helper.set_model_props(made, {name: json.dumps(value) for name, value in about.items()})
        self.onnx.checker.check_model(made)
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


def _observation(graph: _Graph, policy: LinearPolicy) -> str:
    if policy.inputs is None:
        size = policy.features.input_size
        return _finite(graph, graph.input("observation", "number", size))
    columns, alone = policy.inputs.plain(), len(policy.inputs.inputs) == 1
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
    return graph("Concat", number, graph("Cast", absent, to="DOUBLE"), axis=1)


def _finite(graph: _Graph, numbers: str) -> str:
    """The same numbers; one that is not finite is a place outside of a table with one row."""
    odd = graph("IsNaN", graph("Mul", numbers, np.array(0.0)))
    place = graph("Cast", odd, to="INT64")
    return graph("Add", numbers, graph("Gather", np.zeros(1), place))


# The best action -------------------------------------------------------------------------------


def _action(graph: _Graph, policy: LinearPolicy, scores: str) -> tuple[str, str, tuple[int, ...]]:
    """What the policy takes, with the kind of its values and its shape."""
    best, actions = graph("ArgMax", scores, axis=1, keepdims=0), policy.action_set
    if isinstance(actions, GridActions):
        kind = "FLOAT" if actions.space.dtype == np.float32 else "DOUBLE"
        numbers = graph("Cast", _between(graph, actions, scores, best), to=kind)
        shape = actions.space.shape
        return graph("Reshape", numbers, np.array([-1, *shape])), kind, shape
    if policy.action_names:
        return graph("Gather", np.array(policy.action_names, object), best), "STRING", ()
    return graph("Gather", np.array(actions.listed, np.int64), best), "INT64", ()


def _between(graph: _Graph, actions: GridActions, scores: str, best: str) -> str:
    """`GridActions.best`, in its words, as numbers of shape (N, numbers)."""
    below, above, h1, h2, inner = (graph("Gather", t, best) for t in actions.neighbours)
    middle = graph("ReduceMax", scores, axes=[1], keepdims=1)
    lower, higher = (graph("GatherElements", scores, side, axis=1) for side in (below, above))
    s1 = graph("Div", graph("Sub", middle, lower), h1)
    s2 = graph("Div", graph("Sub", higher, middle), h2)
    bend = graph("Sub", s1, s2)
    inner = graph("And", inner, graph("Greater", bend, np.array(0.0)))
    slope = graph("Add", graph("Mul", h2, s1), graph("Mul", h1, s2))
    half = graph("Mul", np.array(0.5), slope)
    beside = graph("Div", half, graph("Where", inner, bend, np.array(1.0)))
    moved = graph("Where", inner, beside, np.array(0.0))
    found = graph("Add", graph("Gather", actions.points, best), moved)
    return graph("Max", graph("Min", found, actions.high), actions.low)


# Standard deviations ---------------------------------------------------------------------------


def _deviations(graph: _Graph, times: Callable[[NDArray[Any]], str], draws: Draws) -> str:
    """`ActionValues.std` of every action, whose draws are relative to their mean."""
    count, actions, n = draws.deviations.shape
    apart = times(draws.deviations.reshape(count * actions, n).T.astype(np.float64))
    by_draw = graph("Reshape", apart, np.array([0, count, actions]))
    mean = graph("ReduceMean", by_draw, axes=[1], keepdims=1)
    left = graph("Sub", by_draw, mean)
    squares = graph("ReduceSum", graph("Mul", left, left), np.array([1]), keepdims=0)
    variance = graph("Div", squares, np.array(count - 1.0))
    common = times(draws.common[:, None].astype(np.float64))
    return graph("Sqrt", graph("Add", variance, graph("Mul", common, common)))


def _lengths(graph: _Graph, times: Callable[[NDArray[Any]], str], factors: NDArray[Any]) -> str:
    """|T_a x| for every action, from the matrices T_a, shape (actions, n, n)."""
    actions, n, _ = factors.shape
    whitened = times(factors.reshape(actions * n, n).T)
    by_action = graph("Reshape", whitened, np.array([0, actions, n]))
    squares = graph("ReduceSum", graph("Mul", by_action, by_action), np.array([2]), keepdims=0)
    return graph("Sqrt", squares)
