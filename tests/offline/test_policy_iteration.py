import tracemalloc
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi.data.transitions import Transitions
from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot, RBFGrid
from rblspi.offline import BLSPI, LSPI, LSTD, ConvergenceWarning
from tests.support.chain import BASIS, DISCOUNT, OPTIMAL, STATES, in_proportion, random_episodes

pytestmark = pytest.mark.slow

#: the paper's prior and noise
PAPERS = partial(BLSPI, prior_precision=0.01, noise_precision=1.0)
BOTH = pytest.mark.parametrize("estimator", [LSPI, pytest.param(PAPERS, id="BLSPI")])


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
def test_fifty_sets_of_samples_lead_to_the_optimal_policy_of_the_chain():
    ended, visited = [], []
    for transitions in random_episodes(50, 5000, seed=0):
        lspi = LSPI(BASIS, 2, discount=DISCOUNT).fit(transitions)
        blspi = BLSPI(BASIS, 2, discount=DISCOUNT, prior_precision=0.01, noise_precision=1.0).fit(
            transitions
        )
        ended.append([fitted.act(STATES) for fitted in (lspi, blspi)])
        visited.append([visits_the_optimum(fitted) for fitted in (lspi, blspi)])
    policies = np.array(ended)
    reached = (policies == OPTIMAL).all(axis=2).sum(axis=0)
    agreed = (policies[:, 0] == policies[:, 1]).all(axis=1).sum()
    assert (reached >= 48).all(), reached
    assert (np.sum(visited, axis=0) >= 48).all(), visited
    assert agreed >= 48


def visits_the_optimum(fitted):
    x = fitted.features_(STATES)
    policies = [(x @ i.weights.reshape(2, -1).T).argmax(axis=1) for i in fitted.history_]
    return any((policy == OPTIMAL).all() for policy in policies)


@BOTH
def test_on_a_table_the_history_is_howards_policy_iteration(estimator):
    settings = {"ridge": 1e-12, "discount": DISCOUNT}
    if estimator is PAPERS:
        settings["prior_precision"] = 1e-9
    fitted = estimator(OneHot(), 2, **settings).fit(in_proportion())
    assert fitted.converged_
    assert fitted.cycle_ == 0
    policy = np.zeros(20, int)
    for iteration in fitted.history_:
        values = ChainWalk().exact_action_values(policy, DISCOUNT)
        np.testing.assert_allclose(iteration.weights.reshape(2, 20).T, values, rtol=1e-7)
        policy = values.argmax(axis=1)
    np.testing.assert_array_equal(policy, OPTIMAL)


@BOTH
def test_the_history_tells_what_happened(estimator):
    transitions = random_episodes(1, 5000, seed=0)[0]
    fitted = estimator(BASIS, 2, discount=DISCOUNT).fit(transitions)
    history = fitted.history_
    assert fitted.n_iter_ == len(history) > 2
    assert fitted.converged_
    assert history[0].changed == 5000
    assert history[0].change == np.inf
    np.testing.assert_array_equal(history[-1].weights, fitted.weights_)
    x = fitted.features_(transitions.next_observations)
    before = np.zeros(5000, int)
    constant = np.tile(fitted.features_.constant, 2) / np.sqrt(2.0)
    for one, next_one in pairwise(history):
        actions = (x @ one.weights.reshape(2, -1).T).argmax(axis=1)
        assert next_one.changed == (actions != before).sum()
        distance = np.linalg.norm(next_one.weights - one.weights)
        length = np.linalg.norm(next_one.weights - constant * next_one.weights.dot(constant))
        assert next_one.change == pytest.approx(distance / length)
        before = actions


def test_memory_does_not_grow_with_the_data():
    rng = np.random.default_rng(0)
    rows = 100_000
    transitions = Transitions.from_arrays(
        rng.uniform(0, 1, (rows, 2)),
        rng.integers(3, size=rows),
        rng.standard_normal(rows),
        rng.uniform(0, 1, (rows, 2)),
        rng.random(rows) < 0.1,
    )
    lspi = LSPI(RBFGrid(8, low=0, high=1), 3, discount=0.9, tolerance=1e6)
    lspi.fit(transitions.rows(0, 100))  # compiles
    tracemalloc.start()
    try:
        lspi.fit(transitions)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    features_of_all = rows * 65 * 8
    assert peak < features_of_all / 2


FEATURE = np.array([1.0, 2.0, -1.0])


def feature(state):
    return FEATURE[state : state + 1]


def cycling(**settings):
    """An LSPI, and transitions on which it ends in a cycle of two policies."""
    transitions = Transitions.from_arrays(
        [0, 2, 2, 1, 0, 2],
        [1, 0, 0, 0, 1, 0],
        [1.0, -1.0, 0.0, 0.0, 1.0, -1.0],
        [2, 0, 1, 2, 1, 2],
        [False] * 6,
    )
    lspi = LSPI(feature, 2, discount=0.9, observation_space=Discrete(3), **settings)
    return lspi, transitions


def own_value(lspi, transitions, policy):
    """What a policy promises itself in the next states, on average."""
    lstd = LSTD(feature, 2, discount=0.9, observation_space=Discrete(3)).fit(transitions, policy)
    return lstd.predict(transitions.next_observations, policy(transitions.next_observations)).mean()


def test_of_a_cycle_the_policy_with_the_highest_value_is_kept():
    lspi, transitions = cycling()
    with pytest.warns(ConvergenceWarning, match="2 policies follow one another in a cycle"):
        lspi.fit(transitions)
    assert lspi.cycle_ == 2
    assert not lspi.converged_
    other, _ = cycling(initial_policy=lspi.act, max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        other.fit(transitions)
    assert (lspi.act([0, 1, 2]) != other.act([0, 1, 2])).any()
    kept, left = (own_value(lspi, transitions, policy) for policy in (lspi.act, other.act))
    assert kept > left


def test_a_cycle_is_left_by_a_mixture_of_its_policies_once():
    lspi, transitions = cycling()
    with pytest.warns(ConvergenceWarning):
        lspi.fit(transitions)
    assert [iteration.mixed for iteration in lspi.history_].count(2) == 1
    (at,) = (i for i, iteration in enumerate(lspi.history_) if iteration.mixed == 2)
    assert lspi.history_[at].changed == 0
    # The sums of a mixture are the mean of those of its policies, A and b alike.
    x, y = FEATURE[transitions.observations], FEATURE[transitions.next_observations]
    matrices = []
    for weights in (lspi.history_[at - 2].weights, lspi.history_[at - 1].weights):
        after = (y[:, None] * weights).argmax(axis=1)
        phi, phi_after = (
            np.eye(2)[a] * f[:, None] for a, f in ((transitions.actions, x), (after, y))
        )
        matrices.append(phi.T @ (phi - 0.9 * phi_after) + 1e-6 * np.eye(2))
    reward = phi.T @ transitions.rewards
    expected = np.linalg.solve(np.mean(matrices, axis=0), reward)
    np.testing.assert_allclose(lspi.history_[at].weights, expected, rtol=1e-6)


def test_a_mixture_leads_out_of_a_cycle_on_the_chain():
    transitions = random_episodes(50, 5000, seed=3)[35]
    lspi = LSPI(BASIS, 2, discount=DISCOUNT).fit(transitions)
    assert lspi.converged_
    assert max(iteration.mixed for iteration in lspi.history_) == 6
    np.testing.assert_array_equal(lspi.act(STATES), OPTIMAL)


def test_a_wide_tolerance_stops_early():
    transitions = random_episodes(1, 5000, seed=0)[0]
    lspi = LSPI(BASIS, 2, discount=DISCOUNT, tolerance=1e6).fit(transitions)
    assert lspi.n_iter_ == 2
    assert lspi.converged_
