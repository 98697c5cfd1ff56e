"""A forbidden action is never taken, and no value is ever taken from one."""

from functools import partial

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.spaces import Dict, Discrete, MultiBinary
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi import (
    FQI,
    LSPI,
    LSTD,
    OPSRL,
    PSRL,
    RBLSPI,
    RLSVI,
    FittedRmax,
    Multilinear,
    OneHot,
    OnlineLSPI,
    evaluate,
)
from rblspi.data import DataError, ParquetWriter, Transitions, read_log
from rblspi.data.transitions import concatenated
from rblspi.rollout import collect
from tests.support.logs import assert_same

STATES, ACTIONS = 4, 3
AGENTS = {
    "RBLSPI": partial(RBLSPI, update_every=3),
    "OnlineLSPI": partial(OnlineLSPI, update_every=3),
    "OnlineLSPI on-policy": partial(OnlineLSPI, update_every=3, on_policy=True),
    "RLSVI": RLSVI,
    "PSRL": PSRL,
    "OPSRL": OPSRL,
}


class Masked(gym.Env):
    """A random walk over a few states, which raises an error if a forbidden action is taken."""

    def __init__(self, masks, where="info", seed=0):
        self.masks, self.where = np.array(masks, np.int8), where
        seen = Discrete(STATES)
        inside = Dict(state=seen, action_mask=MultiBinary(ACTIONS))
        self.observation_space = seen if where == "info" else inside
        self.action_space = Discrete(ACTIONS, start=5)
        self.order = np.random.default_rng(seed).integers(STATES, size=(STATES, ACTIONS))

    def _seen(self):
        mask = self.masks[self.state]
        if self.where == "info":
            return self.state, {"action_mask": mask}
        return {"state": self.state, "action_mask": mask}, {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = int(self.np_random.integers(STATES)), 0
        return self._seen()

    def step(self, action):
        assert self.masks[self.state, action - 5], "a forbidden action was taken"
        reward = float(self.state == 0)
        self.state, self.time = int(self.order[self.state, action - 5]), self.time + 1
        observation, info = self._seen()
        return observation, reward, self.time == 9, False, info


some = st.lists(st.booleans(), min_size=ACTIONS, max_size=ACTIONS).filter(any)
tables = st.lists(some, min_size=STATES, max_size=STATES)


@pytest.mark.parametrize("name", [*AGENTS, "FittedRmax"])
@settings(deadline=None, max_examples=5)
@given(tables, st.sampled_from(["info", "observation"]), st.integers(0, 99))
def test_a_forbidden_action_is_never_taken(name, masks, where, seed):
    env = Masked(masks, where, seed)
    kind = AGENTS.get(name, partial(FittedRmax, basis=Multilinear(4)))
    agent = kind(env, discount=0.9, seed=seed).learn(40)
    assert len(evaluate(agent, env, 2).returns) == 2
    memory = agent.session.memory
    after = memory.next_observations[: memory.size, 0].astype(int)
    going = memory.ends[: memory.size] != 1
    np.testing.assert_array_equal(
        memory.next_allowed[: memory.size][going], np.array(masks)[after][going]
    )


@pytest.mark.parametrize("name", AGENTS)
def test_values_do_not_depend_on_what_a_forbidden_action_is_thought_to_be_worth(name):
    """State 1 is left by action 0 alone: a huge value of the others must not reach state 0."""
    masks = [[1, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1]]
    env = Masked(masks)
    env.order[:] = [[1, 1, 1], [2, 3, 3], [0, 0, 0], [0, 0, 0]]
    agent = AGENTS[name](env, OneHot(), discount=0.5, seed=0)
    for field in ("mean", "sampled", "weights"):
        if hasattr(agent.state, field):
            values = getattr(agent.state, field)
            values[STATES + 1 :: STATES] = 1e6  # Q(1, a) of the actions 1 and 2
    agent.learn(300)
    values = agent._weights(False).reshape(ACTIONS, STATES)
    # The walk goes 0, 1, 2, 0, ..., with a reward of 1 in state 0: Q = 1 + gamma^3 + ... <= 8/7
    assert values[:, 0].max() < 1.5


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


def test_values_of_the_greedy_policy_are_those_of_allowed_actions():
    agent = RLSVI(Masked([[1, 0, 0]] * STATES), discount=0.9, seed=0).learn(100)
    values = agent.action_values(np.arange(STATES))
    assert np.isfinite(values.mean).all()


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
        *(states, actions, -np.ones(len(states)), after, never, ~never),
        next_allowed=allowed[after],
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
    with ParquetWriter(tmp_path / "log.parquet") as writer:
        writer.write(log)
    read = concatenated(list(read_log(tmp_path / "log.parquet")))
    assert_same(read, log)
    with pytest.raises(DataError, match="which actions are allowed"):
        read_log(pd.read_parquet(tmp_path / "log.parquet"))


def test_policies_that_take_forbidden_actions_are_refused():
    (log,) = collect(Masked([[1, 0, 0]] * STATES), 50, seed=0)
    with pytest.raises(ValueError, match="where next_allowed forbids it"):
        LSTD(OneHot(), ACTIONS, observation_space=Discrete(STATES)).fit(
            log, lambda observations: np.full(len(observations), 2)
        )
