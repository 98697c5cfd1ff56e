"""Cover trees: nested neighbourhoods of points, as fine as the points are dense.

A node of level l stands for the ball of radius 2^-l around its point. The tree keeps three rules:

    covering      the point of a child lies in the ball of its parent
    separation    points of children of one parent are more than their radius apart
    nesting       a point belongs to a node only if it belongs to its parent

A point belongs to the nearest child in whose ball it lies, and so on down the tree. If there is no
such child, the point becomes one. An insertion visits the children of one node per level, whose
number is bounded because they are separated. This is the simplified tree of Izbicki and Shelton.

References
----------
A. Beygelzimer, S. Kakade and J. Langford (2006). Cover trees for nearest neighbor. ICML.

M. Izbicki and C. Shelton (2015). Faster cover trees. ICML.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Integers, Matrix, Vector

#: the number of a node that does not exist
NONE = -1


class CoverTree(NamedTuple):
    """Nodes in the order of their insertion; the first is the root, around 0."""

    points: Matrix  #           (capacity, d)
    levels: Integers  #         (capacity,)
    parents: Integers
    first_child: Integers
    next_sibling: Integers
    size: Integers  # nodes     (1,)
    depth: int  # levels at the most, with that of the root

    @classmethod
    def empty(cls, capacity: int, dimensions: int, depth: int) -> Self:
        """Only the root, whose ball has the radius 1 around 0."""
        nodes = capacity + 1
        return cls(
            points=np.zeros((nodes, dimensions)),
            levels=np.zeros(nodes, np.int64),
            parents=np.full(nodes, NONE),
            first_child=np.full(nodes, NONE),
            next_sibling=np.full(nodes, NONE),
            size=np.ones(1, np.int64),
            depth=depth,
        )

    def paths(self, points: Matrix) -> Integers:
        """The nodes that points belong to, from the root on, shape (N, depth); `NONE` after them.

        Points are not farther than 1 from 0.
        """
        paths = np.full((len(points), self.depth), NONE)
        _find_all(self, points, paths)
        return paths


@jit_borrowing
def find(tree: CoverTree, point: Vector, path: Integers) -> int:
    """Write the nodes that a point belongs to, from the root on; the result is their number."""
    node, count = 0, 0
    while node != NONE:
        path[count] = node
        count += 1
        radius = 0.5 ** (tree.levels[node] + 1)
        child, nearest, node = tree.first_child[node], radius * radius, NONE
        while child != NONE:
            square = 0.0
            for j in range(len(point)):
                square += (point[j] - tree.points[child, j]) ** 2
            if square <= nearest:
                nearest, node = square, child
            child = tree.next_sibling[child]
    return count


@jit_borrowing
def insert(tree: CoverTree, point: Vector, path: Integers, count: int) -> int:
    """Add a point below the nodes it belongs to, and to the path; the result is its new length.

    Nothing is added below the last level, or to a node with the same point.
    """
    parent, child = path[count - 1], tree.size[0]
    same = True
    for j in range(len(point)):
        same = same and point[j] == tree.points[parent, j]
    if count == tree.depth or same:
        return count
    for j in range(len(point)):
        tree.points[child, j] = point[j]
    tree.levels[child] = tree.levels[parent] + 1
    tree.parents[child] = parent
    tree.next_sibling[child] = tree.first_child[parent]
    tree.first_child[parent] = child
    tree.size[0] += 1
    path[count] = child
    return count + 1


@jit
def _find_all(tree: CoverTree, points: Matrix, paths: Integers) -> None:
    for i in range(len(points)):
        find(tree, points[i], paths[i])
