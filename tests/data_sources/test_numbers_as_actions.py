"""A column of numbers as the action: rounded to points, and given back in its units."""

import json

import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box

from rblspi import FQI, LinearPolicy, Multilinear, Polynomial
from rblspi.data import Columns, DataError, read_log
from rblspi.environments.actions import action_set
from rblspi.serving import Decisions


def doses(rows=400, seed=0):
    """A dose from 0.5 to 4.5 is best where it is 1 + 3 times the state."""
    rng = np.random.default_rng(seed)
    state, dose = rng.uniform(0.0, 1.0, rows), rng.uniform(0.5, 4.5, rows)
    dose[:2] = 0.5, 4.5
    reward = -((dose - 1.0 - 3.0 * state) ** 2)
    return pl.DataFrame({"state": state, "dose": dose, "reward": reward, "done": True})


def columns():
    return Columns(state="state", action="dose", reward="reward", terminated="done")


def test_actions_are_the_nearest_of_five_points():
    frame = doses()
    log = read_log(frame, columns())
    assert log.action_names == (0.5, 1.5, 2.5, 3.5, 4.5)
    assert "5 points for the numbers: 0.5, 1.5, 2.5, 3.5, 4.5" in str(log)
    (chunk,) = log
    nearest = np.abs(frame["dose"].to_numpy()[:, None] - log.action_names).argmin(axis=1)
    np.testing.assert_array_equal(chunk.actions, nearest)


def test_a_policy_has_the_units_of_the_log(tmp_path):
    fitted = FQI(Multilinear(5, low=0.0, high=1.0), columns=columns()).fit(doses(4000))
    fitted.policy().save(tmp_path / "policy.npz")
    for policy in (fitted.policy(), LinearPolicy.load(tmp_path / "policy.npz")):
        best = policy.act({"state": 0.4})
        assert isinstance(best, float)
        assert best == pytest.approx(2.2, abs=0.2)  # between the points


def test_another_log_has_the_same_points():
    fitted = FQI(Multilinear(5, low=0.0, high=1.0), columns=columns()).fit(doses())
    beyond = doses(10, seed=1).with_columns(dose=pl.lit(4.6))
    with pytest.raises(DataError, match=r"4\.6 is out of bounds: actions go from 0\.5 to 4\.5"):
        read_log(beyond, columns(), names=(fitted.encoding_, fitted.action_names_))


def test_a_few_numbers_among_whole_ones_are_mistakes():
    frame = doses().with_columns(dose=pl.Series([0.5] + [1.0] * 399))
    with pytest.raises(DataError, match=r"0\.5 is not an action, which count from 0"):
        read_log(frame, columns())


@pytest.mark.parametrize("numbers", [1, 2])
def test_served_decisions_are_points_and_become_transitions(numbers, tmp_path):
    basis, space = Polynomial(1, low=-1, high=1), Box(-1.0, 1.0, (2,), np.float64)
    features, actions = basis.build(space), Box(0.0, 2.0, (numbers,), np.float64)
    count = action_set(actions).count
    weights = np.random.default_rng(0).standard_normal(count * features.size)
    policy = LinearPolicy(
        basis=basis,
        features=features,
        weights=weights,
        observation_space=space,
        action_space=actions,
    )
    states = np.random.default_rng(1).uniform(-1.0, 1.0, (20, 2)).tolist()
    with Decisions(policy, tmp_path / "log.db") as decisions:
        made = decisions.start_acting(states).result()
        for one, after in zip(made, states[1:] + states[:1], strict=True):
            decisions.record(one.id, 1.0, after)
    with Decisions(policy, tmp_path / "log.db") as again:  # the log is of the same actions
        assert again.counts == {"decisions": 20, "outcomes": 20}
    assert [one.action for one in made] == [policy.action_set.listed[a] for a in policy(states)]
    assert json.loads(json.dumps(made[0].action)) in json.loads(json.dumps(again.actions))
    taken = np.concatenate([chunk.actions for chunk in read_log(tmp_path / "log.db")])
    np.testing.assert_array_equal(taken, policy(states))
