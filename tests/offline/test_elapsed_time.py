"""Transitions that take different times are discounted by them, as in semi-Markov problems."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from rblspi import BLSPI, BLSTD, FQI, LSPI, LSTD, OneHot, RBFGrid
from rblspi.data import Transitions
from rblspi.offline import compare, estimates, policy_value, trust
from rblspi.offline.episodes import episodes_of
from rblspi.offline.importance_sampling import per_decision
from rblspi.offline.model_selection import Judge
from rblspi.offline.paths import first_states, follow
from tests.support.logs import some_log
from tests.support.values import values_by_log

DISCOUNT = 0.9
STATES, ACTIONS = 5, 2


def always(action):
    return lambda observations: np.full(len(observations), action)


def timed_rows(*columns):
    return Transitions.from_arrays(*columns[:6], elapsed=columns[6])


def walk(rng, episodes=60, steps=20, states=STATES):
    """Episodes in a table, half of which terminate; transitions take 1/4 to 4."""
    rows = []
    for _ in range(episodes):
        s = int(rng.integers(states))
        for t in range(steps):
            a, tau = int(rng.integers(ACTIONS)), float(rng.choice([0.25, 0.5, 1.0, 2.0, 4.0]))
            after = int(np.clip(s + 2 * a - 1 + rng.integers(-1, 2), 0, states - 1))
            end = bool(rng.random() < 0.03)
            rows.append((s, a, rng.normal() + s, after, end, t == steps - 1 and not end, tau))
            s = after
            if end:
                break
    return timed_rows(*(np.array(column) for column in zip(*rows, strict=True)))


def in_a_box():
    """The same for two numbers, without an end."""
    log = some_log(192)
    cut = np.arange(192) % 12 == 11
    rewards = -np.square(log.observations).sum(axis=1)
    same = {"terminated": np.zeros(192, bool), "truncated": cut, "elapsed": np.ones(192)}
    return replace(log, actions=log.actions % ACTIONS, rewards=rewards, **same)


def plain(timed):
    return replace(timed, elapsed=None)


def everything(log, basis):
    """Numbers of everything that discounts."""
    policy, actions = always(1), ACTIONS
    settings = {"discount": DISCOUNT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (FQI, LSPI, BLSPI):
            yield kind(basis, actions, **settings).fit(log).weights_
        model = FQI(None, actions, **settings).fit(log)
        yield from (model.weights_, model.score(log))
        for kind in (LSTD, BLSTD):
            model = kind(basis, actions, **settings).fit(log, policy)
            yield from (model.weights_, model.td_errors(log))
        yield policy_value(log, policy, basis, actions, **settings)[:-1]
        shares = np.full(log.size, 0.5)
        for row in estimates(log, policy, basis, actions, propensities=shares, **settings).rows:
            yield row[1:6]
        yield compare(policy, None, log, basis, actions, **settings)
        yield compare(policy, always(0), log, basis, actions, **settings)
        yield [finding.value for finding in trust(policy, log, **settings).findings]
        yield from values_by_log(log, policy, basis, actions, DISCOUNT).value_draws[:2]
        yield Judge.of(log, actions, DISCOUNT).value(policy)


@pytest.mark.parametrize(
    ("timed", "basis"),
    [
        (walk(np.random.default_rng(0)), OneHot()),
        pytest.param(in_a_box(), RBFGrid(2), marks=pytest.mark.slow),
    ],
)
def test_transitions_that_take_one_unit_of_time_are_ordinary_ones(timed, basis):
    timed = replace(timed, elapsed=np.ones(timed.size))
    for ours, theirs in zip(everything(timed, basis), everything(plain(timed), basis), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_how_long_it_takes_to_a_terminal_state_does_not_matter():
    timed = walk(np.random.default_rng(0))
    elapsed = np.where(timed.terminated, 1e-3, timed.elapsed)
    for ours, theirs in zip(
        everything(timed, OneHot()),
        everything(replace(timed, elapsed=elapsed), OneHot()),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("timed", "basis"), [(walk(np.random.default_rng(1)), OneHot()), (in_a_box(), RBFGrid(3))]
)
def test_steps_of_two_units_have_the_squared_discount(timed, basis):
    timed = replace(timed, elapsed=np.full(timed.size, 2.0))
    square = LSTD(basis, ACTIONS, discount=DISCOUNT**2).fit(plain(timed), always(1))
    twice = LSTD(basis, ACTIONS, discount=DISCOUNT).fit(timed, always(1))
    np.testing.assert_allclose(twice.weights_, square.weights_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        follow(always(1), timed, DISCOUNT, 0, first_states(timed)).returns,
        follow(always(1), plain(timed), DISCOUNT**2, 0, first_states(timed)).returns,
        rtol=1e-10,
    )
    ours, theirs = (
        FQI(basis, ACTIONS, discount=discount, tolerance=1e-12).fit(log)
        for log, discount in ((timed, DISCOUNT), (plain(timed), DISCOUNT**2))
    )
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-8, atol=1e-8)
    if not timed.terminated.any():
        np.testing.assert_allclose(ours.limits_, theirs.limits_, rtol=1e-12)
    one, other = (
        Judge.of(log, ACTIONS, discount).value(always(1))
        for log, discount in ((timed, DISCOUNT), (plain(timed), DISCOUNT**2))
    )
    assert one == pytest.approx(other, rel=1e-10)


def split(log, rng):
    """Every transition as two, through a state of its own, with r = r1 + gamma^tau1 r2."""
    n = log.size
    between = STATES + np.arange(n)
    first = log.elapsed * rng.uniform(0.1, 0.9, n)
    early = rng.normal(size=n)
    late = (log.rewards - early) / DISCOUNT**first

    def both(one, other):
        return np.stack([one, other], axis=1).ravel()

    no = np.zeros(n, bool)
    return timed_rows(
        both(log.observations, between),
        both(log.actions, np.ones(n, np.int64)),
        both(early, late),
        both(between, log.next_observations),
        both(no, log.terminated),
        both(no, log.truncated),
        both(first, log.elapsed - first),
    )


def test_a_transition_may_be_split_in_two_on_the_way():
    """V(m) = r2 + gamma^tau2 V(s') in the state m between, so r1 + gamma^tau1 V(m) is the same."""
    rng = np.random.default_rng(2)
    log = walk(rng, 20)
    halves = split(log, rng)
    whole, parts = (LSTD(OneHot(), discount=DISCOUNT, ridge=0.0).fit(d) for d in (log, halves))
    states = np.arange(STATES)
    np.testing.assert_allclose(parts.predict(states), whole.predict(states), rtol=1e-10)


def chain(episodes=30):
    """Three states in a row, then the end: rewards 1, 2, 4 and times 2, 1/2, anything."""
    s, after = np.arange(3), np.array([1, 2, 2])
    one = (s, np.zeros(3, int), [1.0, 2.0, 4.0], after, s == 2, s == 3, [2.0, 0.5, 7.0])
    return timed_rows(*(np.tile(column, episodes) for column in one))


CHAIN = np.array([1 + DISCOUNT**2 * (2 + DISCOUNT**0.5 * 4), 2 + DISCOUNT**0.5 * 4, 4.0])


def test_the_values_of_a_chain_are_known():
    log, states = chain(), np.arange(3)
    learnt = [
        LSTD(OneHot(), 1, discount=DISCOUNT, ridge=0.0).fit(log, always(0)),
        LSTD(OneHot(), discount=DISCOUNT, ridge=0.0).fit(log),
        LSPI(OneHot(), 1, discount=DISCOUNT, ridge=0.0).fit(log),
        FQI(OneHot(), 1, discount=DISCOUNT, ridge=1e-14, tolerance=1e-14).fit(log),
        BLSTD(
            OneHot(), 1, discount=DISCOUNT, prior_precision=1e-12, noise_precision=1.0, ridge=1e-13
        ).fit(log, always(0)),
    ]
    for model in learnt:
        np.testing.assert_allclose(np.ravel(model.predict(states)), CHAIN, rtol=1e-10)
    np.testing.assert_allclose(
        follow(always(0), log, DISCOUNT, 0, first_states(log)).returns, CHAIN[0], rtol=1e-12
    )
    every = estimates(
        log, always(0), OneHot(), 1, discount=DISCOUNT, propensities=np.ones(log.size), ridge=1e-12
    )
    for row in every.rows:
        assert row.mean == pytest.approx(
            CHAIN[0], rel=1e-6 if row.method == "policy_value" else 1e-9
        )
        assert row.low - 1e-6 <= CHAIN[0] <= row.high + 1e-6


def returns_of(log, discount):
    """The discounted return of every episode, as it was logged."""
    found, weight = [], 1.0
    for first, reward, tau in zip(log.starts(), log.rewards, log.elapsed, strict=True):
        if first:
            found.append(0.0)
            weight = 1.0
        found[-1] += weight * reward
        weight *= discount**tau
    return np.array(found)


def test_importance_sampling_on_policy_is_the_mean_return():
    log = walk(np.random.default_rng(3))
    log = replace(
        log, terminated=log.terminated | log.truncated, truncated=np.zeros(log.size, bool)
    )
    episodes = episodes_of(log, always(0), OneHot(), ACTIONS, DISCOUNT)
    ratios, expected = np.ones(log.size), returns_of(log, DISCOUNT)
    for normalised in (False, True):
        found = per_decision(episodes, ratios, 0.95, normalised)
        assert found.mean == pytest.approx(expected.mean(), rel=1e-12)


def test_doubly_robust_estimates_of_logged_episodes_are_their_returns():
    """On policy, V(s_0) + sum g (r + gamma^tau V' - V) is the return, whatever V is."""
    from rblspi.offline.doubly_robust import corrected
    from rblspi.offline.linear_values import solve, sums

    log = walk(np.random.default_rng(4))
    log = replace(
        log,
        terminated=log.terminated | log.truncated,
        truncated=np.zeros(log.size, bool),
        actions=np.zeros_like(log.actions),
    )
    episodes = episodes_of(log, always(0), OneHot(), 1, DISCOUNT)
    model = solve(episodes, sums(episodes), 0.01)
    model = model._replace(weights=np.random.default_rng(5).normal(size=len(model.weights)))
    terms = corrected(model, DISCOUNT**episodes.times)
    np.testing.assert_allclose(terms, returns_of(log, DISCOUNT), rtol=1e-10)


def test_an_interval_of_importance_sampling_knows_what_a_cut_episode_may_bring():
    """With one reward per unit of time everywhere, the value is known although episodes are cut."""
    tau = np.tile([0.5, 2.0, 3.0, 0.25], 20)
    rates = (1.0 - DISCOUNT**tau) / (1.0 - DISCOUNT)
    n, rows = len(tau), np.arange(len(tau))
    log = timed_rows(
        np.zeros(n, int), np.zeros(n, int), rates, np.zeros(n, int), rows < 0, rows % 4 == 3, tau
    )
    worth = 1.0 / (1.0 - DISCOUNT)
    every = estimates(
        log, always(0), OneHot(), 1, discount=DISCOUNT, propensities=np.ones(n), ridge=1e-12
    )
    for row in every.rows:
        assert (row.mean, row.low, row.high) == pytest.approx((worth,) * 3, rel=1e-5), row.method


def test_the_unit_of_time_does_not_matter():
    """Times in other units, with the discount of that unit, are the same."""
    log = walk(np.random.default_rng(7))
    minutes = replace(log, elapsed=60.0 * log.elapsed)
    one = FQI(OneHot(), ACTIONS, discount=DISCOUNT, tolerance=1e-12).fit(log)
    other = FQI(OneHot(), ACTIONS, discount=DISCOUNT ** (1 / 60), tolerance=1e-12).fit(minutes)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-9)
    np.testing.assert_allclose(one.limits_, other.limits_, rtol=1e-9)


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_with_a_discount_of_0_or_1_time_does_not_matter(discount):
    log = walk(np.random.default_rng(8))
    for kind in (FQI, LSPI):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, other = (
                kind(OneHot(), ACTIONS, discount=discount).fit(d) for d in (log, plain(log))
            )
        np.testing.assert_array_equal(one.weights_, other.weights_)


def test_times_are_checked():
    log = walk(np.random.default_rng(9), 2)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        elapsed = log.elapsed.copy()
        elapsed[3] = wrong
        with pytest.raises(ValueError, match="elapsed in row 3"):
            replace(log, elapsed=elapsed).checked()
    elapsed[3] = -1.0
    unchecked = replace(log, elapsed=elapsed)
    with pytest.raises(ValueError, match=r"elapsed in row 3 is -1\.0: it must be above 0"):
        LSTD(OneHot(), ACTIONS, discount=DISCOUNT).fit(unchecked, always(0))
    with pytest.raises(ValueError, match="elapsed has shape"):
        replace(log, elapsed=log.elapsed[:-1]).checked()
