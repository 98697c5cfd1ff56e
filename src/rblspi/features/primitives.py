"""The primitives of bases: each has one compiled evaluator and one ONNX emitter.

A primitive consists of three functions. The first makes a `Stage` of plain numbers. The evaluator
``(parameters, given, out)`` is compiled and computes the output of the stage for one vector. The
emitter ``(graph, x, ...)`` adds the same computation to an ONNX graph, for rows of such vectors;
calling ``graph(operator, *inputs)`` adds a node and returns the name of its output. ONNX Runtime
lacks some operators in float64, such as the arc tangent. `composition` puts stages together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Integers, Matrix, Vector

#: codes of the evaluators; see `composition`
SCALE, TURNS, AFFINE, WAVES, COSINES, MONOMIALS = range(6)
GAUSSIANS, BUMPS, PRODUCTS, INTERPOLATION, CELLS, NORMAL_RECTIFIER, GAUSSIANS_AT = range(6, 13)

#: kinds of coordinates: a component on a line, one on a circle, or the angle of two components
LINE, CIRCLE, PAIR = 0, 1, 2

#: for ``graph(operator, *inputs, **attributes)``, whose inputs are names and arrays
Graph = Callable[..., str]


class Stage(NamedTuple):
    """One step from an observation to features."""

    code: int  # of the evaluator
    parameters: Vector  # of the evaluator
    size: int  # length of its output
    emit: Callable[..., Any]  # from (graph, x) to a name, shape (N, size), or to `Active`


class Active(NamedTuple):
    """Sparse rows of numbers in an ONNX graph."""

    places: str  # of nonzero numbers, int64, shape (N, K); a place past the end stands for none
    values: Vector  # the nonzero numbers, by place


def product(graph: Graph, x: str | Active, matrix: Matrix) -> str:
    """The name of x M, shape (N, m)."""
    if isinstance(x, str):
        return graph("MatMul", x, matrix)
    rows = np.concatenate([x.values[:, None] * matrix, np.zeros((1, matrix.shape[1]))])
    return graph("ReduceSum", graph("Gather", rows, x.places), np.array([1]), keepdims=0)


def _column(graph: Graph, x: str, d: int) -> str:
    return graph("Gather", x, np.array([d]), axis=1)


# Scaling ------------------------------------------------------------------------------------------


def scale(low: Vector, slope: Vector, least: float = -math.inf, most: float = math.inf) -> Stage:
    """u_d = (x_d - low_d) * slope_d, clipped to [least, most]."""
    limits = np.full((len(low), 2), (least, most))
    parameters = np.column_stack([low, slope, limits]).ravel()
    return Stage(SCALE, parameters, len(low), partial(_emit_scale, low, slope, least, most))


@jit_borrowing
def evaluate_scale(parameters: Vector, given: Vector, out: Vector) -> None:
    """Low, slope and both limits are listed for every dimension."""
    for d in range(len(given)):
        u = (given[d] - parameters[4 * d]) * parameters[4 * d + 1]
        if u < parameters[4 * d + 2]:
            u = parameters[4 * d + 2]
        elif u > parameters[4 * d + 3]:
            u = parameters[4 * d + 3]
        out[d] = u


def _emit_scale(low: Vector, slope: Vector, least: float, most: float, graph: Graph, x: str) -> str:
    u = graph("Mul", graph("Sub", x, low), slope)
    return graph("Min", graph("Max", u, np.array(least)), np.array(most))


# Angles -------------------------------------------------------------------------------------------


def turns(kinds: Vector) -> Stage:
    """One number for every coordinate, and two for a coordinate of the kind CIRCLE.

    On a LINE it is the component. A PAIR of a cosine and a sine becomes the angle t, by atan2. On a
    CIRCLE, u becomes cos(2 pi u) / (2 pi) and sin(2 pi u) / (2 pi).
    """
    size = len(kinds) + int(np.sum(kinds == CIRCLE))
    return Stage(TURNS, np.asarray(kinds, np.float64), size, partial(_emit_turns, kinds))


def first_components(kinds: Vector) -> Integers:
    """The component, or the first of the two, that every coordinate is made of."""
    used = np.where(kinds == PAIR, 2, 1)
    return np.cumsum(used) - used


@jit_borrowing
def evaluate_turns(kinds: Vector, given: Vector, out: Vector) -> None:
    """The parameters are the kinds of the coordinates."""
    i = o = 0
    for d in range(len(kinds)):
        u = given[i]
        if kinds[d] == PAIR:
            i += 1
            u = math.atan2(given[i], u)
        elif kinds[d] == CIRCLE:
            turn = 2.0 * math.pi * u
            out[o] = math.cos(turn) / (2.0 * math.pi)
            o += 1
            u = math.sin(turn) / (2.0 * math.pi)
        out[o] = u
        i += 1
        o += 1


def _emit_turns(kinds: Vector, graph: Graph, x: str) -> str:
    columns, turn = [], np.array(2.0 * math.pi)
    for kind, first in zip(kinds, first_components(kinds), strict=True):
        u = _column(graph, x, first)
        if kind == PAIR:
            columns.append(_emit_atan2(graph, _column(graph, x, first + 1), u))
        elif kind == CIRCLE:
            angle = graph("Mul", u, turn)
            columns += [graph("Div", graph(wave, angle), turn) for wave in ("Cos", "Sin")]
        else:
            columns.append(u)
    return graph("Concat", *columns, axis=1)


def _emit_atan2(graph: Graph, y: str, x: str) -> str:
    """The arc cosine in float32, and two steps that correct it in float64.

    With the error e of an angle t, y cos t - x sin t = r sin e and x cos t + y sin t = r cos e, so
    a step by their ratio leaves e^3 / 3 of e. Near 0 and pi, e is 3e-4 at first.
    """
    zero, largest = np.array(0.0), graph("Max", graph("Abs", x), graph("Abs", y))
    unit = graph("Max", largest, np.array(1e-300))  # squares neither overflow nor vanish
    x, y = graph("Div", x, unit), graph("Div", y, unit)
    radius = graph("Sqrt", graph("Add", graph("Mul", x, x), graph("Mul", y, y)))
    cosine = graph("Cast", graph("Div", x, graph("Max", radius, np.array(0.5))), to="FLOAT")
    turned = graph("Cast", graph("Acos", graph("Clip", cosine, *_ONES_OF_FLOAT32)), to="DOUBLE")
    angle = graph("Where", graph("Less", y, zero), graph("Neg", turned), turned)
    nothing = graph("Equal", largest, zero)
    for _ in range(2):
        c, s = graph("Cos", angle), graph("Sin", angle)
        across = graph("Sub", graph("Mul", y, c), graph("Mul", x, s))
        along = graph("Add", graph("Mul", x, c), graph("Mul", y, s))
        along = graph("Where", nothing, np.array(1.0), along)
        angle = graph("Add", angle, graph("Div", across, along))
    return graph("Where", nothing, zero, angle)


_ONES_OF_FLOAT32 = (np.array(-1.0, np.float32), np.array(1.0, np.float32))


# Sums and waves -----------------------------------------------------------------------------------


def affine(matrix: Matrix, bias: Vector | None = None) -> Stage:
    """Affine: x'M + b, of x in R^d and M, shape (d, m)."""
    start = np.zeros(matrix.shape[1]) if bias is None else bias
    parameters = np.concatenate([start, matrix.ravel()])
    return Stage(AFFINE, parameters, len(start), partial(_emit_affine, matrix, start))


@jit_borrowing
def evaluate_affine(parameters: Vector, given: Vector, out: Vector) -> None:
    """The bias, then the rows of the matrix, one for each number given."""
    # Unsigned indices spare compiled code the check for negative ones.
    m = np.uint64(len(out))
    for i in range(m):
        out[i] = parameters[i]
    for d in range(len(given)):
        first, factor = np.uint64(d + 1) * m, given[d]
        for i in range(m):
            out[i] += factor * parameters[first + i]


def _emit_affine(matrix: Matrix, bias: Vector, graph: Graph, x: str | Active) -> str:
    return graph("Add", product(graph, x, matrix), bias)


def waves(count: int) -> Stage:
    """m^-1/2 cos(x_i) for all m numbers, then m^-1/2 sin(x_i)."""
    return Stage(WAVES, np.empty(0), 2 * count, partial(_emit_waves, count))


@jit_borrowing
def evaluate_waves(parameters: Vector, given: Vector, out: Vector) -> None:
    """There are no parameters."""
    m = len(given)
    scale = 1.0 / math.sqrt(m)
    for i in range(m):
        out[i] = scale * math.cos(given[i])
        out[m + i] = scale * math.sin(given[i])


def _emit_waves(count: int, graph: Graph, x: str) -> str:
    scale = np.array(1.0 / math.sqrt(count))
    found = (graph("Mul", graph(wave, x), scale) for wave in ("Cos", "Sin"))
    return graph("Concat", *found, axis=1)


#: added to the variance of a layer, whose numbers may all be the same
_LEAST_VARIANCE = 1e-5


def normal_rectifier(count: int) -> Stage:
    """max(0, (x_i - mean x) / (var x + 10^-5)^1/2): layer normalisation, then a rectifier."""
    return Stage(NORMAL_RECTIFIER, np.empty(0), count, partial(_emit_normal_rectifier, count))


@jit_borrowing
def evaluate_normal_rectifier(parameters: Vector, given: Vector, out: Vector) -> None:
    """There are no parameters."""
    m = len(given)
    mean = variance = 0.0
    for i in range(m):
        mean += given[i] / m
    for i in range(m):
        variance += (given[i] - mean) * (given[i] - mean) / m
    slope = 1.0 / math.sqrt(variance + _LEAST_VARIANCE)
    for i in range(m):
        out[i] = max(0.0, slope * (given[i] - mean))


def _emit_normal_rectifier(count: int, graph: Graph, x: str) -> str:
    def mean(y: str) -> str:
        return graph("MatMul", y, np.full((count, 1), 1.0 / count))

    centred = graph("Sub", x, mean(x))
    variance = graph("Add", mean(graph("Mul", centred, centred)), np.array(_LEAST_VARIANCE))
    return graph("Max", graph("Div", centred, graph("Sqrt", variance)), np.array(0.0))


def cosines(orders: Sequence[int]) -> Stage:
    """cos(pi c . u) for all vectors c of whole numbers from 0 to the order of each dimension."""
    size = math.prod(order + 1 for order in orders)
    return Stage(COSINES, np.array(orders, np.float64), size, partial(_emit_cosines, orders))


@jit_borrowing
def evaluate_cosines(parameters: Vector, given: Vector, out: Vector) -> None:
    """The parameters are the orders.

    The angles of the dimensions add up. So for each further dimension, the block of cosines
    computed so far is rotated by every multiple of that dimension's angle; the last dimension
    varies fastest. A rotation also needs the sines. They are kept in ``out`` from index ``sines``
    on, where the last rotation overwrites them.
    """
    sines = len(out) // (int(parameters[0]) + 1)
    out[0] = 1.0
    out[sines] = 0.0
    size = 1
    for d in range(len(given) - 1, -1, -1):
        order = int(parameters[d])
        cosine, sine = math.cos(math.pi * given[d]), math.sin(math.pi * given[d])
        more = d > 0
        c, s = cosine, sine
        for j in range(2, order + 1):
            c, s = c * cosine - s * sine, s * cosine + c * sine
            _rotate_block(out, size, sines, j, c, s, more)
        # Block 1 goes last because in the last rotation it overwrites the sines.
        _rotate_block(out, size, sines, 1, cosine, sine, more)
        size *= order + 1


@jit_borrowing
def _rotate_block(
    out: Vector, size: int, sines: int, to: int, cosine: float, sine: float, more: bool
) -> None:
    """Write the first block, rotated by an angle, to block ``to``; also its sines if ``more``."""
    start = np.uint64(to) * np.uint64(size)
    offset = np.uint64(sines)
    for i in range(np.uint64(size)):
        c, s = out[i], out[offset + i]
        out[start + i] = c * cosine - s * sine
        if more:
            out[offset + start + i] = s * cosine + c * sine


def _emit_cosines(orders: Sequence[int], graph: Graph, x: str) -> str:
    counts = [order + 1 for order in orders]
    frequencies = np.indices(counts).reshape(len(counts), -1).astype(np.float64)
    return graph("Cos", graph("MatMul", x, math.pi * frequencies))


# Products -----------------------------------------------------------------------------------------


def monomials(dimensions: int, pairs: Integers) -> Stage:
    """1, then all u_d, then for every pair the product of the two earlier features there."""
    size = 1 + dimensions + len(pairs)
    return Stage(
        *(MONOMIALS, pairs.ravel().astype(np.float64), size),
        partial(_emit_monomials, dimensions, pairs),
    )


@jit_borrowing
def evaluate_monomials(parameters: Vector, given: Vector, out: Vector) -> None:
    """The parameters are the places of both factors of every product."""
    start = 1 + len(given)
    out[0] = 1.0
    for d in range(len(given)):
        out[1 + d] = given[d]
    for i in range(len(out) - start):
        out[start + i] = out[int(parameters[2 * i])] * out[int(parameters[2 * i + 1])]


def _emit_monomials(dimensions: int, pairs: Integers, graph: Graph, x: str) -> str:
    one = graph("Add", graph("Mul", _column(graph, x, 0), np.array(0.0)), np.array(1.0))
    out, size = graph("Concat", one, x, axis=1), 1 + dimensions
    while len(pairs):  # a block whose factors have been computed already
        there = (pairs < size).all(axis=1)
        count = len(pairs) if there.all() else int(there.argmin())
        factors = (graph("Gather", out, column, axis=1) for column in pairs[:count].T)
        out = graph("Concat", out, graph("Mul", *factors), axis=1)
        size, pairs = size + count, pairs[count:]
    return out


class Bumps(NamedTuple):
    """Gaussians along one dimension, on a line or around a circle."""

    centres: Vector
    precision: float  # 1 / sigma^2, on a circle of the angles
    turn: float = 0.0  # the factor that makes angles of numbers; 0 on a line


def bumps(axes: Sequence[Bumps]) -> Stage:
    """One-dimensional Gaussians around the centres of every dimension.

    On a circle with the angle t and a centre c, a Gaussian is that of the distance between
    (cos t, sin t) and (cos c, sin c), which is

        exp(-|(cos t, sin t) - (cos c, sin c)|^2 / (2 sigma^2)) = exp((cos(t - c) - 1) / sigma^2).
    """
    numbers = [[len(axis.centres), axis.turn, axis.precision, *axis.centres] for axis in axes]
    size = sum(len(axis.centres) for axis in axes)
    return Stage(BUMPS, np.concatenate(numbers), size, partial(_emit_bumps, axes))


@jit_borrowing
def evaluate_bumps(parameters: Vector, given: Vector, out: Vector) -> None:
    """For every dimension: the number of centres, the turn, the precision, and the centres."""
    position = i = 0
    for d in range(len(given)):
        cells = int(parameters[position])
        turn, precision = parameters[position + 1], parameters[position + 2]
        for j in range(cells):
            distance = given[d] - parameters[position + 3 + j]
            exponent = -0.5 * distance * distance
            if turn > 0.0:
                exponent = math.cos(turn * distance) - 1.0
            out[i] = math.exp(precision * exponent)
            i += 1
        position += 3 + cells


def _emit_bumps(axes: Sequence[Bumps], graph: Graph, x: str) -> str:
    near = []
    for d, (centres, precision, turn) in enumerate(axes):
        away = graph("Sub", _column(graph, x, d), centres[None])
        if turn:
            cosine = graph("Cos", graph("Mul", away, np.array(turn)))
            exponent = graph("Mul", graph("Sub", cosine, np.array(1.0)), np.array(precision))
        else:
            exponent = graph("Mul", graph("Mul", away, away), np.array(-0.5 * precision))
        near.append(graph("Exp", exponent))
    return graph("Concat", *near, axis=1)


def products(counts: Sequence[int]) -> Stage:
    """All products of one number of each block; the numbers of the last block vary fastest."""
    parameters = np.array(counts, np.float64)
    return Stage(PRODUCTS, parameters, math.prod(counts), partial(_emit_products, counts))


@jit_borrowing
def evaluate_products(parameters: Vector, given: Vector, out: Vector) -> None:
    """The parameters are the sizes of the blocks."""
    size, end = 1, len(given)
    out[0] = 1.0
    for d in range(len(parameters) - 1, -1, -1):
        count = int(parameters[d])
        end -= count
        for j in range(count - 1, -1, -1):
            _multiply_block(out, size, given[end + j], j)
        size *= count


@jit_borrowing
def _multiply_block(out: Vector, size: int, factor: float, to: int) -> None:
    """Write the first ``size`` values times ``factor`` to block number ``to``."""
    start = np.uint64(to) * np.uint64(size)
    for i in range(np.uint64(size)):
        out[start + i] = factor * out[i]


def _emit_products(counts: Sequence[int], graph: Graph, x: str) -> str:
    ends = np.cumsum(counts)
    blocks = [
        graph("Slice", x, np.array([end - count]), np.array([end]), np.array([1]))
        for end, count in zip(ends, counts, strict=True)
    ]
    found, size = blocks[0], counts[0]
    for block, count in zip(blocks[1:], counts[1:], strict=True):
        pairs = (graph("Unsqueeze", found, np.array([2])), graph("Unsqueeze", block, np.array([1])))
        size *= count
        found = graph("Reshape", graph("Mul", *pairs), np.array([0, size]))
    return found


def gaussians(centres: Sequence[Vector], spacing: Vector, width: Vector) -> Stage:
    """Products of Gaussians on lines, around evenly spaced centres: `bumps` and `products` in one.

    ``width`` is the standard deviation in units of the spacing.
    """
    h = 1.0 / width
    parameters = []
    for d in reversed(range(len(centres))):
        decays = np.exp(-(h[d] ** 2) * (np.arange(len(centres[d])) + 0.5))
        numbers = (len(centres[d]), h[d] / spacing[d], h[d], 1.0 / spacing[d])
        parameters += [*numbers, *centres[d], *decays]
    axes = [Bumps(line, float(p)) for line, p in zip(centres, (h / spacing) ** 2, strict=True)]
    size = math.prod(map(len, centres))
    return Stage(GAUSSIANS, np.array(parameters), size, partial(_emit_gaussians, axes))


@jit_borrowing
def evaluate_gaussians(parameters: Vector, given: Vector, out: Vector) -> None:
    """phi_i(s) = exp(-1/2 sum_d ((s_d - c_id) / sigma_d)^2).

    Along one dimension, let f be the distance from a centre and h the spacing, in units of sigma:

        exp(-(f - (m + 1) h)^2 / 2) = exp(-(f - m h)^2 / 2) * exp(h f) * exp(-h^2 (m + 1/2)).

    The last factor does not depend on the observation, so one exponential for each dimension and
    one for the whole grid suffice. Starting from the nearest centre, nothing overflows. From the
    last dimension to the first, the block computed so far is multiplied by each Gaussian.

    ``parameters`` holds, for every dimension in reverse order: the number of centres, 1 / sigma,
    h, 1 / spacing, the centres, and exp(-h^2 (m + 1/2)) for m = 0, 1, ...
    """
    size = 1
    out[0] = 1.0
    distance = 0.0
    position = 0
    for d in range(len(given) - 1, -1, -1):
        cells = int(parameters[position])
        centres = position + 4
        decays = centres + cells

        nearest = 0
        cell = (given[d] - parameters[centres]) * parameters[position + 3] + 0.5
        if cell >= cells:
            nearest = cells - 1
        elif cell > 0.0:
            nearest = int(cell)

        f = (given[d] - parameters[centres + nearest]) * parameters[position + 1]
        distance += f * f
        at_nearest = 1.0 if d > 0 else math.exp(-0.5 * distance)
        # Where the exponent is limited to 700, the Gaussians are below 1e-80 and may become 0.
        up = math.exp(min(max(parameters[position + 2] * f, -700.0), 700.0))
        down = 1.0 / up

        factor = at_nearest
        for j in range(nearest + 1, cells):
            factor *= up * parameters[decays + j - nearest - 1]
            _multiply_block(out, size, factor, j)
        factor = at_nearest
        for j in range(nearest, 0, -1):
            _multiply_block(out, size, factor, j)
            factor *= down * parameters[decays + nearest - j]
        _multiply_block(out, size, factor, 0)

        size *= cells
        position = decays + cells


def _emit_gaussians(axes: Sequence[Bumps], graph: Graph, x: str) -> str:
    near = _emit_bumps(axes, graph, x)
    return _emit_products([len(axis.centres) for axis in axes], graph, near)


def gaussians_at(centres: Matrix) -> Stage:
    """exp(-|x - c|^2 / 2) for every row c of the centres."""
    return Stage(GAUSSIANS_AT, centres.ravel(), len(centres), partial(_emit_gaussians_at, centres))


@jit_borrowing
def evaluate_gaussians_at(centres: Vector, given: Vector, out: Vector) -> None:
    """The parameters are the centres, one after the other."""
    d = len(given)
    for i in range(len(out)):
        square = 0.0
        for j in range(d):
            square += (given[j] - centres[i * d + j]) ** 2
        out[i] = math.exp(-0.5 * square)


def _emit_gaussians_at(centres: Matrix, graph: Graph, x: str) -> str:
    squares = None
    for d, along in enumerate(centres.T):
        away = graph("Sub", _column(graph, x, d), along[None])
        square = graph("Mul", away, away)
        squares = square if squares is None else graph("Add", squares, square)
    return graph("Exp", graph("Mul", squares, np.array(-0.5)))


# Grids --------------------------------------------------------------------------------------------

#: numbers in the parameters of an interpolation for every coordinate
NUMBERS = 4


def interpolation(parameters: Vector) -> Stage:
    """prod_d max(0, 1 - |v_d - g_d|) for every vertex g, where v is x in units of the spacing.

    On a line v is clipped to the grid, and |v_d - g_d| is the shorter way around a circle.
    ``parameters`` holds, for every coordinate: the number of vertices, low, 1 / spacing, its kind.
    """
    lines = parameters.reshape(-1, NUMBERS)
    size = int(lines[:, 0].prod())
    return Stage(INTERPOLATION, parameters, size, partial(_emit_interpolation, lines))


@jit
def evaluate_interpolation(parameters: Vector, given: Vector, out: Vector) -> None:
    """The parameters are those of `interpolate`."""
    for i in range(len(out)):
        out[i] = 0.0
    corners = 2 ** len(given)
    places, shares = np.empty(corners, np.int64), np.empty(corners)
    interpolate(parameters, given, places, shares)
    for i in range(corners):
        out[places[i]] += shares[i]


@jit_borrowing
def interpolate(parameters: Vector, point: Vector, places: Integers, shares: Vector) -> None:
    """The vertices around a point and their interpolation weights, some of which may be 0.

    Both are written for the 2^d corners of the cell.
    """
    count = 1
    places[0], shares[0] = 0, 1.0
    for d in range(len(point)):
        vertices = int(parameters[NUMBERS * d])
        along = (point[d] - parameters[NUMBERS * d + 1]) * parameters[NUMBERS * d + 2]
        cell, share = 0, 0.0  # also for NaN
        if parameters[NUMBERS * d + 3] != LINE:
            along %= vertices
            if along < vertices:  # the remainder of -1e-20 is equal
                cell = int(along)
                share = along - cell
        elif along >= vertices - 1.0:
            cell, share = vertices - 2, 1.0
        elif along > 0.0:
            cell = int(along)
            share = along - cell
        following = cell + 1 if cell + 1 < vertices else 0
        for i in range(count):
            places[count + i] = places[i] * vertices + following
            shares[count + i] = shares[i] * share
            places[i] = places[i] * vertices + cell
            shares[i] *= 1.0 - share
        count *= 2


def _emit_interpolation(lines: Matrix, graph: Graph, x: str) -> str:
    one, near = np.array(1.0), []
    for d, (vertices, low, slope, kind) in enumerate(lines):
        along = graph("Mul", graph("Sub", _column(graph, x, d), np.array(low)), np.array(slope))
        if kind == LINE:
            along = graph("Min", graph("Max", along, np.array(0.0)), np.array(vertices - 1.0))
        away = graph("Sub", along, np.arange(vertices))
        if kind != LINE:
            turns = graph("Round", graph("Mul", away, np.array(1.0 / vertices)))
            away = graph("Sub", away, graph("Mul", turns, np.array(vertices)))
        near.append(graph("Max", graph("Sub", one, graph("Abs", away)), np.array(0.0)))
    counts = lines[:, 0].astype(int).tolist()
    return _emit_products(counts, graph, graph("Concat", *near, axis=1))


# Cells --------------------------------------------------------------------------------------------


def cells(
    counts: Integers,
    displacements: Matrix,
    first: Integers,
    *,
    active: float = 1.0,
    clipped: bool = False,
) -> Stage:
    """For every grid ``active`` in the cell in which u plus a displacement lies, and 0 elsewhere.

    Along a dimension the cells are [0, 1), [1, 2), ...; the last dimension varies fastest.

    Parameters
    ----------
    counts, displacements : ndarray, shape (grids, m)
        The number of cells and the displacement along each dimension.
    first : ndarray, shape (grids,)
        The first of the m neighbouring components that each grid covers.
    active : float
    clipped : bool
        Whether values outside of a grid count as in its outermost cells; otherwise as in none.
    """
    along = np.stack([counts, displacements], axis=2).reshape(len(counts), -1)
    head = np.array([*counts.shape, active, clipped], np.float64)
    parameters = np.concatenate([head, np.column_stack([first, along]).ravel()])
    size = int(counts.prod(axis=1).sum())
    emit = partial(_emit_cells, counts, displacements, first, active, clipped)
    return Stage(CELLS, parameters, size, emit)


@jit_borrowing
def evaluate_cells(parameters: Vector, given: Vector, out: Vector) -> None:
    """The numbers of grids and dimensions, ``active``, ``clipped``, and a row for every grid.

    A row has the first component, then the count and the displacement of every dimension.
    """
    grids, dimensions = int(parameters[0]), int(parameters[1])
    active, clipped = parameters[2], parameters[3] > 0.0
    for i in range(len(out)):
        out[i] = 0.0
    start, row = 0, 4
    for _ in range(grids):
        first, cell, size, inside = int(parameters[row]), 0, 1, True
        for d in range(dimensions):
            count = int(parameters[row + 1 + 2 * d])
            place = given[first + d] + parameters[row + 2 + 2 * d]
            cell *= count
            size *= count
            if 0.0 <= place < count:
                cell += int(place)
            else:
                inside = clipped
                if place >= count:
                    cell += count - 1
        if inside:
            out[start + cell] = active
        start += size
        row += 1 + 2 * dimensions


def _emit_cells(
    counts: Integers,
    displacements: Matrix,
    first: Integers,
    active: float,
    clipped: bool,
    graph: Graph,
    x: str,
) -> Active:
    grids, dimensions = counts.shape
    components = (first[:, None] + np.arange(dimensions)).ravel()
    place = graph("Add", graph("Gather", x, components, axis=1), displacements.ravel())
    along = counts.ravel().astype(np.float64)
    cell = graph("Floor", graph("Min", graph("Max", place, np.array(0.0)), along - 1.0))
    of_grid = np.repeat(np.eye(grids), dimensions, axis=0)
    steps = np.cumprod(np.column_stack([np.ones(grids), counts[:, :0:-1]]), axis=1)[:, ::-1]
    sizes = counts.prod(axis=1)
    starts, total = np.cumsum(sizes) - sizes, int(sizes.sum())
    places = graph("Add", graph("MatMul", cell, of_grid * steps.reshape(-1, 1)), 1.0 * starts)
    if not clipped:
        least, most = graph("GreaterOrEqual", place, np.zeros(1)), graph("Less", place, along)
        outside = graph("Cast", graph("Not", graph("And", least, most)), to="DOUBLE")
        missed = graph("Greater", graph("MatMul", outside, of_grid), np.zeros(1))
        places = graph("Where", missed, np.array(1.0 * total), places)
    return Active(graph("Cast", places, to="INT64"), np.full(total, active))
