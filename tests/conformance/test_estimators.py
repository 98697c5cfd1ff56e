"""What every estimator of the registry does: parameters, data, policies, files and errors."""

import inspect
import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from sklearn.base import clone
from sklearn.utils import estimator_checks

from rblspi import BLSTD, GPTD, LSTD, LinearPolicy
from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot, Polynomial
from rblspi.offline import ConvergenceWarning, NotFittedError
from rblspi.registry import algorithms
from tests.support.chain import BASIS, DISCOUNT, OPTIMAL, STATES, in_proportion, random_episodes
from tests.support.logs import arrays, some_log

REGISTERED = [record for record in algorithms().values() if not record.online]
EVERY = [record.load() for record in REGISTERED]
LEARNERS = [record.load() for record in REGISTERED if record.learns == "policy"]
EVALUATIONS = [record.load() for record in REGISTERED if record.learns == "values"]
ADDING = [kind for kind in EVERY if hasattr(kind, "partial_fit")]
ON_EVERY = pytest.mark.parametrize("kind", EVERY)
ON_LEARNERS = pytest.mark.parametrize("kind", LEARNERS)
pytestmark = pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")

(LOG,) = random_episodes(1, 2000, seed=0)
SPACE = Discrete(20)
#: of a fit in a table that is exact
EXACT = {
    "LSTD": {"ridge": 0.0},
    "BLSTD": {"ridge": 1e-12, "prior_precision": 1e-9},
    "LSPI": {"ridge": 1e-12},
    "BLSPI": {"ridge": 1e-12, "prior_precision": 1e-9},
    "FQI": {"ridge": 1e-12, "tolerance": 1e-10},
}
#: those whose values are exact there; GPTD needs episodes
ON_TABLES = pytest.mark.parametrize("kind", [kind for kind in EVERY if kind.__name__ in EXACT])


def optimal(observations):
    return OPTIMAL[observations]


def fit(kind, data=LOG, basis=BASIS, policy=optimal, **settings):
    """Fit an estimator to transitions of the chain."""
    settings = {"discount": DISCOUNT, "observation_space": SPACE} | settings
    return fit_again(kind(basis, 2, **settings), data, policy)


def fit_again(estimator, data, policy=optimal):
    return estimator.fit(data, *(() if type(estimator) in LEARNERS else (policy,)))


# Parameters ---------------------------------------------------------------------------------------


@ON_EVERY
def test_only_basis_and_actions_may_be_given_by_position(kind):
    parameters = inspect.signature(kind).parameters
    positional = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert positional == ["basis", "actions"]
    assert list(kind().get_params()) == list(parameters)
    assert {"discount", "ridge", "observation_space", "columns"} <= set(parameters)


@ON_EVERY
def test_parameters_come_back_as_they_were_given(kind):
    basis = Polynomial(3)
    built = kind(basis, 2, discount=0.5)
    parameters = built.get_params()
    assert parameters["basis"] is basis
    assert parameters["discount"] == 0.5
    assert kind(**parameters).get_params() == parameters == clone(built).get_params()
    assert repr(built) == f"{kind.__name__}(basis={basis!r}, actions=2, discount=0.5)"
    assert built.set_params(discount=0.7, ridge=1e-3) is built
    assert built.discount == 0.7
    with pytest.raises(ValueError, match="has no parameter 'gamma', only basis, actions, discount"):
        built.set_params(gamma=0.9)


@ON_EVERY
def test_what_scikit_learn_checks_of_any_estimator(kind):
    name, built = kind.__name__, kind()
    estimator_checks.check_no_attributes_set_in_init(name, built)
    estimator_checks.check_parameters_default_constructible(name, built)
    estimator_checks.check_get_params_invariance(name, built)
    estimator_checks.check_set_params(name, built)
    estimator_checks.check_estimator_cloneable(name, built)
    estimator_checks.check_estimator_repr(name, built)


FAULTY_PARAMETERS = [
    ("discount", 1.1, ValueError, r"discount=1\.1 must lie between 0 and 1"),
    ("ridge", -1.0, ValueError, r"ridge=-1\.0 must be (zero or )?a positive number"),
    ("trace_decay", 1.1, ValueError, r"trace_decay=1\.1 must lie between 0 and 1"),
    ("actions", 0, ValueError, "actions=0 must be at least 1"),
    ("actions", 1, ValueError, "actions in row .* is 1, but with actions=1 they go from 0 to"),
    ("actions", 10**6, ValueError, r"actions=1000000 with 5 features each need 5,000,000 we"),
    ("basis", 3, TypeError, "basis=3 is not a basis"),
    ("prior_precision", 0, ValueError, "prior_precision=0 must be a positive number"),
    ("noise_precision", -2, ValueError, "noise_precision=-2 must be a positive number"),
    ("pessimism", -1.0, ValueError, r"pessimism=-1\.0 must be zero or a positive number"),
    ("max_iterations", 0, ValueError, "max_iterations=0 must be at least 1"),
    ("tolerance", -1.0, ValueError, r"tolerance=-1\.0 must be (zero or )?a positive number"),
    ("initial_policy", 0, TypeError, "initial_policy=0 must be a function"),
]


@pytest.mark.parametrize(
    ("kind", "name", "value", "error", "message"),
    [(kind, *row) for kind in EVERY for row in FAULTY_PARAMETERS if hasattr(kind(), row[0])],
)
def test_faulty_parameters_are_refused_by_fit(kind, name, value, error, message):
    built = kind(BASIS, 2).set_params(**{name: value})
    with pytest.raises(error, match=message):
        fit_again(built, in_proportion(), np.zeros_like)


# Data ---------------------------------------------------------------------------------------------


@ON_TABLES
def test_on_a_table_with_every_transition_values_are_exact(kind):
    fitted = fit(kind, in_proportion(), OneHot(), **EXACT[kind.__name__])
    exact = ChainWalk().exact_action_values(OPTIMAL, DISCOUNT)
    np.testing.assert_allclose(fitted.predict(STATES), exact, rtol=1e-7)
    np.testing.assert_allclose(fitted.predict(STATES, OPTIMAL), exact.max(axis=1), rtol=1e-7)
    assert fitted.predict(3, [0]) == pytest.approx(exact[3, 0], rel=1e-7)
    assert fitted.rank_ == 40
    assert fitted.features_.size == 20


@ON_EVERY
def test_chunks_and_columns_give_what_the_whole_gives(kind):
    whole = fit(kind)
    chunked = fit(kind, [LOG.rows(0, 3), LOG.rows(3, 1200), LOG.rows(1200, 2000)])
    np.testing.assert_allclose(chunked.predict(STATES), whole.predict(STATES), rtol=1e-4)
    for same in (arrays(LOG), [LOG]):
        np.testing.assert_array_equal(fit(kind, same).weights_, whole.weights_)


@ON_EVERY
def test_fitting_again_forgets_what_was(kind):
    fitted = fit(kind, LOG.rows(0, 700))
    policy, values = fitted.policy(), fitted.predict(STATES)
    np.testing.assert_array_equal(fit_again(fitted, LOG).weights_, fit(kind).weights_)
    np.testing.assert_array_equal(policy.values(STATES), values)  # an earlier policy stays


@pytest.mark.parametrize("kind", ADDING)
def test_sums_over_parts_add_up(kind):
    """Only the policy in the next states of a learner depends on what came first."""
    whole, parts = fit(kind), fit(kind, LOG.rows(0, 700)).partial_fit(LOG.rows(700, 2000))
    assert parts.statistics_.count.sum() == 2000
    np.testing.assert_allclose(parts.statistics_.gram, whole.statistics_.gram, rtol=1e-12)
    first = kind(BASIS, 2, discount=DISCOUNT, observation_space=SPACE)
    arguments = () if kind in LEARNERS else (optimal,)
    np.testing.assert_array_equal(first.partial_fit(LOG, *arguments).weights_, whole.weights_)
    if kind not in LEARNERS:
        rounding = 10.0 * np.finfo(np.float64).eps * whole.condition_
        np.testing.assert_allclose(parts.weights_, whole.weights_, rtol=max(1e-9, rounding))


@ON_EVERY
def test_a_policy_takes_allowed_actions_only(kind):
    """Where only action 1 is allowed next, values are those of the policy that takes it."""
    only = replace(LOG, next_allowed=np.tile([False, True], (LOG.size, 1)))
    if kind in EVALUATIONS:
        with pytest.raises(ValueError, match=r"0 for .*, where next_allowed forbids it"):
            fit(kind, only)
        return
    evaluation = BLSTD if kind.__name__ == "BLSPI" else LSTD
    settings = EXACT[kind.__name__]
    forced = fit(evaluation, LOG, OneHot(), np.ones_like, **EXACT[evaluation.__name__])
    found = fit(kind, only, OneHot(), **settings)
    np.testing.assert_allclose(found.predict(STATES), forced.predict(STATES), rtol=1e-6)


def overflowing():
    return replace(LOG, rewards=np.full(LOG.size, 1e308))


FAULTY = [
    ((1, 2, 3), ValueError, "transitions has 3 columns, but needs observations, actions"),
    (iter([]), TypeError, "can be passed over only once"),
    (np.zeros((3, 5)), TypeError, "transitions of type ndarray must be Transitions"),
    ([], ValueError, "transitions has no chunks"),
    ([np.zeros(3)], TypeError, "a chunk of type ndarray, which must be Transitions"),
    (overflowing(), ValueError, "the sums over the transitions overflow: rescale the rewards"),
    (
        replace(LOG, rewards=np.where(np.arange(2000) == 4, np.nan, LOG.rewards)),
        ValueError,
        "rewards in row 4 is nan: it must be finite",
    ),
]


@pytest.mark.parametrize(("data", "error", "message"), FAULTY)
@ON_EVERY
def test_faulty_data_are_refused_in_a_sentence(kind, data, error, message):
    with pytest.raises(error, match=message):
        fit(kind, data)


@ON_EVERY
def test_large_numbers_overflow_or_are_fitted(kind):
    large = fit(kind, replace(LOG, rewards=np.full(LOG.size, 1e150)))
    assert np.isfinite(large.weights_).all()
    with pytest.raises(ValueError, match="the sums over the transitions overflow"):
        fit(kind, basis=lambda state: np.array([1e200, state]))


class Fails(list):
    """Chunks of which the last one cannot be read."""

    def __iter__(self):
        yield from super().__iter__()
        raise KeyboardInterrupt


@ON_EVERY
def test_an_interrupted_fit_leaves_what_was_fitted(kind):
    fitted = fit(kind)
    weights, values = fitted.weights_.copy(), fitted.predict(STATES)
    methods = [fitted.fit, fitted.partial_fit] if kind in ADDING else [fitted.fit]
    arguments = () if kind in LEARNERS else (optimal,)
    for method in methods:
        for data, error in ((Fails([LOG]), KeyboardInterrupt), (overflowing(), ValueError)):
            with pytest.raises(error):
                method(data, *arguments)
            np.testing.assert_array_equal(fitted.weights_, weights)
            np.testing.assert_array_equal(fitted.predict(STATES), values)
            assert fitted.statistics_.count.sum() == 2000


# Predictions and policies -------------------------------------------------------------------------


@ON_EVERY
def test_nothing_is_known_before_a_fit(kind, tmp_path):
    built = kind(BASIS, 2)
    asked = [lambda: built.predict([0]), built.policy, lambda: built.save(tmp_path / "policy.npz")]
    for ask in [*asked, lambda: built.act(STATES)] if kind in LEARNERS else asked:
        with pytest.raises(NotFittedError, match=f"this {kind.__name__} is not fitted yet: call f"):
            ask()


@ON_EVERY
def test_only_bayesian_estimators_have_standard_deviations(kind):
    fitted = fit(kind)
    if hasattr(fitted, "posterior_"):
        mean, std = fitted.predict(STATES, return_std=True)
        np.testing.assert_array_equal(mean, fitted.predict(STATES))
        assert (std > 0).all()
    else:
        with pytest.raises(ValueError, match="knows no standard deviation; use BLSTD or BLSPI"):
            fitted.predict(STATES, return_std=True)


@ON_EVERY
def test_actions_to_value_have_to_exist(kind):
    fitted = fit(kind)
    with pytest.raises(
        ValueError, match="actions in row 1 is 2, but with actions=2 they go from 0 to 1"
    ):
        fitted.predict([0, 1], [0, 2])
    with pytest.raises(ValueError, match=r"actions of shape \(1,\)"):
        fitted.predict([0, 1], [0])


@ON_EVERY
@pytest.mark.parametrize("env", [None, "rblspi/ChainWalk-v0"])
def test_the_policy_and_its_file_state_the_bits_of_the_estimator(kind, env, tmp_path):
    fitted = pickle.loads(pickle.dumps(fit(kind)))
    policy, values = fitted.policy(env), fitted.predict(STATES)
    policy.save(tmp_path / "policy.npz")
    for one in (policy, LinearPolicy.load(tmp_path / "policy.npz")):
        np.testing.assert_array_equal(one.values(STATES), values)
        np.testing.assert_array_equal(one(STATES), values.argmax(axis=1))
        assert one.observation_space == SPACE
        assert one.discount == DISCOUNT
        assert one.provenance["algorithm"] == kind.__name__.lower()
        assert one.provenance["transitions"] == 2000
        assert one.provenance["settings"]["ridge"] == fitted.ridge
        assert (one.action_names, one.environment) == (policy.action_names, policy.environment)
        stated, own = one.action_values(STATES), policy.action_values(STATES)
        np.testing.assert_array_equal(stated.mean, values)
        if own.draws is not None:
            np.testing.assert_array_equal(stated.draws, own.draws)


@ON_EVERY
@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", r"observations of shape \(4,\) and 2 actions, but the fit has shape \(\)"),
        ("FrozenLake-v1", r"shape \(\) and 4 actions, but the fit has shape \(\) and 2 actions"),
    ],
)
def test_another_environment_than_that_of_the_data_is_refused(kind, env, message):
    with pytest.raises(ValueError, match=message):
        fit(kind).policy(env)


@ON_EVERY
def test_actions_of_an_environment_may_start_anywhere(kind):
    class FromFive(gym.Wrapper):
        def __init__(self):
            super().__init__(gym.make("rblspi/ChainWalk-v0"))
            self.action_space = Discrete(2, start=5)

    policy = fit(kind).policy(FromFive())
    np.testing.assert_array_equal(policy.predict(STATES)[0], policy(STATES) + 5)


@ON_LEARNERS
def test_act_takes_batches_of_any_size_and_single_observations(kind, monkeypatch):
    fitted = fit(kind)
    whole = fitted.act(STATES)
    np.testing.assert_array_equal(whole, fitted.policy()(STATES))
    monkeypatch.setattr("rblspi.offline.accumulation.BATCH", 3 * 5)
    np.testing.assert_array_equal(fitted.act(STATES), whole)
    assert fitted.act(np.zeros(0, int)).shape == (0,)
    assert [fitted.act(state) for state in STATES] == whole.tolist()


@ON_LEARNERS
def test_nothing_but_the_discount_is_needed(kind):
    fitted = kind(discount=DISCOUNT).fit(in_proportion())
    assert (fitted.basis, fitted.actions, fitted.actions_) == (None, None, 2)
    assert fitted.converged_
    np.testing.assert_array_equal(fitted.act(STATES), OPTIMAL)
    assert fitted.policy("rblspi/ChainWalk-v0").actions == 2
    assert fitted.predict(STATES, OPTIMAL).shape == (20,)


@ON_LEARNERS
def test_the_history_tells_what_happened(kind):
    told = []
    fitted = kind(BASIS, 2, discount=DISCOUNT).fit(LOG, told.append)
    assert told == fitted.history_
    assert fitted.n_iter_ == len(told)
    np.testing.assert_array_equal(told[-1].weights, fitted.weights_)


@ON_LEARNERS
def test_the_cap_on_iterations_is_kept_and_said(kind):
    built = kind(BASIS, 2, discount=DISCOUNT, max_iterations=2)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations of .* raise max_iterations"):
        built.fit(LOG)
    assert built.n_iter_ == 2
    assert not built.converged_


@pytest.mark.parametrize("kind", EVALUATIONS)
def test_values_of_states_make_no_policy(kind):
    fitted = kind(BASIS, discount=DISCOUNT).fit(LOG)
    with pytest.raises(ValueError, match="actions=None: a policy needs values of actions"):
        fitted.policy()
    if kind is not GPTD:  # which makes one
        with pytest.raises(ValueError, match="basis=None: name the basis"):
            kind(actions=2).fit(LOG, optimal)


@ON_EVERY
def test_the_space_of_the_observations_is_that_of_the_data_unless_given(kind):
    log = some_log(300)
    both = np.concatenate([log.observations, log.next_observations])
    policy = lambda states: np.zeros(len(states), int)  # noqa: E731
    guessed = fit_again(kind(Polynomial(2), 3, discount=0.5), log, policy)
    space = Box(both.min(axis=0), both.max(axis=0), dtype=np.float64)
    given = kind(Polynomial(2), 3, discount=0.5, observation_space=space)
    np.testing.assert_array_equal(fit_again(given, log, policy).weights_, guessed.weights_)
    assert guessed.policy().observation_space == space
