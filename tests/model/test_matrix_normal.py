"""The posterior of a regression of several outputs, against its moments and its limits."""

import numpy as np

from rblspi.model.matrix_normal import MatrixNormalInverseWishart


def some(rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    b = rng.standard_normal((3, 2))
    root = np.array([[0.3, 0.0], [0.2, 0.1]])
    return x, x @ b + rng.standard_normal((rows, 2)) @ root.T, b, root


def test_without_rows_it_is_the_prior():
    prior = MatrixNormalInverseWishart.of(np.zeros((0, 3)), np.zeros((0, 2)), 0.25, 4.0)
    np.testing.assert_array_equal(prior.mean, np.zeros((3, 2)))
    np.testing.assert_allclose(prior.factor, 0.5 * np.eye(3))
    model = prior.average()
    np.testing.assert_allclose(model.root @ model.root.T, 4.0 * np.eye(2))


def test_the_scale_is_that_of_the_formula():
    """Psi = Psi_0 + Y'Y - M'K M."""
    x, y, *_ = some(20)
    found = MatrixNormalInverseWishart.of(x, y, 0.5, 2.0)
    k = x.T @ x + 0.5 * np.eye(3)
    mean = np.linalg.inv(k) @ x.T @ y
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    scale = 2.0 * np.eye(2) + y.T @ y - mean.T @ k @ mean
    np.testing.assert_allclose(found.scale_root @ found.scale_root.T, scale, rtol=1e-10)
    assert found.degrees == 2 + 2 + 20


def test_samples_have_the_moments_of_the_posterior():
    """E V = Psi / (nu - d - 1), E B = M, and cov(vec B) = E V (x) K^-1."""
    x, y, *_ = some(12)
    posterior = MatrixNormalInverseWishart.of(x, y, 0.5, 0.2)
    rng, draws = np.random.default_rng(1), 20_000
    models = [posterior.sample(rng) for _ in range(draws)]
    noise = np.array([m.root @ m.root.T for m in models])
    expected = posterior.scale_root @ posterior.scale_root.T / (posterior.degrees - 3.0)
    error = noise.std(axis=0) / np.sqrt(draws)
    assert (np.abs(noise.mean(axis=0) - expected) < 5 * error).all()
    weights = np.array([m.weights.ravel(order="F") for m in models])
    error = weights.std(axis=0) / np.sqrt(draws)
    assert (np.abs(weights.mean(axis=0) - posterior.mean.ravel(order="F")) < 5 * error).all()
    inverse = np.linalg.inv(x.T @ x + 0.5 * np.eye(3))
    covariance = np.kron(expected, inverse)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    # The kurtosis of B is that of a t distribution with about 12 degrees of freedom, below 4.
    assert (np.abs(np.cov(weights.T) - covariance) < 5 * 2 * scale / np.sqrt(draws)).all()
