"""Choosing actions for a batch of features."""

import numpy as np
import pytest

from rblspi.policies.choice import EpsilonGreedy


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_features_in_any_order_and_precision_have_the_same_best_actions(order, kind):
    """A transformer of scikit-learn may return either."""
    rng = np.random.default_rng(0)
    weights, x = rng.standard_normal((3, 20)), rng.standard_normal((50, 20))
    policy = EpsilonGreedy(weights.astype(kind), 0.0, rng)
    chosen = policy(np.zeros((50, 1)), np.asarray(x, dtype=kind, order=order))
    np.testing.assert_array_equal(chosen, (x @ weights.T).argmax(axis=1))
