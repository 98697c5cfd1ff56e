"""What is kept up to date equals what is derived from the sums, by whichever route."""

from __future__ import annotations

import numpy as np
import pytest

from rblspi import RBLSPI, RBFGrid
from rblspi import belief as kept
from rblspi import linear_algebra as la
from rblspi.recent import new_recent

CAR = "rblspi/MountainCar-v0"
ROUTES = (kept.AFRESH, kept.UPDATE, kept.EXCHANGE)


def precision(belief: kept.Belief) -> np.ndarray:
    """Sigma + lambda I, whichever way it is kept."""
    k = len(belief.factor)
    if belief.route == kept.EXCHANGE:
        upper = np.triu(belief.factor[:, :k])
        return upper.T @ upper
    sigma = np.triu(belief.moment[:k, :k])
    return sigma + np.triu(sigma, 1).T + belief.penalty * np.eye(k)


def right_hand_side(belief: kept.Belief) -> np.ndarray:
    k = len(belief.factor)
    if belief.route == kept.EXCHANGE:
        return np.triu(belief.factor[:, :k]).T @ belief.factor[:, k]
    return belief.moment[:k, k].copy()


def from_sums(belief: kept.Belief) -> tuple[np.ndarray, np.ndarray]:
    """The same two by NumPy, from nothing but the sums."""
    statistics = belief.statistics
    k = statistics.weights
    sigma, g = belief.penalty * np.eye(k), np.zeros(k)
    for gram, cross in zip(statistics.gram, statistics.cross, strict=True):
        solved = np.linalg.solve(gram + belief.ridge * np.eye(len(gram)), cross)
        sigma += cross[:, :-1].T @ solved[:, :-1]
        g += cross[:, :-1].T @ solved[:, -1]
    return sigma, g


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rblspi.posterior.ConditionWarning")
@pytest.mark.parametrize(
    ("update_every", "route"), [(100, kept.AFRESH), (20, kept.UPDATE), (1, kept.EXCHANGE)]
)
@pytest.mark.parametrize(
    ("alpha", "beta"), [(1e-6, 1e-6), (1e-6, 1e6), (1e6, 1e-6), (1e6, 1e6), (1.0, 1.0)]
)
def test_a_million_transitions(alpha: float, beta: float, update_every: int, route: int) -> None:
    """The last rebuild is almost as long ago as it can be."""
    steps = 1_000_000 + kept.REBUILD_EVERY - update_every
    if update_every == 1:
        steps //= 10
    agent = RBLSPI(
        CAR,
        RBFGrid(8),
        prior_precision=alpha,
        noise_precision=beta,
        update_every=update_every,
        seed=0,
    ).learn(steps)
    belief = agent.state.belief
    assert belief.route == route
    assert belief.tally[kept.TRANSITIONS] == steps - steps % update_every
    sigma, g = from_sums(belief)
    assert relative(precision(belief), sigma) < 1e-8
    assert relative(right_hand_side(belief), g) < 1e-8
    mean = np.linalg.solve(sigma, g)
    condition = np.linalg.cond(sigma)
    assert relative(agent.state.mean, mean) < max(1e-8, 1e-14 * condition)


def test_the_agent_says_when_the_mean_is_little_worth() -> None:
    agent = RBLSPI(
        CAR, RBFGrid(8, width=6.0), prior_precision=1e-6, noise_precision=1e6, ridge=1e-12, seed=0
    )
    with pytest.warns(UserWarning, match="digits of the mean can be trusted"):
        agent.learn(3000)


def some_belief(route: int, rows: int) -> kept.Belief:
    return kept.new_belief(3, 7, 1e-6, 0.01, capacity=rows, route=route)


def absorb_random(belief: kept.Belief, rows: int, rng: np.random.Generator) -> None:
    recent = new_recent(rows, 7)
    recent.x[:rows] = rng.standard_normal((rows, 7))
    recent.y[:rows] = rng.standard_normal((rows, 7))
    recent.reward[:rows] = rng.standard_normal(rows)
    recent.action[:rows] = rng.integers(3, size=rows)
    recent.next_action[:rows] = rng.integers(-1, 3, size=rows)
    recent.size[0] = rows
    kept.absorb(belief, recent, 0.9)


@pytest.mark.parametrize("rows", [1, 2, 5, 20])
@pytest.mark.parametrize("route", ROUTES)
def test_all_routes_equal_the_sums(route: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    belief = some_belief(route, rows)
    direction, mean, sampled = rng.standard_normal(21), np.empty(21), np.empty(21)
    for _ in range(30):
        absorb_random(belief, rows, rng)
        if route == kept.AFRESH:
            kept.improve(belief, direction, mean, sampled)
        sigma, g = from_sums(belief)
        assert relative(precision(belief), sigma) < 1e-8
        assert relative(right_hand_side(belief), g) < 1e-8
    kept.improve(belief, direction, mean, sampled)
    np.testing.assert_allclose(mean, np.linalg.solve(sigma, g), rtol=1e-7, atol=1e-9)
    offset = np.linalg.solve(np.linalg.cholesky(sigma).T, direction)
    np.testing.assert_allclose(sampled - mean, offset, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("route", ROUTES)
def test_the_residual_is_the_least_regularised_misfit(route: int) -> None:
    """h - g'(Sigma + lambda I)^-1 g, the minimum of |A theta - b|^2_C^-1 + lambda |theta|^2."""
    rng = np.random.default_rng(4)
    belief = some_belief(route, 5)
    for _ in range(20):
        absorb_random(belief, 5, rng)
    theta = np.empty(21)
    kept.improve(belief, np.zeros(21), theta, np.empty(21))
    misfit = belief.penalty * theta @ theta
    for gram, cross in zip(belief.statistics.gram, belief.statistics.cross, strict=True):
        error = cross[:, :-1] @ theta - cross[:, -1]
        misfit += error @ np.linalg.solve(gram + belief.ridge * np.eye(7), error)
    assert belief.residual[0] == pytest.approx(misfit, rel=1e-6)


def test_the_agents_of_all_routes_agree() -> None:
    """K = 8 by every route: the same walk and the same posterior to 1e-8."""
    agents = []
    for route in ROUTES:
        agent = RBLSPI(
            CAR, RBFGrid(8), prior_precision=0.01, noise_precision=1.0, update_every=8, seed=2
        )
        agent.state = agent.state._replace(belief=agent.state.belief._replace(route=route))
        agents.append(agent.learn(2000))
    one = agents[0].state.belief
    for agent in agents[1:]:
        other = agent.state.belief
        np.testing.assert_array_equal(agents[0].episodes, agent.episodes)
        assert relative(precision(one), precision(other)) < 1e-8
        assert relative(right_hand_side(one), right_hand_side(other)) < 1e-8


def test_a_failed_exchange_rebuilds_from_the_sums() -> None:
    rng = np.random.default_rng(0)
    belief = some_belief(kept.EXCHANGE, 1)
    for _ in range(40):
        absorb_random(belief, 1, rng)
    belief.factor[:] *= 1e-9  # as if rounding had eaten it
    absorb_random(belief, 1, rng)
    assert belief.tally[kept.FAILED_EXCHANGES] == 1
    assert relative(precision(belief), from_sums(belief)[0]) < 1e-8


def test_a_matrix_that_is_not_positive_definite_is_lifted_and_told() -> None:
    belief = some_belief(kept.UPDATE, 1)._replace(penalty=0.0)
    belief.moment[:] = 0.0
    belief.moment[0, 0] = 1.0
    kept.improve(belief, np.zeros(21), np.empty(21), np.empty(21))
    assert belief.tally[kept.LIFTED] > 0
    assert 0.0 < belief.lift[0] < 1e-10


def test_rank_one_exchange() -> None:
    rng = np.random.default_rng(1)
    data = rng.standard_normal((50, 12))
    matrix = data.T @ data
    upper = np.linalg.cholesky(matrix).T.copy()
    v, w = rng.standard_normal((2, 12))
    expected = matrix + np.outer(v, v) - 0.01 * np.outer(w, w)
    assert la.rank_one_exchange(upper, v.copy(), 0.1 * w)
    np.testing.assert_allclose(upper.T @ upper, expected, rtol=1e-12, atol=1e-12)
    assert not la.rank_one_exchange(upper, np.zeros(12), 1e3 * w)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 30, la.SMALL, la.SMALL + 1])
def test_a_factor_carries_what_stands_behind(size: int) -> None:
    """By loops and by LAPACK; columns after ``stop`` stay as they are."""
    rng = np.random.default_rng(size)
    data = rng.standard_normal((2 * size, size))
    matrix = np.hstack([data.T @ data, rng.standard_normal((size, 9))])
    result = matrix.copy()
    assert la.factor(result, size, size + 7)
    upper = np.linalg.cholesky(matrix[:, :size]).T
    np.testing.assert_allclose(np.triu(result[:, :size]), upper, rtol=1e-9, atol=1e-12)
    behind = np.linalg.solve(upper.T, matrix[:, size : size + 7])
    np.testing.assert_allclose(result[:, size : size + 7], behind, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(result[:, size + 7 :], matrix[:, size + 7 :])
    columns = matrix[:, size:].copy()
    la.whiten_columns(upper.copy(), columns)
    np.testing.assert_allclose(columns[:, :7], behind, rtol=1e-8, atol=1e-11)
    matrix[-1, size - 1] = -1.0
    assert not la.factor(matrix, size, size)
