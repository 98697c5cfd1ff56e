import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from rblspi.features import Polynomial
from rblspi.offline import BLSPI, BLSTD, FQI, LSPI, LSTD, NotFittedError
from tests.support.chain import BASIS, DISCOUNT, STATES, in_proportion

ALL = pytest.mark.parametrize("estimator", [LSTD, BLSTD, LSPI, BLSPI, FQI])

#: those that find a policy, and are fitted without one
LEARNERS = (LSPI, BLSPI, FQI)


EVALUATION = {"basis": inspect.Parameter.empty, "actions": None, "discount": 0.99}
LEARNING = {**EVALUATION, "basis": None}
ITERATION = {"max_iterations": 20, "tolerance": 1e-6, "initial_policy": None}
BAYESIAN = {"prior_precision": None, "noise_precision": None}
LAST = {"ridge": 1e-6, "observation_space": None, "columns": None}
SIGNATURES = {
    LSTD: {**EVALUATION, **LAST},
    BLSTD: {**EVALUATION, **BAYESIAN, **LAST},
    LSPI: {**LEARNING, **ITERATION, **LAST},
    BLSPI: {**LEARNING, **BAYESIAN, "pessimism": 0.0, **ITERATION, **LAST},
    FQI: {**LEARNING, "max_iterations": 500, "tolerance": 1e-3, **LAST, "ridge": None},
}


@ALL
def test_the_signature_lists_all_parameters_with_their_defaults(estimator):
    parameters = inspect.signature(estimator).parameters
    assert [(p.name, p.default) for p in parameters.values()] == [*SIGNATURES[estimator].items()]
    positional = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert positional == ["basis", "actions"]
    assert [*estimator(BASIS, 2).get_params()] == [*SIGNATURES[estimator]]


@ALL
def test_estimators_are_compared_by_identity(estimator):
    one, other = estimator(BASIS, 2), estimator(BASIS, 2)
    assert one != other
    assert len({one, other}) == 2


@ALL
def test_parameters_come_back_as_they_were_given(estimator):
    basis = Polynomial(3)
    built = estimator(basis, 2, discount=0.5)
    parameters = built.get_params()
    assert parameters["basis"] is basis
    assert parameters["discount"] == 0.5
    assert estimator(**parameters).get_params() == parameters
    assert built.set_params(discount=0.7, ridge=1e-3) is built
    assert built.discount == 0.7


@ALL
def test_scikit_learn_clones_them(estimator):
    built = estimator(BASIS, 2, discount=DISCOUNT)
    copy = clone(built)
    assert copy is not built
    assert copy.get_params() == built.get_params()


@ALL
def test_they_show_what_is_not_the_default(estimator):
    assert repr(estimator(Polynomial(3), 2, discount=0.5)) == (
        f"{estimator.__name__}(basis={Polynomial(3)!r}, actions=2, discount=0.5)"
    )


@ALL
def test_unknown_parameters_are_refused(estimator):
    with pytest.raises(ValueError, match="has no parameter 'gamma', only basis, actions, discount"):
        estimator(BASIS, 2).set_params(gamma=0.9)


@ALL
def test_predictions_before_fit_are_refused(estimator):
    with pytest.raises(NotFittedError, match=f"this {estimator.__name__} is not fitted yet"):
        estimator(BASIS, 2).predict([0])


@ALL
def test_fitted_estimators_survive_pickling(estimator):
    policy = () if estimator in LEARNERS else (np.zeros(in_proportion().size, int),)
    fitted = estimator(BASIS, 2, discount=DISCOUNT).fit(in_proportion(), *policy)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(STATES), fitted.predict(STATES))


@ALL
@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
def test_sums_that_overflow_are_named(estimator):
    transitions = in_proportion()
    policy = () if estimator in LEARNERS else (np.zeros(transitions.size, int),)
    built = estimator(BASIS, 2, discount=DISCOUNT)
    huge = replace(transitions, rewards=np.full(transitions.size, 1e308))
    with pytest.raises(ValueError, match="the sums over the transitions overflow: rescale the re"):
        built.fit(huge, *policy)
    with pytest.raises(ValueError, match="the sums over the transitions overflow"):
        estimator(lambda state: np.array([1e200, state]), 2).fit(transitions, *policy)
    large = replace(transitions, rewards=np.full(transitions.size, 1e150))
    assert np.isfinite(built.fit(large, *policy).weights_).all()


@pytest.mark.parametrize("estimator", [LSTD, BLSTD])
def test_transitions_that_would_overflow_are_not_added(estimator):
    policy = np.zeros(in_proportion().size, int)
    built = estimator(BASIS, 2, discount=DISCOUNT).fit(in_proportion(), policy)
    before = built.statistics_
    huge = replace(in_proportion(), rewards=np.full(in_proportion().size, 1e308))
    with pytest.raises(ValueError, match="overflow"):
        built.partial_fit(huge, policy)
    assert built.statistics_ is before


@ALL
def test_more_weights_than_memory_can_hold_are_refused(estimator):
    policy = () if estimator in LEARNERS else (np.zeros(in_proportion().size, int),)
    with pytest.raises(ValueError, match=r"actions=1000000 with 5 features each need 5,000,000 we"):
        estimator(BASIS, 10**6).fit(in_proportion(), *policy)


@ALL
def test_fitting_again_forgets_what_was(estimator):
    policy = () if estimator in LEARNERS else (np.zeros(in_proportion().size, int),)
    built = estimator(BASIS, 2, discount=DISCOUNT)
    once = built.fit(in_proportion(), *policy).weights_
    twice = built.fit(in_proportion(), *policy).weights_
    np.testing.assert_array_equal(once, twice)
