import gymnasium as gym
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from rblspi.features import Polynomial


def test_chain_walk():
    """States 1..20 with the basis (10 s / 20)^i, i = 0..4; the space counts from 0."""
    features = Polynomial(4, scale=10, low=-1, high=19).build(gym.spaces.Discrete(20))
    s = np.arange(1, 21)
    expected = np.stack([(10 * s / 20) ** i for i in range(5)], axis=1)
    np.testing.assert_array_equal(features(s - 1), expected)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_all_monomials_in_the_order_of_scikit_learn(dimensions, degree):
    space = gym.spaces.Box(-2.0, 6.0, (dimensions,), dtype=np.float64)
    observations = np.random.default_rng(0).uniform(-3.0, 7.0, (20, dimensions))
    expected = PolynomialFeatures(degree).fit_transform(3.0 * (observations + 2.0) / 8.0)
    features = Polynomial(degree, scale=3.0).build(space)
    assert features.size == expected.shape[1]
    np.testing.assert_allclose(features(observations), expected, rtol=1e-13)
