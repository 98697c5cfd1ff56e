from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rblspi.data.transitions import Transitions
from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot, Polynomial, RBFGrid
from rblspi.offline import BLSTD, LSTD
from tests.support.chain import DISCOUNT, OPTIMAL, STATES, in_proportion, random_episodes
from tests.support.logs import some_log


def some_transitions(rows=300):
    return some_log(rows)


def some_policy(observations):
    return (observations[:, 0] > 0) + (observations[:, 1] > 0).astype(int)


BOUNDED = Polynomial(2, low=-1, high=1)


def chain_policy(observations):
    return OPTIMAL[observations]


def test_a_table_of_state_values_is_exact():
    transitions = in_proportion()
    on_policy = transitions.actions == OPTIMAL[transitions.observations]
    followed = transitions.select(on_policy)
    lstd = LSTD(OneHot(), discount=DISCOUNT, ridge=0).fit(followed)
    exact = ChainWalk().exact_action_values(OPTIMAL, DISCOUNT).max(axis=1)
    np.testing.assert_allclose(lstd.predict(STATES), exact, rtol=1e-12)
    assert lstd.predict(3) == pytest.approx(exact[3], rel=1e-12)


def test_the_mean_of_blstd_becomes_lstd_as_the_prior_fades():
    transitions = random_episodes(1, 2000, seed=0)[0]
    lstd = LSTD(OneHot(), 2, discount=DISCOUNT, ridge=0).fit(transitions, chain_policy)
    distances = []
    for alpha in (1.0, 1e-3, 1e-6, 1e-9):
        blstd = BLSTD(OneHot(), 2, discount=DISCOUNT, prior_precision=alpha, ridge=1e-12)
        blstd.fit(transitions, chain_policy)
        distances.append(np.linalg.norm(blstd.weights_ - lstd.weights_))
    assert (np.diff(distances) < 0).all()
    assert distances[-1] < 1e-8 * np.linalg.norm(lstd.weights_)


def two_states(ended):
    """From state 0 to state 1, which pays 1 and leads to itself."""
    return Transitions.from_arrays([0, 1], [0, 0], [0.0, 1.0], [1, 1], [False, ended])


@pytest.mark.parametrize("estimator", [LSTD, BLSTD])
def test_termination_cuts_the_future_and_truncation_does_not(estimator):
    arguments = {"discount": 0.5, "ridge": 1e-12, "observation_space": Discrete(2)}
    if estimator is BLSTD:
        arguments["prior_precision"] = 1e-9
    ended = estimator(OneHot(), **arguments).fit(two_states(True))
    np.testing.assert_allclose(ended.predict([0, 1]), [0.5, 1.0], rtol=1e-7)
    goes_on = estimator(OneHot(), **arguments).fit(two_states(False))
    np.testing.assert_allclose(goes_on.predict([0, 1]), [1.0, 2.0], rtol=1e-7)


def test_the_weights_solve_the_equations_of_the_textbook():
    transitions = some_transitions()
    lstd = LSTD(BOUNDED, 3, discount=0.9).fit(transitions, some_policy)
    features, identity = lstd.features_, np.eye(3)
    phi = [
        np.kron(identity[a], features(s))
        for s, a in zip(transitions.observations, transitions.actions, strict=True)
    ]
    after = [
        (1 - ended) * np.kron(identity[a], features(s))
        for s, a, ended in zip(
            transitions.next_observations,
            some_policy(transitions.next_observations),
            transitions.terminated,
            strict=True,
        )
    ]
    phi, after = np.array(phi), np.array(after)
    constant = np.tile(features.constant, 3)  # is not shrunk
    shrunk = np.eye(18) - np.outer(constant, constant) / (constant @ constant)
    matrix = phi.T @ (phi - 0.9 * after) + 1e-6 * shrunk
    expected = np.linalg.solve(matrix, phi.T @ transitions.rewards)
    np.testing.assert_allclose(lstd.weights_, expected, rtol=1e-9)
    assert lstd.condition_ == pytest.approx(np.linalg.cond(matrix, 1), rel=0.5)


def test_a_list_of_next_actions_is_a_policy():
    transitions = some_transitions()
    chunks = [transitions.rows(0, 100), transitions.rows(100, 300)]
    expected = LSTD(BOUNDED, 3).fit(chunks, some_policy)
    listed = LSTD(BOUNDED, 3).fit(chunks, some_policy(transitions.next_observations))
    np.testing.assert_array_equal(listed.weights_, expected.weights_)


def test_the_size_of_a_batch_does_not_matter(monkeypatch):
    transitions = some_transitions()
    whole = LSTD(BOUNDED, 3).fit(transitions, some_policy)
    monkeypatch.setattr("rblspi.offline.accumulation.BATCH", 7 * 6)
    batches = LSTD(BOUNDED, 3).fit(transitions, some_policy)
    np.testing.assert_allclose(batches.weights_, whole.weights_, rtol=1e-9)
    observations = transitions.observations
    np.testing.assert_allclose(
        batches.predict(observations), whole.predict(observations), rtol=1e-8
    )


def test_features_that_never_occur_lower_the_rank():
    seen = Transitions.from_arrays([0, 1], [0, 0], [1.0, 0.0], [1, 0], [False, False])
    lstd = LSTD(OneHot(), observation_space=Discrete(5)).fit(seen)
    assert lstd.rank_ == 2
    with pytest.raises(np.linalg.LinAlgError, match="A has rank 2 of 5"):
        LSTD(OneHot(), ridge=0, observation_space=Discrete(5)).fit(seen)


def test_numbers_and_functions_will_do_as_observations_and_basis():
    rng = np.random.default_rng(0)
    observations = rng.uniform(0, 1, 50)
    transitions = (observations, np.zeros(50, int), observations, observations, np.ones(50))
    lstd = LSTD(lambda s: [1.0, float(s)], ridge=0).fit(transitions)
    np.testing.assert_allclose(lstd.weights_, [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(lstd.predict(observations), observations, atol=1e-12)


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (None, ValueError, "policy=None: actions are valued under a policy"),
        (lambda s: np.zeros(3, int), ValueError, r"actions of shape \(3,\) for 300 observations"),
        (lambda s: np.zeros(len(s)), TypeError, "actions of type float64"),
        (lambda s: np.full(len(s), 3), ValueError, "gave action 3 for the observation"),
        (np.zeros(299, int), ValueError, "lists fewer next actions"),
        (np.zeros(302, int), ValueError, "lists 2 next actions more"),
        (np.zeros((300, 1), int), ValueError, r"policy of shape \(300, 1\)"),
    ],
)
def test_faulty_policies_are_refused(policy, error, message):
    with pytest.raises(error, match=message):
        LSTD(BOUNDED, 3).fit(some_transitions(), policy)


def test_state_values_take_no_policy_and_no_actions():
    with pytest.raises(ValueError, match="policy is given, but states are valued"):
        LSTD(BOUNDED).fit(some_transitions(), some_policy)
    with pytest.raises(ValueError, match="actions is given, but values of states"):
        LSTD(BOUNDED).fit(some_transitions()).predict(np.zeros((1, 2)), [0])


def test_partial_fit_needs_bounds_that_do_not_depend_on_the_first_chunk():
    with pytest.raises(ValueError, match="give observation_space, or a basis with low and high"):
        LSTD(RBFGrid(3)).partial_fit(some_transitions())


def test_a_basis_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match="dimensions"):
        LSTD(RBFGrid(3), observation_space=Box(-1, 1, (3,))).fit(some_transitions())


def spoilt(name, row, value, rows=300):
    """Transitions from the plain constructor, with one wrong value."""
    log = some_transitions(rows)
    column = getattr(log, name).copy()
    column[row] = value
    return replace(log, **{name: column})


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (spoilt("rewards", 290, np.inf), "rewards in row 290 is inf: it must be finite"),
        (spoilt("observations", 200, np.nan), r"observations in row 200 is \[nan, nan\]: it must"),
        (spoilt("actions", 250, 3), "actions in row 250 is 3, but with actions=3 they go from 0"),
        (replace(some_transitions(), truncated=np.zeros(3, bool)), r"truncated has shape \(3,\)"),
        (some_transitions().rows(0, 0), "observations has no rows"),
    ],
)
@pytest.mark.parametrize("basis", [BOUNDED, RBFGrid(3)])
def test_wrong_values_are_named_even_if_the_constructor_did_not_check_them(
    basis, faulty, message, monkeypatch
):
    monkeypatch.setattr("rblspi.offline.accumulation.BATCH", 100 * 6)
    with pytest.raises(ValueError, match=message):
        LSTD(basis, 3).fit([some_transitions(), faulty], some_policy)


@pytest.mark.parametrize("basis", [BOUNDED, RBFGrid(3)])
def test_a_pass_does_not_check_columns_again(basis, monkeypatch):
    log = some_transitions()
    monkeypatch.setattr(Transitions, "from_arrays", None)
    LSTD(basis, 3).fit([log, log], some_policy)


def test_an_error_of_the_policy_is_not_blamed_on_the_data():
    def fails(observations):
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        LSTD(BOUNDED, 3).fit(some_transitions(), fails)
