"""What is updated incrementally equals what is derived from the sums, by every method."""

import numpy as np
import pytest

from rblspi import RBLSPI, RBFGrid
from rblspi.model import incremental
from rblspi.model.buffer import new_buffer

CAR = "rblspi/MountainCar-v0"
METHODS = (incremental.RECOMPUTE, incremental.BLOCK_UPDATE, incremental.RANK_ONE)


def precision(posterior):
    """Sigma + lambda I, whichever way it is incremental."""
    k = len(posterior.factor)
    if posterior.method == incremental.RANK_ONE:
        upper = np.triu(posterior.factor[:, :k])
        return upper.T @ upper
    sigma = np.triu(posterior.normal[:k, :k])
    return sigma + np.triu(sigma, 1).T + posterior.penalty * np.eye(k)


def right_hand_side(posterior):
    k = len(posterior.factor)
    if posterior.method == incremental.RANK_ONE:
        return np.triu(posterior.factor[:, :k]).T @ posterior.factor[:, k]
    return posterior.normal[:k, k].copy()


def from_sums(posterior):
    """The same two by NumPy, from nothing but the sums."""
    statistics = posterior.statistics
    k = statistics.weights
    sigma, g = posterior.penalty * np.eye(k), np.zeros(k)
    for gram, cross in zip(statistics.gram, statistics.cross, strict=True):
        solved = np.linalg.solve(gram + posterior.ridge * np.eye(len(gram)), cross)
        sigma += cross[:, :-1].T @ solved[:, :-1]
        g += cross[:, :-1].T @ solved[:, -1]
    return sigma, g


def relative(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def rounding(posterior, updates):
    """What rounding may do to the posterior in so many updates.

    Every update solves by factors R of C, to a relative error of eps cond(R) = eps cond(C)^1/2.
    """
    gram = posterior.statistics.gram + posterior.ridge * np.eye(posterior.statistics.features)
    return updates * np.finfo(float).eps * float(np.linalg.cond(gram).max()) ** 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rblspi.model.posterior.ConditionWarning")
@pytest.mark.parametrize(
    ("update_every", "method"),
    [(100, incremental.RECOMPUTE), (20, incremental.BLOCK_UPDATE), (1, incremental.RANK_ONE)],
)
@pytest.mark.parametrize(
    ("alpha", "beta"), [(1e-6, 1e-6), (1e-6, 1e6), (1e6, 1e-6), (1e6, 1e6), (1.0, 1.0)]
)
def test_many_transitions(alpha, beta, update_every, method):
    """The last rebuild is almost as long ago as it can be."""
    steps = 6 * incremental.REBUILD_EVERY - update_every
    settings = {"prior_precision": alpha, "noise_precision": beta, "update_every": update_every}
    agent = RBLSPI(CAR, RBFGrid(8), seed=0, **settings).learn(steps)
    posterior = agent.state.posterior
    assert posterior.method == method
    assert posterior.counters[incremental.TRANSITIONS] == steps - steps % update_every
    sigma, g = from_sums(posterior)
    tolerance = max(1e-8, rounding(posterior, incremental.REBUILD_EVERY // update_every))
    assert relative(precision(posterior), sigma) < tolerance
    assert relative(right_hand_side(posterior), g) < tolerance
    mean = np.linalg.solve(sigma, g)
    condition = np.linalg.cond(sigma)
    assert relative(agent.state.mean, mean) < max(1e-8, 1e-14 * condition)


def test_the_agent_warns_when_few_digits_of_the_mean_are_left():
    agent = RBLSPI(
        CAR, RBFGrid(8, width=6.0), prior_precision=1e-6, noise_precision=1e6, ridge=1e-12, seed=0
    )
    with pytest.warns(UserWarning, match="digits of the mean can be trusted"):
        agent.learn(3000)


def new_posterior(method, rows):
    return incremental.new_incremental_posterior(3, 7, 1e-6, 0.01, capacity=rows, method=method)


def absorb_random(posterior, rows, rng):
    buffer = new_buffer(rows, 7)
    buffer.x[:], buffer.y[:] = rng.standard_normal((2, rows, 7))
    buffer.reward[:] = rng.standard_normal(rows)
    buffer.action[:] = rng.integers(3, size=rows)
    buffer.next_action[:] = rng.integers(-1, 3, size=rows)
    buffer.size[0] = rows
    incremental.absorb(posterior, buffer, 0.9)


@pytest.mark.parametrize("rows", [1, 2, 5, 20])
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree_with_the_sums(method, rows):
    rng = np.random.default_rng(rows)
    posterior = new_posterior(method, rows)
    perturbation, mean = rng.standard_normal(21), np.empty(21)
    for _ in range(30):
        absorb_random(posterior, rows, rng)
        if method == incremental.RECOMPUTE:
            incremental.improve(posterior, mean, perturbation.copy())
        sigma, g = from_sums(posterior)
        assert relative(precision(posterior), sigma) < 1e-8
        assert relative(right_hand_side(posterior), g) < 1e-8
    sampled = perturbation.copy()
    incremental.improve(posterior, mean, sampled)
    np.testing.assert_allclose(mean, np.linalg.solve(sigma, g), rtol=1e-7, atol=1e-9)
    offset = np.linalg.solve(np.linalg.cholesky(sigma).T, perturbation)
    np.testing.assert_allclose(sampled - mean, offset, rtol=1e-6, atol=1e-8)


def test_a_failed_downdate_rebuilds_from_the_sums():
    rng = np.random.default_rng(0)
    posterior = new_posterior(incremental.RANK_ONE, 1)
    for _ in range(40):
        absorb_random(posterior, 1, rng)
    posterior.factor[:] *= 1e-9  # as if rounding had eaten it
    absorb_random(posterior, 1, rng)
    assert posterior.counters[incremental.FAILED_DOWNDATES] == 1
    assert relative(precision(posterior), from_sums(posterior)[0]) < 1e-8


def test_a_matrix_that_is_not_positive_definite_gets_jitter_which_is_counted():
    posterior = new_posterior(incremental.BLOCK_UPDATE, 1)._replace(penalty=0.0)
    posterior.normal[:] = 0.0
    posterior.normal[0, 0] = 1.0
    incremental.improve(posterior, np.empty(21), np.zeros(21))
    assert posterior.counters[incremental.JITTERED] > 0
    assert 0.0 < posterior.jitter[0] < 1e-10
