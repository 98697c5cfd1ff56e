"""A policy that needs nothing but Python: it acts by numbers that are written in a file.

An exported module is this file with its numbers below it. It says what it would do from Python,

    import policy
    policy.act({"stock": 3, "weekday": "Mon"})     # the best action, by its name if it has one
    policy.values({"stock": 3, "weekday": "Mon"})  # what every action is worth

and to any other program, which writes states as JSON, one in a line, and reads the actions:

    python policy.py < states.jsonl

Where NumPy is installed, values in many features are computed with it, which takes less time.
"""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from operator import add, mul
from typing import Any

#: the version of the numbers that this file understands
VERSION = 1
#: weights from which on values take less time with NumPy than with lists
MANY_WEIGHTS = 40


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum(map(mul, one, other)))


dot: Callable[[Sequence[float], Sequence[float]], float] = getattr(math, "sumprod", _dot)

#: the places of the features that are not 0, as a function of an observation; their values there
Sparse = tuple[Callable[[Sequence[float]], list[int]], list[float]]


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
        self.basis_std: float = model.get("basis_std", 0.0)
        self.names: list[str] = [each["name"] for each in self.inputs]
        alone = len(self.inputs) == 1
        self._encoders = [_encoder(each, alone) for each in self.inputs]
        self.algorithm: str = model.get("algorithm", "")
        basis = model["basis"]
        self.kind: str = basis["kind"]
        self._dense: Callable[[Sequence[float]], list[float]] | None = None
        self._fast: Callable[[Sequence[float]], list[float]] | None = None
        if basis["kind"] in DENSE:
            self._dense = DENSE[basis["kind"]](basis)
            if basis["kind"] in LINEAR and sum(map(len, self.weights)) >= MANY_WEIGHTS:
                self._fast = _with_numpy(self.weights, *LINEAR[basis["kind"]](basis))
        else:
            self._places, self._scale = SPARSE[basis["kind"]](basis)
            scaled = [list(map(mul, w, self._scale)) for w in self.weights]
            self._weight_at = [w.__getitem__ for w in scaled]

    def act(self, state: Any) -> Any:
        """The action of the highest value, or of the highest lower bound of a careful policy."""
        values = self.values(state)
        if self.pessimism:
            lengths = self._lengths(state)
            values = [v - self.pessimism * d for v, d in zip(values, lengths, strict=True)]
        return self.actions[values.index(max(values))]

    def values(self, state: Any) -> list[float]:
        """What every action is worth in a state."""
        observation = self.observation(state)
        if self._fast is not None:
            found = self._fast(observation)
        elif self._dense is None:
            places = self._places(observation)
            found = [sum(map(weight_at, places)) for weight_at in self._weight_at]
        else:
            features = self._dense(observation)
            found = [dot(w, features) for w in self.weights]
        if not isfinite(sum(found)):
            raise ValueError(f"{_short(state)} is too far away: values overflow")
        return found

    def std(self, state: Any) -> list[float]:
        """The standard deviation of every value."""
        return [math.hypot(length, self.basis_std) for length in self._lengths(state)]

    def _lengths(self, state: Any) -> list[float]:
        """The standard deviation of every value by the posterior, |T_a x|."""
        if self.deviations is None:
            raise ValueError("the policy was exported without standard deviations")
        x = self.features(state)
        return [math.sqrt(sum([dot(row, x) ** 2 for row in rows])) for rows in self.deviations]

    def features(self, state: Any) -> list[float]:
        """phi(s)."""
        observation = self.observation(state)
        if self._dense is not None:
            return self._dense(observation)
        active = set(self._places(observation))
        return [x if i in active else 0.0 for i, x in enumerate(self._scale)]

    def listed(self, state: Any) -> list[Any]:
        """The values of a state in the order of the columns."""
        return list(_values(state, self.names))

    def observation(self, state: Any) -> list[float]:
        """The numbers of a state: a mapping, a sequence of values, or a single value."""
        if self.inputs:
            values = _values(state, self.names)
            if len(values) != len(self.inputs):
                raise ValueError(f"a state has {len(self.inputs)} values, not {len(values)}")
            numbers: list[float] = []
            for encode, value in zip(self._encoders, values, strict=True):
                numbers += encode(value)
        else:
            try:
                numbers = list(map(float, _values(state)))
            except (TypeError, ValueError, OverflowError):
                numbers = []
        # The sum of finite numbers may be infinite, but that of others is never finite.
        finite = isfinite(sum(numbers)) or all(map(isfinite, numbers))
        if len(numbers) != self.size or not finite:
            raise ValueError(f"{_short(state)} is not a state of {self.size} finite numbers")
        return numbers


def _values(state: Any, names: Sequence[str] = ()) -> Sequence[Any]:
    kind = type(state)
    if kind is list or kind is tuple:  # which is usual, and quicker to tell
        return state  # type: ignore[no-any-return]
    if kind is dict or isinstance(state, Mapping):
        try:
            return [state[name] for name in names] if names else _no_names()
        except KeyError as error:
            raise ValueError(f"the state has no {error}") from None
    if isinstance(state, str) or not hasattr(state, "__iter__"):
        return [state]
    return list(state)


def _no_names() -> list[Any]:
    raise ValueError("states have no names")


def _short(value: Any) -> str:
    """A value as it is written, but not the whole of a long one."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _encoder(each: Mapping[str, Any], alone: bool) -> Callable[[Any], list[float]]:
    """From a value of one column to its numbers; usual values are looked up or converted."""
    fill, words = each["fill"], each["words"]
    known = {word: encoded(each, word, alone) for word in words}

    def word_or_other(value: Any) -> list[float]:
        found = known.get(value) if type(value) is str else None
        return encoded(each, value, alone) if found is None else found

    def number_or_other(value: Any) -> list[float]:
        usual = type(value) is float or (type(value) is int and value.bit_length() < 64)
        return [float(value)] if usual and fill is None else encoded(each, value, alone)

    return word_or_other if words else number_or_other


def encoded(each: Mapping[str, Any], value: Any, alone: bool) -> list[float]:
    """The numbers of one column: a number, or an indicator for every word.

    If it is the ``alone`` column of states without missing values, the place of the word.
    """
    text = str(value).strip()
    words = each["words"]
    absent = value is None or text == "" or (text not in words and text.lower() in MISSING)
    if absent and each["fill"] is None:
        raise ValueError(f"{each['name']} is missing: give a value")
    if words:
        if isinstance(value, float) and value.is_integer():
            text = str(int(value))
        if text not in words and not absent:
            raise ValueError(f"{each['name']}={_short(value)} is none of {', '.join(words)}")
        if alone and each["fill"] is None:
            return [float(words.index(text))]
        numbers = [float(word == text and not absent) for word in words]
    else:
        try:
            numbers = [each["fill"] if absent else float(value)]
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{each['name']}={_short(value)} must be a number") from None
    return numbers if each["fill"] is None else [*numbers, float(absent)]


MISSING = ("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")


# Features: functions of an observation u, made of the numbers of a basis -----------------------


def rbf_grid(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """Products of exp(-((u_d - c) / width_d)^2 / 2) over a grid, the last d fastest; then 1."""
    exp = math.exp
    axes = [
        (centres, -0.5 / (width * width))
        for centres, width in zip(basis["centres"], basis["widths"], strict=True)
    ]

    def features(u: Sequence[float]) -> list[float]:
        grid: list[float] = []
        for value, (centres, factor) in zip(u, axes, strict=True):
            near = [exp(factor * (away := value - centre) * away) for centre in centres]
            grid = [one * other for one in grid for other in near] if grid else near
        grid.append(1.0)
        return grid

    return features


def rbf_grid_with_angles(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """The same with exp((cos(turn_d (u_d - c)) - 1) precision_d) where turn_d is not 0."""
    axes = list(zip(basis["centres"], basis["turns"], basis["precisions"], strict=True))

    def features(u: Sequence[float]) -> list[float]:
        grid = [1.0]
        for value, (centres, turn, precision) in zip(u, axes, strict=True):
            away = [value - centre for centre in centres]
            exponents = [math.cos(turn * x) - 1.0 if turn else -0.5 * x * x for x in away]
            near = [math.exp(precision * exponent) for exponent in exponents]
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


def random_fourier(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """m^-1/2 cos(w . v) for all m frequencies w, then m^-1/2 sin(w . v), then 1."""
    lines = list(zip(basis["circles"], basis["low"], basis["slope"], strict=True))
    frequencies = list(zip(*basis["frequencies"], strict=True))
    scale = 1.0 / math.sqrt(len(frequencies))

    def features(u: Sequence[float]) -> list[float]:
        v: list[float] = []
        for value, (circle, low, slope) in zip(u, lines, strict=True):
            place = (value - low) * slope
            turn = 2.0 * math.pi
            ring = [wave(turn * place) / turn for wave in (math.cos, math.sin)]
            v += ring if circle else [place]
        phases = [dot(w, v) for w in frequencies]
        waves = [scale * wave(phase) for wave in (math.cos, math.sin) for phase in phases]
        return [*waves, 1.0]

    return features


def multilinear(basis: Mapping[str, Any]) -> Callable[[Sequence[float]], list[float]]:
    """Products of max(0, 1 - |v_d - i|) with v_d = (u_d - low_d) slope_d, clipped to the grid."""
    axes = list(zip(basis["vertices"], basis["low"], basis["slope"], strict=True))

    def features(u: Sequence[float]) -> list[float]:
        grid = [1.0]
        for value, (count, low, slope) in zip(u, axes, strict=True):
            along = min(max((value - low) * slope, 0.0), count - 1.0)
            cell = min(int(along), count - 2)
            near = [0.0] * count
            near[cell], near[cell + 1] = 1.0 - (along - cell), along - cell
            grid = [one * other for one in grid for other in near]
        return grid

    return features


def multilinear_with_angles(
    basis: Mapping[str, Any],
) -> Callable[[Sequence[float]], list[float]]:
    """The same of coordinates: of kind 0 on a line, 1 around a circle, 2 the angle of a pair."""
    axes = list(zip(*(basis[name] for name in ("vertices", "low", "slope", "kinds")), strict=True))

    def features(u: Sequence[float]) -> list[float]:
        grid, values = [1.0], iter(u)
        for count, low, slope, kind in axes:
            value = next(values)
            if kind == 2:
                value = math.atan2(next(values), value)
            along = (value - low) * slope
            along = along % count % count if kind else min(max(along, 0.0), count - 1.0)
            cell = int(along) if kind else min(int(along), count - 2)
            near = [0.0] * count
            near[cell], near[(cell + 1) % count] = 1.0 - (along - cell), along - cell
            grid = [one * other for one in grid for other in near]
        return grid

    return features


def tile_coding(basis: Mapping[str, Any]) -> Sparse:
    """One active tile in every tiling, then 1; the tiles of a tiling follow the last d fastest."""
    tiles = [int(count) for count in basis["tiles"]]
    tilings, size = len(basis["displacements"]), math.prod(tiles)
    starts = [tiling * size for tiling in range(tilings)]
    lines = []
    for d, along in enumerate(zip(*basis["displacements"], strict=True)):
        stride, ordered = math.prod(tiles[d + 1 :]), sorted(along)
        # In tilings displaced by the n-th smallest amount or more, a state is one tile further on.
        further = [[stride * (move >= least) for move in along] for least in (*ordered, math.inf)]
        lines.append(
            (tiles[d], basis["low"][d], basis["slope"][d], stride, ordered, further, along)
        )

    def places(u: Sequence[float]) -> list[int]:
        found, first = starts, 0
        for value, (count, low, slope, stride, ordered, further, along) in zip(
            u, lines, strict=True
        ):
            place = (value - low) * slope
            if 0.0 <= place < count - 1:  # whatever the displacement, which is below 1
                tile = int(place)
                first += tile * stride
                steps = further[bisect_left(ordered, tile + 1, key=place.__add__)]
            else:
                steps = [stride * int(min(max(place + move, 0.0), count - 1)) for move in along]
            found = list(map(add, found, steps))
        return [*[place + first for place in found], tilings * size]

    return places, [basis["active"]] * (tilings * size) + [1.0]


def one_hot(basis: Mapping[str, Any]) -> Sparse:
    """An indicator of every value first_d, first_d + 1, ... of every component."""
    counts = [int(count) for count in basis["counts"]]
    starts = [sum(counts[:d]) for d in range(len(counts))]
    lines = list(zip(basis["first"], counts, starts, strict=True))

    def places(u: Sequence[float]) -> list[int]:
        return [
            start + int(value - first)
            for value, (first, count, start) in zip(u, lines, strict=True)
            if 0.0 <= value - first < count
        ]

    return places, [1.0] * sum(counts)


def one_hot_joint(basis: Mapping[str, Any]) -> Sparse:
    """An indicator of every combination of values of the components, the last d fastest."""
    counts = [int(count) for count in basis["counts"]]
    lines = list(zip(basis["first"], counts, strict=True))

    def places(u: Sequence[float]) -> list[int]:
        place = 0
        for value, (first, count) in zip(u, lines, strict=True):
            if not 0.0 <= value - first < count:
                return []
            place = place * count + int(value - first)
        return [place]

    return places, [1.0] * math.prod(counts)


# The same features, wave(m . t) times a scale, for NumPy -----------------------------------------

#: t, numbers that depend on an observation; the rows m; exp or cos; and the scales of the features
Linear = tuple[
    Callable[[Sequence[float]], list[float]], list[list[float]], str, Sequence[float] | None
]


def _with_numpy(
    weights: list[list[float]],
    terms: Callable[[Sequence[float]], list[float]],
    rows: list[list[float]],
    wave: str,
    scales: Sequence[float] | None,
) -> Callable[[Sequence[float]], list[float]] | None:
    """The values of an observation, W wave(M t); None if NumPy is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    array, wave_of = numpy.array, getattr(numpy, wave)
    forward = numpy.ascontiguousarray(array(rows).T)
    scaled = array(weights) if scales is None else array(weights) * scales

    def values(u: Sequence[float]) -> list[float]:
        found: list[float] = scaled.dot(wave_of(array(terms(u)).dot(forward))).tolist()
        return found

    return values


def linear_rbf_grid(basis: Mapping[str, Any]) -> Linear:
    """Exponents -((v_d - c)^2)/2 of lengths v_d, and those of angles, from 1, v, v^2, cos and sin.

    Beyond 40 widths from all centres, a feature is 0: lengths end there.
    """
    centres = basis["centres"]
    turns = basis.get("turns", [0.0] * len(centres))
    precisions = basis.get("precisions") or [1.0 / (width * width) for width in basis["widths"]]
    rows = [[0.0]]
    axes: list[tuple[float, float, float, float]] = []
    for along, turn, precision in zip(centres, turns, precisions, strict=True):
        slope = math.sqrt(precision)
        middle = 0.5 * (along[0] + along[-1])
        if turn:
            near = [[precision * wave(turn * c) for wave in (math.cos, math.sin)] for c in along]
            constants = [-precision] * len(along)
        else:
            places = [(c - middle) * slope for c in along]
            near = [[place, -0.5] for place in places]
            constants = [-0.5 * place * place for place in places]
        axes.append((turn, middle, slope, 40.0 + abs(along[-1] - middle) * slope))
        moved = list(zip(near, constants, strict=True))
        rows = [[row[0] + constant, *row[1:], *m] for row in rows for m, constant in moved]
    rows.append([0.0] * len(rows[0]))  # exp(0) = 1

    def terms(u: Sequence[float]) -> list[float]:
        found = [1.0]
        for value, (turn, middle, slope, end) in zip(u, axes, strict=True):
            if turn:
                found += (math.cos(turn * value), math.sin(turn * value))
            else:
                v = (value - middle) * slope
                if not -end < v < end:
                    v = math.copysign(end, v)
                found += (v, v * v)
        return found

    return terms, rows, "exp", None


def linear_fourier(basis: Mapping[str, Any]) -> Linear:
    """Cosines of whole multiples of v_d, which lie within [0, 1]."""
    lines = list(zip(basis["low"], basis["slope"], strict=True))
    rows: list[list[float]] = [[]]
    for order in basis["order"]:
        rows = [[*row, math.pi * c] for row in rows for c in range(int(order) + 1)]

    def terms(u: Sequence[float]) -> list[float]:
        places = [(value - low) * slope for value, (low, slope) in zip(u, lines, strict=True)]
        return [0.0 if v < 0.0 else 1.0 if v > 1.0 else v for v in places]

    return terms, rows, "cos", None


def linear_random_fourier(basis: Mapping[str, Any]) -> Linear:
    """Cosines of w . v, and of w . v - pi / 2, and the cosine of 0."""
    lines = list(zip(basis["circles"], basis["low"], basis["slope"], strict=True))
    frequencies = list(zip(*basis["frequencies"], strict=True))
    rows = [[shift, *w] for shift in (0.0, -0.5 * math.pi) for w in frequencies]
    rows.append([0.0] * len(rows[0]))
    scale, turn = 1.0 / math.sqrt(len(frequencies)), 2.0 * math.pi

    def terms(u: Sequence[float]) -> list[float]:
        found = [1.0]
        for value, (circle, low, slope) in zip(u, lines, strict=True):
            place = (value - low) * slope
            if circle:
                found += (math.cos(turn * place) / turn, math.sin(turn * place) / turn)
            else:
                found.append(place)
        return found

    return terms, rows, "cos", [scale] * (len(rows) - 1) + [1.0]


LINEAR: dict[str, Callable[[Mapping[str, Any]], Linear]] = {
    "RBFGrid": linear_rbf_grid,
    "RBFGridWithAngles": linear_rbf_grid,
    "Fourier": linear_fourier,
    "RandomFourier": linear_random_fourier,
}
DENSE: dict[str, Callable[[Mapping[str, Any]], Callable[[Sequence[float]], list[float]]]] = {
    "RBFGrid": rbf_grid,
    "RBFGridWithAngles": rbf_grid_with_angles,
    "Polynomial": polynomial,
    "Fourier": fourier,
    "RandomFourier": random_fourier,
    "Multilinear": multilinear,
    "MultilinearWithAngles": multilinear_with_angles,
}
SPARSE: dict[str, Callable[[Mapping[str, Any]], Sparse]] = {
    "TileCoding": tile_coding,
    "OneHot": one_hot,
    "OneHotJoint": one_hot_joint,
}


def answer_lines(policy: StandalonePolicy) -> None:
    """Read states from the standard input, and write an action, or an error, for each of them."""
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            answer = policy.act(json.loads(line))
        except (ValueError, TypeError) as error:  # the next state may be right again
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
