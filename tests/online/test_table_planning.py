"""Planning in models of tables: the Bellman equations, and planning again after a change."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OPSRL
from rblspi.online.table import ANYWHERE, new_table, take_note
from rblspi.online.table_planning import PRECISION, plan, plan_again, prepare
from tests.support.agents import assert_same_bits

STATES, ACTIONS = 30, 3


def random_table(rng, discount, lowest=ANYWHERE):
    """A table with a model: loops, ends, outcomes elsewhere and pairs that nothing follows."""
    table = new_table(ACTIONS, STATES, discount)
    for pair in range(ACTIONS * STATES):
        write_model(table, pair, rng)
    table.workspace_model.place[:] = rng.integers(lowest, STATES + 1, ACTIONS * STATES)
    return table


def forbid(table, rng, states):
    """Forbid some actions in these states, at least one and at times all."""
    few = rng.random((ACTIONS, len(states))) < 0.5
    few[0] |= ~few.any(axis=0)
    table.forbidden.reshape(ACTIONS, STATES)[:, states] = few


def write_model(table, pair, rng):
    """Give a pair other outcomes, the old ones among them, and a visit."""
    model, old = table.workspace_model, table.sizes[pair]
    near = (pair + np.arange(-2, 3)) % STATES  # the pair's own state is among them
    others = np.setdiff1d([*near, STATES], table.outcomes[pair, :old])
    new = rng.permutation(others)[: rng.integers(0, 2 + (old == 0))]
    table.outcomes[pair, old : old + len(new)] = new
    table.sizes[pair] = size = old + len(new)
    elsewhere = model.elsewhere[pair] if table.visits[pair] else 0.1 * (pair % 2)
    weights = rng.exponential(size=size) + 1e-9
    model.probabilities[pair, :size] = (1 - elsewhere) * weights / weights.sum()
    model.elsewhere[pair] = elsewhere
    model.rewards[pair] = rng.standard_normal()
    table.visits[pair] += 1


def exact(table):
    """Action values by policy iteration, each policy evaluated by solving its equations."""
    model, k = table.workspace_model, ACTIONS * STATES
    transitions = np.zeros((k, STATES + 1))
    for pair in range(k):
        for i in range(table.sizes[pair]):
            transitions[pair, table.outcomes[pair, i]] += model.probabilities[pair, i]
        place = slice(STATES) if model.place[pair] == ANYWHERE else model.place[pair]
        share = STATES if model.place[pair] == ANYWHERE else 1
        transitions[pair, place] += model.elsewhere[pair] / share
    transitions = table.discount * transitions[:, :STATES]
    forbidden = table.forbidden.reshape(ACTIONS, STATES) == 1
    over = forbidden.all(axis=0)  # worth 0
    policy, before = forbidden.argmin(axis=0), None
    while before is None or (policy != before).any():
        chosen = policy * STATES + np.arange(STATES)
        system = np.eye(STATES) - np.where(over[:, None], 0.0, transitions[chosen])
        values = np.linalg.solve(system, np.where(over, 0.0, model.rewards[chosen]))
        q = model.rewards + transitions @ values
        allowed = np.where(forbidden, -np.inf, q.reshape(ACTIONS, STATES))
        before, policy = policy, allowed.argmax(axis=0)
    return q


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("masked", [0, STATES // 2])
def test_a_plan_solves_the_bellman_equations(masked, seed, discount):
    rng = np.random.default_rng(seed)
    table = random_table(rng, discount)
    forbid(table, rng, rng.choice(STATES, masked, replace=False))
    found, expected = np.zeros(ACTIONS * STATES), exact(table)
    plan(table, found)
    np.testing.assert_allclose(found, expected, atol=PRECISION * np.ptp(expected))


@pytest.mark.parametrize("seed", range(4))
def test_planning_again_finds_what_a_new_plan_would(seed):
    """Of ten pairs the model changes, some with new outcomes, five times."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, 0.99, lowest=0)
    found = np.zeros(ACTIONS * STATES)
    plan(table, found)
    for _ in range(5):
        table.visits_before[:] = table.visits
        for pair in rng.choice(ACTIONS * STATES, 10, replace=False):
            write_model(table, pair, rng)
        before = found.copy()
        plan_again(table, found)
        expected = exact(table)
        assert np.abs(before - expected).max() > 100 * PRECISION * np.ptp(expected)
        np.testing.assert_allclose(found, expected, atol=PRECISION * np.ptp(expected))


@pytest.mark.parametrize("seed", range(4))
def test_other_masks_are_planned_with_as_in_a_new_plan(seed):
    """What is allowed in six states changes five times; a workspace made anew gives the same."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, 0.99, lowest=0)
    found = np.zeros(ACTIONS * STATES)
    plan(table, found)
    for _ in range(5):
        take_note(table)
        forbid(table, rng, rng.choice(STATES, 6, replace=False))
        before, anew = found.copy(), found.copy()
        plan_again(table, found)
        prepare(table, anew)
        plan_again(table, anew)
        np.testing.assert_array_equal(anew, found)
        expected = exact(table)
        assert np.abs(before - expected).max() > 10 * PRECISION * np.ptp(expected)
        np.testing.assert_allclose(found, expected, atol=PRECISION * np.ptp(expected))


class Gates(gym.Wrapper):
    """Which action is forbidden in a state changes from visit to visit, at times to none."""

    visits = 0

    def _masked(self, state, info):
        self.visits += 1
        closed = (state + self.visits // 7) % 3
        return {**info, "action_mask": np.array([closed != 0, closed != 1])}

    def reset(self, **settings):
        state, info = self.env.reset(**settings)
        return state, self._masked(state, info)

    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        return state, reward, terminated, truncated, self._masked(state, info)


def test_an_agent_acts_by_a_plan_for_what_is_allowed_now():
    """At every step it has planned with the present masks, by values of allowed actions alone."""
    agent = OPSRL(Gates(gym.make("rblspi/NChain-v0", length=8)), seed=1, discount=0.9)
    table, changes = agent.state.table, 0
    for _ in range(150):
        before, going = table.forbidden.copy(), agent.session.episode.steps[0] > 0
        agent.learn(1, reset_num_timesteps=False)
        changes += bool((table.forbidden != before).any())
        planned = table.forbidden_before
        if going:  # otherwise a reset may have changed what is allowed before the plan
            np.testing.assert_array_equal(planned, before)
        values = np.where(planned == 1, -np.inf, agent.state.sampled).reshape(agent.actions, -1)
        np.testing.assert_array_equal(table.workspace_plan.values[:-2], values.max(axis=0))
    assert changes > 20


@pytest.mark.parametrize("wrap", [lambda env: env, Gates])
def test_a_look_in_the_middle_of_an_episode_changes_nothing(wrap):
    one, two = (OPSRL(wrap(gym.make("rblspi/NChain-v0", length=30)), seed=5) for _ in range(2))
    one.learn(400)
    for _ in range(40):
        two.learn(10, reset_num_timesteps=False).policy()
    assert_same_bits(one, two)
