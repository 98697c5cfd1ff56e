"""Estimators in the hands of scikit-learn: frames, scores, searches over settings."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from rblspi.data import Columns, DataError
from rblspi.features import Polynomial
from rblspi.offline import BLSPI, FQI, LSPI
from tests.support.chain import BASIS, DISCOUNT, STATES, in_proportion

LEARNERS = pytest.mark.parametrize("learner", [FQI, LSPI, BLSPI])
CUT = Columns(ends="truncated")


def walk(episodes=30, seed=0):
    """A walk on a line in which x should come near 0: steps to the left or to the right."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        x = rng.uniform(-1, 1)
        for time in range(10):
            action = str(rng.choice(["left", "right"]))
            step = 0.3 if action == "right" else -0.3
            rows.append((episode, time, x, 1.0, action, -abs(x + step)))
            x = float(np.clip(x + step + 0.05 * rng.standard_normal(), -1.5, 1.5))
    return pd.DataFrame(rows, columns=["episode", "time", "x", "one", "action", "reward"])


@LEARNERS
@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
def test_a_search_over_settings_with_episodes_held_out(learner):
    log = walk()
    estimator = learner(Polynomial(2), discount=0.8, columns=CUT)
    search = GridSearchCV(
        estimator,
        {"basis": [Polynomial(1, low=-2, high=2), Polynomial(3, low=-2, high=2)]},
        cv=GroupKFold(3),
        error_score="raise",
    ).fit(log, groups=log.episode)
    # The best step depends on the side of 0, which a linear function of x cannot tell in values.
    assert search.best_estimator_.act({"x": 0.9, "one": 1}) == "left"
    assert search.best_estimator_.act({"x": -0.9, "one": 1}) == "right"
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_scores_tell_good_policies_from_bad_ones():
    log, other = walk(seed=1), walk(seed=2)
    good = FQI(Polynomial(3, low=-2, high=2), discount=0.8, columns=CUT).fit(log)
    bad = clone(good).fit(log.assign(reward=-log.reward))
    assert good.score(other) > bad.score(other)
    assert bad.columns == good.columns
    scores = cross_val_score(good, log, groups=log.episode, cv=GroupKFold(3))
    assert len(scores) == 3
    assert scores.min() > bad.score(log)


def test_words_that_were_not_learnt_from_are_named():
    fitted = FQI(Polynomial(1, low=-2, high=2), columns=CUT, max_iterations=2)
    with pytest.warns(match="raise max_iterations"):
        fitted.fit(walk())
    odd = walk().replace({"action": {"left": "back"}})
    with pytest.raises(DataError, match=r"row \d+, column action: 'back' is not an action"):
        fitted.score(odd)


def test_parts_lead_to_the_best_policy():
    whole = in_proportion()
    fitted = LSPI(BASIS, 2, discount=DISCOUNT)
    for _ in range(4):  # the same proportions again and again
        fitted.partial_fit(whole)
    np.testing.assert_array_equal(
        fitted.act(STATES), LSPI(BASIS, 2, discount=DISCOUNT).fit(whole).act(STATES)
    )
