"""LSTD(lambda) and its relatives: traces run along episodes, and are those of the textbook."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from rblspi import BLSPI, BLSTD, LSPI, LSTD, LinearPolicy, Multilinear, OneHot
from rblspi.data import Transitions
from tests.support.garnet import Garnet

STATES, ACTIONS, DISCOUNT = 6, 3, 0.9
RNG = np.random.default_rng(0)
PROBLEM = Garnet.random(RNG, STATES, ACTIONS, ends=0.1)
LOG, _ = PROBLEM.log(RNG, 50, 30, PROBLEM.following(0.6))
TIMED = replace(LOG, elapsed=RNG.choice([0.5, 1.0, 3.0], LOG.size))
#: every episode terminates
ENDED = replace(LOG, terminated=LOG.terminated | LOG.truncated, truncated=np.zeros(LOG.size, bool))


def made(kind, trace_decay, actions=None, **arguments):
    arguments = {"discount": DISCOUNT, "observation_space": Discrete(STATES)} | arguments
    return kind(OneHot(), actions, trace_decay=trace_decay, **arguments)


def textbook(log, trace_decay):
    """d and z of every row, by a loop."""
    errors, traces, trace = [], [], np.zeros(STATES * ACTIONS)
    discounts = np.broadcast_to(log.discounts(DISCOUNT), log.size)
    after = PROBLEM.act(log.next_observations)
    for t, (s, a, s_next) in enumerate(
        zip(log.observations, log.actions, log.next_observations, strict=True)
    ):
        feature, ahead = np.zeros((2, ACTIONS, STATES))
        feature[a, s] = 1.0
        ahead[after[t], s_next] = discounts[t] * (1.0 - log.terminated[t])
        follows = t > 0 and not log.terminated[t - 1] and not log.truncated[t - 1]
        decay = trace_decay * discounts[t - 1] if follows and after[t - 1] == a else 0.0
        trace = decay * trace + feature.ravel()
        errors.append((feature - ahead).ravel())
        traces.append(trace)
    return np.array(errors), np.array(traces)


@pytest.mark.parametrize("log", [LOG, TIMED])
@pytest.mark.parametrize("trace_decay", [0.3, 1.0])
def test_sums_are_those_of_the_textbook(log, trace_decay):
    blstd = made(BLSTD, trace_decay, ACTIONS).fit(log, PROBLEM.act)
    d, z = textbook(log, trace_decay)
    found = blstd.statistics_
    np.testing.assert_allclose(found.drift, z.T @ d, atol=1e-11)
    np.testing.assert_allclose(found.reward, z.T @ log.rewards, atol=1e-11)
    np.testing.assert_allclose(found.gram[0], z.T @ z, atol=1e-11)
    squares = np.square(log.rewards - d @ blstd.weights_).sum()
    errors = blstd._sums.td_errors.squared_td_errors(found, blstd.weights_)
    assert errors == pytest.approx(squares, rel=1e-10)


@pytest.mark.parametrize("kind", [BLSTD, LSTD])
def test_short_traces_are_no_traces(kind):
    without, short = (made(kind, decay, ACTIONS).fit(TIMED, PROBLEM.act) for decay in (0.0, 1e-13))
    np.testing.assert_allclose(short.weights_, without.weights_, rtol=1e-9)
    if kind is BLSTD:
        for name in ("precision", "prior_precision", "noise_precision"):
            found, expected = (getattr(fit.posterior_, name) for fit in (short, without))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_with_lambda_1_values_are_regressed_on_returns():
    returns = np.zeros(ENDED.size + 1)
    for t in range(ENDED.size - 1, -1, -1):
        returns[t] = ENDED.rewards[t] + DISCOUNT * returns[t + 1] * (not ENDED.terminated[t])
    means = [returns[:-1][ENDED.observations == s].mean() for s in PROBLEM.states]
    lstd = made(LSTD, 1.0, ridge=0.0).fit(ENDED)
    np.testing.assert_allclose(lstd.predict(PROBLEM.states), means, rtol=1e-10)


def test_without_a_prior_the_covariance_is_that_of_instruments():
    blstd = made(BLSTD, 0.7, prior_precision=1e-9, noise_precision=2.0, ridge=1e-12).fit(ENDED)
    found = blstd.statistics_
    inverse = np.linalg.inv(found.drift)
    expected = inverse @ found.gram[0] @ inverse.T / 2.0
    np.testing.assert_allclose(blstd.posterior_.covariance(), expected, rtol=1e-7)


@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.integers(9, TIMED.size - 1), min_size=1, max_size=5, unique=True))
def test_sums_of_parts_are_those_of_the_whole(cuts):
    whole = made(LSTD, 0.8, ACTIONS).fit(TIMED, PROBLEM.act)
    ends = [0, *sorted(cuts), TIMED.size]
    chunks = [TIMED.rows(*two) for two in pairwise(ends)]
    added = made(LSTD, 0.8, ACTIONS)
    for chunk in chunks:
        added.partial_fit(chunk, PROBLEM.act)
    for parts in (added, made(LSTD, 0.8, ACTIONS).fit(chunks, PROBLEM.act)):
        for one, other in zip(parts.statistics_, whole.statistics_, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-11)
        for one, other in zip(parts._sums.td_errors, whole._sums.td_errors, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-11)


def test_without_noise_a_table_is_exact_for_every_lambda():
    problem = Garnet.random(RNG, STATES, ACTIONS, branching=1)
    log, _ = problem.log(RNG, 200, 5, problem.following(0.0), noise=0.0)
    found = [made(LSPI, decay, ACTIONS, ridge=0.0).fit(log) for decay in (0.0, 0.5, 1.0)]
    best = found[0].policy()(problem.states)
    values = problem._replace(policy=best).action_values(DISCOUNT)
    for lspi in found:
        assert lspi.converged_
        np.testing.assert_allclose(lspi.predict(problem.states), values, rtol=1e-9)


def test_a_cautious_policy_with_traces_is_saved_and_loaded(tmp_path):
    cautious = made(BLSPI, 0.5, ACTIONS, pessimism=1.0).fit(LOG)
    cautious.policy().save(tmp_path / "cautious.npz")
    loaded = LinearPolicy.load(tmp_path / "cautious.npz").posterior
    np.testing.assert_array_equal(loaded.gram_factor, cautious.posterior_.gram_factor)


def boyan(episodes, rng):
    """Boyan's chain: from state 12 to 0 by one or two at a time; the value of state s is -2 s."""
    rows = []
    for _ in range(episodes):
        state = 12
        while state:
            after = state - rng.integers(1, 3) if state > 1 else 0
            rows.append((state, 0, -3.0 if state > 1 else -2.0, after, after == 0))
            state = after
    return Transitions.from_arrays(*map(np.array, zip(*rows, strict=True)))


@pytest.mark.parametrize("trace_decay", [0.0, 0.4, 1.0])
def test_on_boyans_chain_the_noise_is_that_of_the_posterior(trace_decay):
    """With the true weights, TD errors are -1 or 1, and b - A theta ~ N(0, sum z z')."""
    log = boyan(400, np.random.default_rng(1))
    basis = Multilinear(4, low=0, high=12)
    fit = LSTD(basis, discount=1.0, trace_decay=trace_decay).fit(log)
    noise = fit.statistics_.reward - fit.statistics_.drift @ [0.0, -8.0, -16.0, -24.0]
    distance = noise @ np.linalg.solve(fit.statistics_.gram[0], noise)
    assert distance < chi2.ppf(1.0 - 1e-6, df=4)


def test_rows_without_episodes_are_refused():
    states = np.arange(4)
    arguments = (states, np.zeros(4, int), np.ones(4), np.full(4, 5), np.zeros(4, bool))
    with pytest.raises(ValueError, match=r"trace_decay=0\.5: .* none of 4 rows starts where"):
        made(LSTD, 0.5).fit(Transitions.from_arrays(*arguments))
    unmarked = Transitions.from_arrays(*arguments, truncated=np.zeros(4, bool))
    with pytest.raises(ValueError, match="row 1 does not start where row 0 led"):
        made(LSTD, 0.5).fit(unmarked)
    lost = replace(LOG, rewards=np.where(np.arange(LOG.size) == 7, np.nan, LOG.rewards))
    with pytest.raises(ValueError, match="rewards in row 7 is nan"):
        made(LSTD, 0.5).fit(lost)
