"""A forbidden action is never taken, and no value is ever taken from one."""

import numpy as np
import pandas as pd
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi import FQI, LSPI, RBLSPI, OneHot, OnlineLSPI, evaluate
from rblspi.data import DataError, Transitions, read_log
from rblspi.data.transitions import concatenated
from rblspi.rollout import collect
from tests.support.logs import assert_same, write_parquet
from tests.support.masked import ACTIONS, STATES, Masked

some = st.lists(st.booleans(), min_size=ACTIONS, max_size=ACTIONS).filter(any)
tables = st.lists(some, min_size=STATES, max_size=STATES)


def test_unmasked_environments_take_the_same_actions_to_the_bit():
    everything = np.ones((STATES, ACTIONS))
    masked = Masked(everything)

    class Plain(Masked):
        def _seen(self):
            return self.state, {}

    for kind in (RBLSPI, OnlineLSPI):
        one, other = (kind(env, seed=3).learn(60) for env in (masked, Plain(everything)))
        np.testing.assert_array_equal(one.policy().weights, other.policy().weights)


def test_predict_takes_masks_as_in_sb3_contrib_or_from_the_observation():
    masks = [[1, 0, 1]] * STATES
    agent = RBLSPI(Masked(masks), seed=0).learn(30)
    for actor in (agent, agent.policy()):
        for allowed in np.eye(ACTIONS, dtype=bool):
            assert actor.predict(2, action_masks=allowed)[0] == 5 + int(np.argmax(allowed))
        batch = np.array([[1, 0, 0], [0, 0, 1]])
        np.testing.assert_array_equal(actor.predict([0, 1], action_masks=batch)[0], [5, 7])
        with pytest.raises(ValueError, match="forbid every action"):
            actor.predict(2, action_masks=[0, 0, 0])
        with pytest.raises(ValueError, match=r"shape \(2,\) do not say which of 3 actions"):
            actor.predict(2, action_masks=[1, 0])
    inside = RBLSPI(Masked(masks, "observation"), seed=0).learn(30)
    assert inside.features.size == STATES  # the mask is no part of the state
    seen = {"state": 1, "action_mask": np.array([0, 1, 0])}
    assert inside.predict(seen)[0] == inside.policy().predict(seen)[0] == 6
    assert list(inside.predict([seen, seen], deterministic=True)[0]) == [6, 6]


def test_masks_of_vector_environments_are_heeded():
    masks = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]
    agent = RBLSPI(Masked(masks), seed=0).learn(50)
    parts = SyncVectorEnv([lambda: Masked(masks), lambda: Masked(masks)])
    assert len(evaluate(agent, parts, 6).returns) == 6
    parts = SyncVectorEnv([lambda: Masked(masks, "observation")] * 2)
    agent = RBLSPI(Masked(masks, "observation"), seed=0).learn(50)
    assert len(evaluate(agent, parts, 6).returns) == 6


def test_a_mask_that_forbids_everything_is_an_error_unless_the_episode_is_over():
    with pytest.raises(ValueError, match="forbid every action"):
        RBLSPI(Masked(np.zeros((STATES, ACTIONS))), OneHot(), seed=0).learn(20)


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")  # all policies are alike
@settings(deadline=None, max_examples=10)
@given(tables, st.integers(0, 99))
def test_estimators_do_not_bootstrap_from_forbidden_actions(masks, seed):
    """With every reward -1 and no end, all values are -10; that of what was never tried is 0."""
    allowed = np.array(masks)
    states, actions = np.nonzero(allowed)
    after = np.random.default_rng(seed).integers(STATES, size=len(states))
    never = np.zeros(len(states), bool)
    log = Transitions.from_arrays(
        *(states, actions, -np.ones(len(states)), after, never, ~never), next_allowed=allowed[after]
    )
    for kind in (FQI, LSPI):
        fitted = kind(OneHot(), ACTIONS, discount=0.9, observation_space=Discrete(STATES)).fit(log)
        values = fitted.weights_.reshape(ACTIONS, STATES)
        np.testing.assert_allclose(values[actions, states], -10.0, rtol=0.01)


def test_a_log_knows_which_actions_were_allowed_next(tmp_path):
    masks = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]], bool)
    (log,) = collect(Masked(masks), 100, seed=0)
    going = ~log.terminated
    np.testing.assert_array_equal(log.next_allowed[going], masks[log.next_observations[going]])
    assert masks[log.observations, log.actions].all()
    write_parquet(tmp_path / "log.parquet", log)
    for source in (tmp_path / "log.parquet", pd.read_parquet(tmp_path / "log.parquet")):
        assert_same(concatenated(list(read_log(source))), log)
    episodes = {"episode": [0, 0], "state": [1, 2], "action": [0, 1], "reward": [0, 0]}
    with pytest.raises(DataError, match=r"which actions are allowed .* from rows of tran"):
        read_log(episodes | {"next_allowed": [[1, 0], [1, 1]]})
