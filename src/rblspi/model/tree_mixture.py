"""Bayesian regression by linear models in the nodes of a cover tree: a generalised context tree.

Every node c has a linear model of all rows that belong to it, as in `matrix_normal`. A row that
belongs to the nodes c_1, ..., c_K, from the root on, comes from the first of them at which a
descent stops. It stops at c with the probability w_c, 1/2 a priori, and at c_K in any case. With
the densities p_k of the row by the models, given the rows before it,

    q_K = p_K,    q_k = w_k p_k + (1 - w_k) q_{k+1},    w_k <- w_k p_k / q_k

and q_1 is the density of the mixture. Then the row is added to the models, and to the tree.

For outputs of d dimensions, e = y - M'x and h = x'K^-1 x, the density of a row is

    p = Gamma((nu + 1) / 2) / Gamma((nu + 1 - d) / 2) pi^(-d / 2) |Psi|^(-1 / 2)
        (1 + h)^(-d / 2) (1 + s)^(-(nu + 1) / 2),    s = e'Psi^-1 e / (1 + h)

and adding the row changes K^-1, Psi^-1 and M by matrices of rank one.

References
----------
N. Tziortziotis, C. Dimitrakakis and K. Blekas (2014). Cover tree Bayesian reinforcement learning.
Journal of Machine Learning Research 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.model.cover_tree import NONE, CoverTree, find, insert
from rblspi.model.matrix_normal import MatrixNormalInverseWishart

#: ln(w / (1 - w)) of a node that has seen nothing: w = 1/2, as in context tree weighting
ODDS = 0.0


class Nodes(NamedTuple):
    """The models of all nodes, in the form that rows change, and their weights."""

    inverse: Matrix  # K^-1          (nodes, inputs, inputs)
    mean: Matrix  # M                (nodes, inputs, outputs)
    scale_inverse: Matrix  # Psi^-1  (nodes, outputs, outputs)
    log_scale: Vector  # ln |Psi|    (nodes,)
    degrees: Vector  # nu
    odds: Vector  # ln(w / (1 - w))

    @property
    def stop(self) -> Vector:
        """The probabilities w."""
        probabilities: Vector = expit(self.odds)
        return probabilities

    @classmethod
    def of(cls, nodes: int, inputs: int, outputs: int, penalty: float, variance: float) -> Self:
        """The priors of `MatrixNormalInverseWishart.of`."""
        return cls(
            np.tile(np.eye(inputs) / penalty, (nodes, 1, 1)),
            np.zeros((nodes, inputs, outputs)),
            np.tile(np.eye(outputs) / variance, (nodes, 1, 1)),
            np.full(nodes, outputs * math.log(variance)),
            np.full(nodes, outputs + 2.0),
            np.full(nodes, ODDS),
        )


@dataclass(frozen=True, eq=False)
class TreeMixture:
    """The posterior over the tree and its models, given rows in their order."""

    x: Matrix  # (rows, inputs); the first input is 1, the next ones are the point of the row
    y: Matrix  # (rows, outputs)
    penalty: float
    variance: float
    tree: CoverTree
    nodes: Nodes
    paths: Integers  # the nodes of every row, with its own        (rows, depth)
    densities: Vector  # ln q_1 of every row, given those before it  (rows,)

    @classmethod
    def of(cls, x: Matrix, y: Matrix, penalty: float, variance: float, depth: int) -> Self:
        """The posterior after rows of inputs and outputs; there may be none.

        Inputs are (1, s), with s in [-1, 1]^d. The arguments are those of
        `MatrixNormalInverseWishart.of`, and the number of levels of the tree.
        """
        (rows, inputs), outputs = x.shape, y.shape[1]
        tree = CoverTree.empty(rows, inputs - 1, depth)
        nodes = Nodes.of(rows + 1, inputs, outputs, penalty, variance)
        paths, densities = np.full((rows, depth), NONE), np.empty(rows)
        columns = np.ascontiguousarray(x), np.ascontiguousarray(y), _points(x)
        _absorb(tree, nodes, *columns, paths, densities)
        return cls(x, y, penalty, variance, tree, nodes, paths, densities)

    def node(self, node: int) -> MatrixNormalInverseWishart:
        """The posterior of the model of a node."""
        level = int(self.tree.levels[node])
        rows = np.flatnonzero(self.paths[:, level] == node)
        given = self.x[rows], self.y[rows], self.penalty, self.variance
        return MatrixNormalInverseWishart.of(*given)

    def sample(self, rng: np.random.Generator) -> DrawnTree:
        """Draw where descents stop; models are drawn when they are reached."""
        probabilities = self.nodes.stop
        stops = rng.random(len(probabilities)) < probabilities
        return DrawnTree(self, stops, int(rng.integers(2**62)))

    def average(self) -> MeanOfTrees:
        """The mean of the predictions."""
        return MeanOfTrees(self)


class DrawnTree(NamedTuple):
    """A partition of the inputs, with a linear model in every part."""

    mixture: TreeMixture
    stops: Mask  # (nodes,)
    seed: int  # of the models, and of the number of their node

    def outputs(self, x: Matrix, noise: Matrix) -> Matrix:
        """Rows of outputs for rows of inputs and of standard normal noise."""
        paths = self.mixture.tree.paths(_points(x))
        last = (paths != NONE).sum(axis=1) - 1
        stops = self.stops[paths]
        stops[np.arange(len(x)), last] = True
        reached = paths[np.arange(len(x)), stops.argmax(axis=1)]
        found = np.empty((len(x), self.mixture.y.shape[1]))
        for node in np.unique(reached):
            rows = reached == node
            rng = np.random.default_rng((self.seed, node))
            found[rows] = self.mixture.node(node).sample(rng).outputs(x[rows], noise[rows])
        return found


class MeanOfTrees(NamedTuple):
    """Means over where descents stop and over models."""

    mixture: TreeMixture

    def outputs(self, x: Matrix, noise: Matrix) -> Matrix:
        """Rows of outputs for rows of inputs; there is no noise."""
        paths, nodes = self.mixture.tree.paths(_points(x)), self.mixture.nodes
        found, left = np.zeros((len(x), nodes.mean.shape[2])), np.ones(len(x))
        stop = nodes.stop
        for level, path in enumerate(paths.T):
            rows = path != NONE
            after = paths[:, level + 1] if level + 1 < paths.shape[1] else np.full(len(x), NONE)
            share = left * np.where(after == NONE, 1.0, stop[path]) * rows
            found += share[:, None] * np.einsum("ni,nij->nj", x, nodes.mean[path])
            left = left - share
        return found


def _points(x: Matrix) -> Matrix:
    """The points of rows: not farther than 1 from 0."""
    points = x[:, 1:] / math.sqrt(max(x.shape[1] - 1, 1))
    return np.ascontiguousarray(points)


@jit
def _absorb(
    tree: CoverTree,
    nodes: Nodes,
    x: Matrix,
    y: Matrix,
    points: Matrix,
    paths: Integers,
    densities: Vector,
) -> None:
    """Add rows one after the other, and write ln q_1 of each."""
    error, u, v = np.empty(y.shape[1]), np.empty(x.shape[1]), np.empty(y.shape[1])
    log_p = np.empty(paths.shape[1])
    for i in range(len(x)):
        count = find(tree, points[i], paths[i])
        for k in range(count):
            log_p[k] = _add(nodes, paths[i, k], x[i], y[i], error, u, v)
        densities[i] = _weigh(nodes, paths[i, :count], log_p)
        longer = insert(tree, points[i], paths[i], count)
        if longer > count:
            _add(nodes, paths[i, count], x[i], y[i], error, u, v)


@jit_borrowing
def _weigh(nodes: Nodes, path: Integers, log_p: Vector) -> float:
    """Update the odds along a path, from its end on; the result is ln q_1."""
    log_q = float(log_p[len(path) - 1])
    for k in range(len(path) - 2, -1, -1):
        odds, ratio = nodes.odds[path[k]], log_p[k] - log_q
        nodes.odds[path[k]] = odds + ratio
        # ln((w p + (1 - w) q) / q) with the odds w / (1 - w)
        log_q += _log_one_plus_exp(odds + ratio) - _log_one_plus_exp(odds)
    return log_q


@jit_borrowing
def _log_one_plus_exp(x: float) -> float:
    """Compute ln(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@jit_borrowing
def _add(nodes: Nodes, c: int, x: Vector, y: Vector, error: Vector, u: Vector, v: Vector) -> float:
    """Add a row to the model of node c; the result is ln p before that."""
    inputs, outputs = len(x), len(y)
    h, s = 0.0, 0.0
    for i in range(inputs):
        u[i] = 0.0
        for j in range(inputs):
            u[i] += nodes.inverse[c, i, j] * x[j]
        h += x[i] * u[i]
    for j in range(outputs):
        error[j] = y[j]
        for i in range(inputs):
            error[j] -= nodes.mean[c, i, j] * x[i]
    for i in range(outputs):
        v[i] = 0.0
        for j in range(outputs):
            v[i] += nodes.scale_inverse[c, i, j] * error[j]
        s += error[i] * v[i] / (1.0 + h)
    degrees = float(nodes.degrees[c])
    log_p = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * (degrees + 1.0 - outputs))
    log_p -= 0.5 * (outputs * (math.log(math.pi) + math.log1p(h)) + nodes.log_scale[c])
    log_p -= 0.5 * (degrees + 1.0) * math.log1p(s)
    for i in range(inputs):
        for j in range(inputs):
            nodes.inverse[c, i, j] -= u[i] * u[j] / (1.0 + h)
        for j in range(outputs):
            nodes.mean[c, i, j] += u[i] * error[j] / (1.0 + h)
    for i in range(outputs):
        for j in range(outputs):
            nodes.scale_inverse[c, i, j] -= v[i] * v[j] / ((1.0 + h) * (1.0 + s))
    nodes.log_scale[c] += math.log1p(s)
    nodes.degrees[c] += 1.0
    return float(log_p)
