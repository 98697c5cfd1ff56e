"""slLSTD is LSTD where values are linear, and finds exact values where they are not."""

import numpy as np
import pytest
from gymnasium.spaces import Box

from rblspi import LSTD, Polynomial
from rblspi.data import Transitions
from rblspi.offline import SLLSTD
from tests.support.logs import some_log

BASIS = Polynomial(2, low=-1, high=1)


def test_where_values_are_linear_it_is_lstd():
    log = some_log(200)
    space = Box(-1.0, 1.0, log.observations.shape[1:], np.float64)
    features = BASIS.build(space)
    found = SLLSTD(
        lambda parameters, state: parameters @ features(state),
        np.zeros(features.size),
        prior_std=2.0,
        noise_std=0.5,
        discount=0.9,
    ).fit(log)
    # The ridge of LSTD leaves out the constant: here the same system with the whole identity.
    lstd = LSTD(BASIS, discount=0.9, ridge=0, observation_space=space).fit(log)
    matrix = lstd.statistics_.drift + 0.25**2 * np.eye(features.size)
    expected = np.linalg.solve(matrix, lstd.statistics_.reward)
    np.testing.assert_allclose(found.parameters, expected, rtol=1e-8, atol=1e-10)
    x = features(log.observations)
    covariance = np.linalg.inv(np.eye(features.size) / 4.0 + x.T @ x / 0.25)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8, atol=1e-12)
    std = found.predict(log.observations[0], return_std=True)[1]
    assert std == pytest.approx(np.sqrt(x[0] @ covariance @ x[0]))


def test_where_values_are_not_linear_it_finds_the_exact_ones():
    """A walk to the right with a reward of 1 at its end: V(s) = gamma^(9 - s) = exp(a + b s)."""
    states, gamma = np.arange(10.0), 0.8
    log = Transitions(
        states,
        np.zeros(10, np.int64),
        (states == 9) * 1.0,
        np.minimum(states + 1, 9.0),
        states == 9,
        np.zeros(10, np.bool_),
    )
    found = SLLSTD(
        lambda p, s: np.exp(p[:, 0] + p[:, 1] * s),
        [-1.0, 0.0],
        prior_std=0.3,
        noise_std=0.1,
        discount=gamma,
    )
    for _ in range(100):
        found.fit(log)
    np.testing.assert_allclose([found.predict(s) for s in states], gamma ** (9 - states), atol=0.01)


def test_it_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"start=\[\[0.0\]\] must be a list of finite numbers"):
        SLLSTD(lambda p, s: p[:, 0], [[0.0]])
    with pytest.raises(ValueError, match="must return a finite number for each of 2 rows"):
        SLLSTD(lambda p, s: p, [0.0, 1.0]).update(0.0, 0.0, 0.0)
