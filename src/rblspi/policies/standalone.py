"""A policy that needs nothing but Python: it acts by numbers that are written in a file.

An exported module is this file with its numbers below it. It says what it would do from Python,

    import policy
    policy.act({"stock": 3, "weekday": "Mon"})     # the best action, by its name if it has one
    policy.values({"stock": 3, "weekday": "Mon"})  # what every action is worth

and to any other program, which writes states as JSON, one in a line, and reads the actions:

    python policy.py < states.jsonl
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Any

#: the version of the numbers that this file understands
VERSION = 1


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum(map(mul, one, other)))


dot: Callable[[Sequence[float], Sequence[float]], float] = getattr(math, "sumprod", _dot)


class StandalonePolicy:
    """Acts by action values that are linear in features of the state.

    Parameters
    ----------
    model : mapping
        What ``policy.json`` holds.
    """

    def __init__(self, model: Mapping[str, Any]) -> None:
        if model.get("format") != "rblspi-policy-json" or model.get("version") != VERSION:
            raise ValueError("this is not a policy that rblspi exported, or of another version")
        self.actions: list[Any] = list(model["actions"])
        self.weights: list[list[float]] = model["weights"]
        self.inputs: list[dict[str, Any]] = model["inputs"]
        self.size: int = model["observation_size"]
        self.pessimism: float = model["pessimism"]
        self.deviations: list[list[list[float]]] | None = model["deviations"]
        basis = model["basis"]
        self._features: Callable[[Sequence[float]], list[float]] | None = None
        self._active: Callable[[Sequence[float]], dict[int, float]] | None = None
        if basis["kind"] in SPARSE:
            self._active = SPARSE[basis["kind"]](basis)
        else:
            self._features = DENSE[basis["kind"]](basis)

    def act(self, state: Any) -> Any:
        """The action of the highest value, or of the highest lower bound of a careful policy."""
        values = self.values(state)
        if self.pessimism:
            deviations = self.std(state)
            values = [v - self.pessimism * d for v, d in zip(values, deviations, strict=True)]
        return self.actions[values.index(max(values))]

    def values(self, state: Any) -> list[float]:
        """What every action is worth in a state."""
        observation = self.observation(state)
        if self._active is not None:
            active = self._active(observation).items()
            return [sum([w[i] * x for i, x in active]) for w in self.weights]
        assert self._features is not None
        features = self._features(observation)
        return [dot(w, features) for w in self.weights]

    def std(self, state: Any) -> list[float]:
        """The standard deviation of every value."""
        if self.deviations is None:
            raise ValueError("the policy was exported without standard deviations")
        x = self.features(state)
        return [math.sqrt(sum([dot(row, x) ** 2 for row in rows])) for rows in self.deviations]

    def features(self, state: Any) -> list[float]:
        """phi(s)."""
        observation = self.observation(state)
        if self._features is not None:
            return self._features(observation)
        assert self._active is not None
        active = self._active(observation)
        return [active.get(i, 0.0) for i in range(len(self.weights[0]))]

    def observation(self, state: Any) -> list[float]:
        """The numbers of a state: a mapping, a sequence of values, or a single value."""
        if not self.inputs:
            numbers = [float(value) for value in _values(state)]
        else:
            numbers = []
            values = _values(state, [each["name"] for each in self.inputs])
            if len(values) != len(self.inputs):
                raise ValueError(f"a state has {len(self.inputs)} values, not {len(values)}")
            for each, value in zip(self.inputs, values, strict=True):
                numbers += _encoded(each, value, alone=len(self.inputs) == 1)
        if len(numbers) != self.size or not all(map(math.isfinite, numbers)):
            raise ValueError(f"{state!r} is not a state of {self.size} finite numbers")
        return numbers


def _values(state: Any, names: Sequence[str] = ()) -> list[Any]:
    if isinstance(state, Mapping):
        absent = [name for name in names if name not in state]
        if absent or not names:
            raise ValueError(f"the state has no {absent[0]!r}" if names else "states have no names")
        return [state[name] for name in names]
    if isinstance(state, str) or not hasattr(state, "__iter__"):
        return [state]
    return list(state)


def _encoded(each: Mapping[str, Any], value: Any, alone: bool) -> list[float]:
    """The numbers of one column: a number, or an indicator for every word."""
    text = str(value).strip()
    words = each["words"]
    absent = value is None or text == "" or (text not in words and text.lower() in MISSING)
    if absent and each["fill"] is None:
        raise ValueError(f"{each['name']} is missing: give a value")
    if words:
        if isinstance(value, float) and value.is_integer():
            text = str(int(value))
        if text not in words and not absent:
            raise ValueError(f"{each['name']}={value!r} is none of {', '.join(words)}")
        if alone and each["fill"] is None:
            return [float(words.index(text))]
        numbers = [float(word == text and not absent) for word in words]
    else:
        try:
            numbers = [each["fill"] if absent else float(value)]
        except (TypeError, ValueError):
            raise ValueError(f"{each['name']}={value!r} must be a number") from None
    return numbers if each["fill"] is None else [*numbers, float(absent)]


MISSING = ("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")


# Features: functions of an observation u, made of the numbers of a basis -----------------------


def rbf_grid(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """Products of exp(-((u_d - c) / width_d)^2 / 2) over a grid, the last d fastest; then 1."""
    axes = [
        (centres, -0.5 / (width * width))
        for centres, width in zip(basis["centres"], basis["widths"], strict=True)
    ]

    def features(u: Sequence[float]) -> list[float]:
        grid = [1.0]
        for value, (centres, factor) in zip(u, axes, strict=True):
            near = [math.exp(factor * (value - centre) ** 2) for centre in centres]
            grid = [one * other for one in grid for other in near]
        grid.append(1.0)
        return grid

    return features


def polynomial(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """1, then (u_d - low_d) * slope_d, then products of two earlier features."""
    lines = list(zip(basis["low"], basis["slope"], strict=True))
    products = [(int(i), int(j)) for i, j in basis["products"]]

    def features(u: Sequence[float]) -> list[float]:
        out = [1.0]
        out += [(value - low) * slope for value, (low, slope) in zip(u, lines, strict=True)]
        for i, j in products:
            out.append(out[i] * out[j])
        return out

    return features


def fourier(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """cos(pi c . v), v_d = (u_d - low_d) * slope_d within [0, 1], for all c; the last d fastest."""
    lines = list(zip(basis["order"], basis["low"], basis["slope"], strict=True))

    def features(u: Sequence[float]) -> list[float]:
        angles = [0.0]
        for value, (order, low, slope) in zip(u, lines, strict=True):
            step = math.pi * min(max((value - low) * slope, 0.0), 1.0)
            angles = [angle + c * step for angle in angles for c in range(int(order) + 1)]
        return [math.cos(angle) for angle in angles]

    return features


def tile_coding(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], dict[int, float]]:
    """One active tile in every tiling, then 1; the tiles of a tiling follow the last d fastest."""
    lines = list(zip(basis["tiles"], basis["low"], basis["slope"], strict=True))
    size, active = math.prod(int(tiles) for tiles in basis["tiles"]), basis["active"]
    displacements = basis["displacements"]
    last = size * len(displacements)

    def features(u: Sequence[float]) -> dict[int, float]:
        found = {last: 1.0}
        for tiling, moved in enumerate(displacements):
            index = 0
            for value, (tiles, low, slope), move in zip(u, lines, moved, strict=True):
                place = int(min(max((value - low) * slope + move, 0.0), tiles - 1))
                index = index * int(tiles) + place
            found[tiling * size + index] = active
        return found

    return features


def one_hot(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], dict[int, float]]:
    """An indicator of every value first_d, first_d + 1, ... of every component."""
    lines = list(zip(basis["first"], basis["counts"], strict=True))

    def features(u: Sequence[float]) -> dict[int, float]:
        found, start = {}, 0
        for value, (first, count) in zip(u, lines, strict=True):
            if 0.0 <= value - first < count:
                found[start + int(value - first)] = 1.0
            start += int(count)
        return found

    return features


DENSE: dict[str, Callable[[Mapping[str, Any]], Callable[[Sequence[float]], list[float]]]] = {
    "RBFGrid": rbf_grid,
    "Polynomial": polynomial,
    "Fourier": fourier,
}
SPARSE: dict[str, Callable[[Mapping[str, Any]], Callable[[Sequence[float]], dict[int, float]]]] = {
    "TileCoding": tile_coding,
    "OneHot": one_hot,
}


def answer_lines(policy: StandalonePolicy) -> None:
    """Read states from the standard input, and write an action for each of them."""
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(policy.act(json.loads(line))), flush=True)
