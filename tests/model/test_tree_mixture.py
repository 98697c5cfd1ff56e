"""The cover tree keeps its rules, and the mixture over it is that of the recursion."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from rblspi.model.cover_tree import NONE
from rblspi.model.matrix_normal import MatrixNormalInverseWishart
from rblspi.model.tree_mixture import TreeMixture

PENALTY, VARIANCE = 0.01, 0.02
POINTS = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))


def some(rows, seed=0, dimensions=2):
    """Rows of a function that is linear in two parts."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(-1.0, 1.0, (rows, dimensions))
    y = np.column_stack([np.abs(s[:, 0]), s.sum(axis=1)])
    return np.hstack([np.ones((rows, 1)), s]), y + 0.05 * rng.standard_normal(y.shape)


def mixture(x, y, depth):
    return TreeMixture.of(x, y, PENALTY, VARIANCE, depth)


@settings(deadline=None, max_examples=50)
@given(points=st.lists(POINTS, min_size=1, max_size=60), depth=st.integers(1, 9))
def test_the_tree_covers_separates_and_nests(points, depth):
    x = np.hstack([np.ones((len(points), 1)), np.array(points)])
    found = mixture(x, np.zeros((len(points), 1)), depth)
    tree, size = found.tree, found.tree.size[0]
    places, radii = tree.points[:size], 0.5 ** tree.levels[:size]
    for node in range(1, size):
        parent = tree.parents[node]
        assert tree.levels[node] == tree.levels[parent] + 1 < depth
        assert np.linalg.norm(places[node] - places[parent]) <= radii[parent] * (1 + 1e-12)
        siblings = np.flatnonzero(tree.parents[:size] == parent)
        others = siblings[siblings != node]
        distances = np.linalg.norm(places[others] - places[node], axis=1)
        assert (distances > radii[node] * (1 - 1e-12)).all()
    for path in found.paths:
        there = path[path != NONE]
        assert there[0] == 0
        np.testing.assert_array_equal(tree.parents[there[1:]], there[:-1])
    if depth < 9:
        return
    # Every point is that of a node, unless nodes of the last level cover it.
    ends = found.paths[np.arange(len(x)), (found.paths != NONE).sum(axis=1) - 1]
    away = np.linalg.norm(places[ends] - x[:, 1:] / np.sqrt(2.0), axis=1)
    assert (away <= 0.5 ** (depth - 1)).all()


def density(x, y, before):
    """The density of a row given others, by the formula of the multivariate t."""
    posterior = MatrixNormalInverseWishart.of(*before, PENALTY, VARIANCE)
    u = np.linalg.solve(posterior.factor.T, x)
    degrees = posterior.degrees - len(y) + 1.0
    scale = posterior.scale_root @ posterior.scale_root.T * (1.0 + u @ u) / degrees
    return multivariate_t(x @ posterior.mean, scale, degrees).pdf(y)


def test_densities_and_weights_are_those_of_the_recursion():
    x, y = some(40)
    found = mixture(x, y, 4)
    weights = dict.fromkeys(range(found.tree.size[0]), 0.5)
    rows = {node: [] for node in weights}
    for i, whole in enumerate(found.paths):
        path = [node for node in whole if node != NONE]
        seen = [node for node in path if node == 0 or rows[node]]  # its own node comes afterwards
        q = None
        for node in reversed(seen):
            p = density(x[i], y[i], (x[rows[node]], y[rows[node]]))
            if q is None:
                q = p
            else:
                w = weights[node]
                q_below, q = q, w * p + (1.0 - w) * q
                weights[node] = w * p / (w * p + (1.0 - w) * q_below)
        assert np.exp(found.densities[i]) == pytest.approx(q, rel=1e-8)
        for node in path:
            rows[node].append(i)
    np.testing.assert_allclose(
        found.nodes.stop[: len(weights)], list(weights.values()), rtol=1e-7, atol=1e-12
    )


def test_a_tree_of_one_level_is_linear_regression_to_the_bit():
    x, y = some(100)
    found, linear = mixture(x, y, 1), MatrixNormalInverseWishart.of(x, y, PENALTY, VARIANCE)
    for one, other in zip(found.node(0), linear, strict=True):
        np.testing.assert_array_equal(one, other)
    noise = np.zeros_like(y)
    expected = linear.average().outputs(x, noise)
    np.testing.assert_allclose(found.average().outputs(x, noise), expected, atol=1e-9)


def test_the_mean_of_draws_is_the_average():
    x, y = some(60)
    found, rng, noise = mixture(x, y, 5), np.random.default_rng(0), np.zeros_like(y)
    draws = np.array([found.sample(rng).outputs(x, noise) for _ in range(400)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    distance = np.abs(draws.mean(axis=0) - found.average().outputs(x, noise))
    assert (distance < 5.0 * error + 1e-12).all()


def test_of_a_linear_function_it_pays_for_the_tree_and_of_two_parts_it_gains():
    """A tree predicts at worst by the prior odds of its root, ln 2, worse than its root does."""
    x, y = some(400)
    linear = y - np.column_stack([np.abs(x[:, 1]) - x[:, 1], np.zeros(400)])
    loss = mixture(x, linear, 1).densities.sum() - mixture(x, linear, 6).densities.sum()
    assert loss < np.log(2.0) + 1e-9
    gain = mixture(x, y, 6).densities.sum() - mixture(x, y, 1).densities.sum()
    assert gain > 100.0


def test_a_row_visits_few_nodes():
    """At most one node of every level, and the levels do not depend on the number of rows."""
    x, y = some(3000)
    found = mixture(x, y, 8)
    assert found.paths.shape == (3000, 8)
    children = np.bincount(found.tree.parents[1 : found.tree.size[0]])
    # Points in a ball of radius 2 that are more than 1 apart: at most 25 balls of radius 1/2 fit.
    assert children.max() <= 25
