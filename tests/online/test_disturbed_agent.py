"""An agent that is saved, loaded, asked, interrupted and let down learns as one left in peace.

Where the environment is compiled, everything that is not learning leaves every bit as it was. An
environment in Python cannot go on in the middle of an episode, neither after a failure nor in a
loaded agent: there, the undisturbed agent is told to begin a new episode as well.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rblspi import RBLSPI, Agent, OneHot, OnlineLSPI, RBFGrid, evaluate
from rblspi.online.agent_file import fields
from rblspi.online.rblspi import TRANSITIONS
from rblspi.rollout.loop import NOT_STARTED
from tests.support.agents import assert_same_bits

#: answers of a callback that stop the learning
STOPPING = (False, np.False_, 0)


class Fragile(gym.Wrapper):
    """Fails once it is told to, so many steps later."""

    def __init__(self):
        super().__init__(gym.make("FrozenLake-v1"))
        self.steps_left, self.error = -1, RuntimeError

    def step(self, action):
        self.steps_left -= 1
        if self.steps_left == 0:
            raise self.error("the step failed")
        return self.env.step(action)


class Disturbed(RuleBasedStateMachine):
    """Two agents that make the same steps; one of them is disturbed between and during them."""

    kind: ClassVar[type[Agent]]
    compiled: ClassVar[bool]

    @initialize(seed=st.integers(0, 9), period=st.sampled_from([1, 20, 70, "episode"]))
    def make(self, seed, period):
        make = self._make_car if self.compiled else self._make_lake
        self.agent, self.sound = (make(seed=seed, update_every=period) for _ in range(2))

    def _make_car(self, **settings):
        env = gym.make("rblspi/MountainCar-v0", max_episode_steps=60)
        return self.kind(env, RBFGrid(2), **settings)

    def _make_lake(self, **settings):
        return self.kind(Fragile(), OneHot(), **settings)

    def _catch_up(self):
        """Let the undisturbed agent make the steps that the other one has made."""
        missing = self.agent.num_timesteps - self.sound.num_timesteps
        if missing:
            self.sound.learn(missing, reset_num_timesteps=False)

    def _leave_episode(self):
        """Let the undisturbed agent do what the other one has to do in Python."""
        if not self.compiled:
            self.sound.leave_episode()

    def _observations(self, seed):
        space = self.agent.env.observation_space
        space.seed(seed)
        return np.array([space.sample() for _ in range(5)])

    # Learning -------------------------------------------------------------------------------

    @rule(pieces=st.lists(st.integers(1, 90), min_size=1, max_size=3))
    def learn(self, pieces):
        for steps in pieces:
            self.agent.learn(steps, reset_num_timesteps=False)
        self._catch_up()

    @rule(count=st.integers(1, 3))
    def learn_episodes(self, count):
        before = len(self.agent.episodes)
        self.agent.learn(episodes=count, reset_num_timesteps=False)
        assert len(self.agent.episodes) == before + count
        self._catch_up()

    @rule(count=st.integers(1, 3), answer=st.sampled_from(STOPPING))
    def stop_by_a_callback(self, count, answer):
        goal = len(self.agent.episodes) + count

        def callback(agent):
            return answer if len(agent.episodes) == goal else None

        self.agent.learn(10**6, [lambda agent: None, callback], reset_num_timesteps=False)
        assert len(self.agent.episodes) == goal
        self._catch_up()

    @precondition(lambda self: not self.compiled)
    @rule(steps=st.integers(1, 60), error=st.sampled_from([RuntimeError, KeyboardInterrupt]))
    def fail_in_a_step(self, steps, error):
        before = self.agent.num_timesteps
        self.agent.env.steps_left, self.agent.env.error = steps, error
        with pytest.raises(error, match="the step failed"):
            self.agent.learn(1000, reset_num_timesteps=False)
        assert self.agent.num_timesteps == before + steps - 1
        self._catch_up()
        # For the step that failed, an episode was begun if need be, and an action was chosen.
        session = self.sound.session
        if session.episode.steps[0] == NOT_STARTED:
            session._reset(np.empty(0), session.episode.state, None)
        self._leave_episode()
        self.sound.rng.bit_generator.state = self.agent.rng.bit_generator.state

    # Everything else ------------------------------------------------------------------------

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "agent.npz"
            self.agent.save(file)
            self.agent = Agent.load(file, self.agent.env)
        self._leave_episode()

    @rule(seed=st.integers(0, 99), deterministic=st.booleans())
    def predict(self, seed, deterministic):
        """Both are asked, since an agent may draw random numbers for an exploring action."""
        rows = self._observations(seed)
        ours, theirs = (
            agent.predict(rows, deterministic=deterministic)[0]
            for agent in (self.agent, self.sound)
        )
        np.testing.assert_array_equal(ours, theirs)

    @rule(seed=st.integers(0, 99))
    def look(self, seed):
        rows = self._observations(seed)
        ours, theirs = (agent.action_values(rows) for agent in (self.agent, self.sound))
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        for explore in (False, True):
            self.agent.policy(explore).predict(rows)

    @rule()
    def evaluate(self):
        evaluate(self.agent, episodes=2, longest=80)
        self._leave_episode()

    # What must hold -------------------------------------------------------------------------

    @invariant()
    def both_are_the_same(self):
        if self.compiled:
            assert_same_bits(self.agent, self.sound)
            return
        others = {field.name: field.array for field in fields(self.sound)}
        for name, array, *_ in fields(self.agent):
            if name.startswith("state."):
                np.testing.assert_array_equal(array, others[name], err_msg=name)
        np.testing.assert_array_equal(self.agent.episodes, self.sound.episodes)
        assert self.agent.num_timesteps == self.sound.num_timesteps

    @invariant()
    def counts_agree(self):
        state = self.agent.state
        assert state.counters[TRANSITIONS] == self.agent.num_timesteps
        if self.kind is RBLSPI:
            learnt = state.posterior.statistics.count.sum() + state.buffer.size[0]
            assert learnt == self.agent.num_timesteps


@pytest.mark.slow
@pytest.mark.parametrize("where", ["compiled", "Python"])
@pytest.mark.parametrize("kind", [RBLSPI, OnlineLSPI])
def test_a_disturbed_agent_is_the_same_as_an_undisturbed_one(kind, where):
    machine = type("Machine", (Disturbed,), {"kind": kind, "compiled": where == "compiled"})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=15,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
