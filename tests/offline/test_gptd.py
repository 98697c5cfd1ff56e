"""Temporal differences of a Gaussian process are the regression that a textbook writes down."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rblspi import GPTD, LSTD, OneHot
from rblspi.data import Transitions
from rblspi.offline.gptd import dictionary
from tests.support.garnet import Garnet

ROWS, WIDTH, ALPHA, BETA = 60, 0.3, 0.7, 2.0
RNG = np.random.default_rng(1)
STATES = RNG.uniform(size=(ROWS + 1, 2))
ENDED = RNG.random(ROWS) < 0.1
LOG = Transitions.from_arrays(
    *(STATES[:-1], RNG.integers(2, size=ROWS), RNG.standard_normal(ROWS), STATES[1:], ENDED),
    truncated=(RNG.random(ROWS) < 0.1) & ~ENDED,
    elapsed=RNG.choice([0.5, 1.0, 3.0], ROWS),
)


def some_policy(observations):
    return (observations[:, 0] > 0.5).astype(int)


def kernel(s, a, t, b):
    """The covariance of values of states and actions."""
    distances = np.square(s[:, None] - t).sum(axis=2)
    return (1.0 + np.exp(-0.5 * distances / WIDTH**2)) * (a[:, None] == b) / ALPHA


def textbook(trace_decay, states, actions):
    """Mean and standard deviation of values by dense matrices: H K H' + noise."""
    discounts = np.where(ENDED, 0.0, LOG.discounts(0.9))
    noise = np.diag(1.0 + (trace_decay * discounts) ** 2)
    after = some_policy(LOG.next_observations)
    for t in range(1, ROWS):
        if not LOG.starts()[t] and after[t - 1] == LOG.actions[t]:
            noise[t, t - 1] = noise[t - 1, t] = -trace_decay * discounts[t - 1]
    seen = np.vstack([LOG.observations, LOG.next_observations]), np.append(LOG.actions, after)
    differences = np.hstack([np.eye(ROWS), -np.diag(discounts)])  # H
    covariance = differences @ kernel(*seen, *seen) @ differences.T + noise / BETA
    cross = kernel(states, actions, *seen) @ differences.T
    mean = cross @ np.linalg.solve(covariance, LOG.rewards)
    explained = (cross * np.linalg.solve(covariance, cross.T).T).sum(axis=1)
    return mean, np.sqrt(2.0 / ALPHA - explained)


@pytest.mark.parametrize("trace_decay", [0.0, 0.6, 1.0])
def test_with_every_state_in_the_dictionary_it_is_that_of_the_textbook(trace_decay):
    novelty = 1e-9
    gptd = GPTD(
        actions=2,
        discount=0.9,
        trace_decay=trace_decay,
        novelty=novelty,
        width=WIDTH,
        prior_precision=ALPHA,
        noise_precision=BETA,
        ridge=1e-10,
        observation_space=Box(0.0, 1.0, (2,), np.float64),
    ).fit([LOG.rows(0, 7), LOG.rows(7, 8), LOG.rows(8, ROWS)], some_policy)
    states, actions = LOG.observations, 1 - LOG.actions
    found = gptd.predict(states, actions, return_std=True)
    for one, other in zip(found, textbook(trace_decay, states, actions), strict=True):
        np.testing.assert_allclose(one, other, atol=10.0 * np.sqrt(novelty / ALPHA))


def test_with_lambda_1_it_is_regression_on_returns():
    """The sums of LSTD(1) over episodes that terminate are those of the regression on returns."""
    problem = Garnet.random(RNG, states=6, ends=0.1)
    log, _ = problem.log(RNG, 30, 30, problem.following(1.0))
    log = replace(
        log, terminated=log.terminated | log.truncated, truncated=np.zeros(log.size, bool)
    )
    arguments = {"discount": 0.9, "trace_decay": 1.0, "observation_space": Discrete(6)}
    gptd, lstd = GPTD(**arguments).fit(log), LSTD(OneHot(), **arguments).fit(log)
    np.testing.assert_allclose(gptd.statistics_.gram[0], lstd.statistics_.drift, atol=1e-10)
    np.testing.assert_allclose(gptd.statistics_.reward, lstd.statistics_.reward, atol=1e-10)


@pytest.mark.parametrize("novelty", [0.3, 0.01])
def test_a_dictionary_explains_all_states_and_each_of_its_own_is_new(novelty):
    states = RNG.uniform(0.0, 4.0, size=(300, 2))
    chosen = dictionary(states, novelty)

    def unexplained(by, row):
        near = np.exp(-0.5 * np.square(states[by] - states[row]).sum(axis=1))
        gram = np.exp(-0.5 * np.square(states[by][:, None] - states[by]).sum(axis=2))
        return 1.0 - near @ np.linalg.solve(gram, near)

    assert max(unexplained(chosen, row) for row in range(300)) <= novelty + 1e-8
    for place in range(1, len(chosen)):
        assert unexplained(chosen[:place], chosen[place]) > novelty
