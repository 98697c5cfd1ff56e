"""A network learnt from a log is the basis of an estimator."""

import numpy as np
import pytest

from rblspi import FQI, LinearPolicy, Network, Polynomial
from rblspi.data import Transitions

pytest.importorskip("jax", reason="jax is not installed")


def exclusive_or(rows, seed):
    """Episodes of one step: action 1 has the reward sign(s_0 s_1), action 0 always 0."""
    rng = np.random.default_rng(seed)
    seen, actions = rng.uniform(-3.0, 3.0, (rows, 2)), rng.integers(2, size=rows)
    rewards = actions * np.sign(seen[:, 0] * seen[:, 1])
    ends = np.ones(rows, np.bool_)
    return Transitions(seen, actions, rewards, seen, ends, ~ends)


def test_learnt_features_express_what_given_ones_cannot(tmp_path):
    """The sign of a product has no linear part: the rewards of action 1 have the variance 1."""
    log, test = exclusive_or(4000, seed=0), exclusive_or(1000, seed=1)
    errors = {}
    for basis in (Polynomial(1, low=-3.0, high=3.0), Network(16, seed=1)):
        fitted = FQI(basis, 2).fit(log)
        wrong = fitted.predict(test.observations, test.actions) - test.rewards
        errors[type(basis)] = np.mean(wrong[test.actions == 1] ** 2)
    assert errors[Polynomial] > 0.9
    assert errors[Network] < 0.3
    assert fitted.basis_.weights is not None
    fitted.save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(loaded(test.observations), fitted.act(test.observations))


def test_a_network_that_was_learnt_stays_as_it_is():
    log = exclusive_or(200, seed=0)
    learnt = FQI(Network(4), 2).fit(log).basis_
    assert FQI(learnt, 2).fit(exclusive_or(200, seed=1)).basis_ == learnt
