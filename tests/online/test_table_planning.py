"""Planning in models of tables: the Bellman equations, and planning again after a change."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from rblspi import OPSRL
from rblspi.online.table import ANYWHERE, Table, new_table
from rblspi.online.table_planning import PRECISION, plan, plan_again
from tests.support.agents import assert_same_bits

STATES, ACTIONS = 30, 3


def random_table(rng: np.random.Generator, discount: float, lowest: int = ANYWHERE) -> Table:
    """A table with a model: loops, ends, outcomes elsewhere and pairs that nothing follows."""
    table = new_table(ACTIONS, STATES, discount)
    for pair in range(ACTIONS * STATES):
        write_model(table, pair, rng)
    table.workspace_model.place[:] = rng.integers(lowest, STATES + 1, ACTIONS * STATES)
    return table


def write_model(table: Table, pair: int, rng: np.random.Generator) -> None:
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


def exact(table: Table) -> np.ndarray:
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
    policy, before = np.zeros(STATES, int), None
    while before is None or (policy != before).any():
        chosen = policy * STATES + np.arange(STATES)
        system = np.eye(STATES) - transitions[chosen]
        values = np.linalg.solve(system, model.rewards[chosen])
        q = model.rewards + transitions @ values
        before, policy = policy, q.reshape(ACTIONS, STATES).argmax(axis=0)
    return q


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_solves_the_bellman_equations(seed: int, discount: float) -> None:
    table = random_table(np.random.default_rng(seed), discount)
    found, expected = np.zeros(ACTIONS * STATES), exact(table)
    plan(table, found)
    np.testing.assert_allclose(found, expected, atol=PRECISION * np.ptp(expected))


@pytest.mark.parametrize("seed", range(4))
def test_planning_again_finds_what_a_new_plan_would(seed: int) -> None:
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


def test_a_look_in_the_middle_of_an_episode_changes_nothing() -> None:
    one, two = (OPSRL(gym.make("rblspi/NChain-v0", length=30), seed=5) for _ in range(2))
    one.learn(400)
    for _ in range(40):
        two.learn(10, reset_num_timesteps=False).policy()
    assert_same_bits(one, two)
