"""Learning a network: the learner against its equations, and what `DeepQ` does around it."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import Network, evaluate
from rblspi.features.network import as_text, count, split
from rblspi.rollout.memory import CONTINUES, TERMINATED, TRUNCATED, new_memory
from rblspi.rollout.multi_step import multi_step

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("optax", reason="optax is not installed")

from rblspi.model.double_q import (
    AVERAGING,
    STEP_SIZE,
    Batches,
    Learner,
    action_values,
    joined,
    train,
)
from rblspi.online.deep_q import BATCH, BLOCK, DeepQ

SPACE = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)
SIZES = (2, 6, 4, 3)


def batches(updates, **given):
    rng, shape = np.random.default_rng(0), (updates, 16)
    usual = {
        "inputs": rng.standard_normal((*shape, 2)),
        "actions": rng.integers(3, size=shape),
        "rewards": rng.standard_normal(shape),
        "next_inputs": rng.standard_normal((*shape, 2)),
        "discounts": np.full(shape, 0.9),
        "next_allowed": np.ones((*shape, 3), np.bool_),
    }
    return Batches(**usual | given)


def learner():
    hidden = Network(SIZES[1:-1]).numbers(SPACE)
    assert len(hidden) == count(SIZES[:-1])
    return Learner.of(hidden, SIZES)


def test_the_first_step_of_adam_has_its_size_and_the_average_follows():
    """With values of 0 at first, only the last layer has a gradient, and a step is its sign."""
    before, after = learner(), train(learner(), SIZES, batches(1))
    step = after.latest - before.latest
    last = count(SIZES[-2:])
    assert not step[:-last].any()
    moved = np.abs(step[-last:])[step[-last:] != 0.0]
    np.testing.assert_allclose(moved, STEP_SIZE, rtol=1e-2)
    assert len(moved) > last // 2
    np.testing.assert_allclose(after.average - before.average, AVERAGING * step, atol=1e-7)
    assert after.updates == 1


def test_updates_in_one_call_are_those_of_several():
    whole, parts, data = learner(), learner(), batches(6)
    whole = train(whole, SIZES, data)
    for i in range(0, 6, 2):
        parts = train(parts, SIZES, Batches(*(column[i : i + 2] for column in data)))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_allowed_actions_count_ahead():
    """The value of a forbidden action is as large as one likes."""
    start, allowed = learner(), np.ones((1, 16, 3), np.bool_)
    allowed[..., 2] = False
    found = []
    for huge in (1.0, 1e4):
        last = start.average.copy()
        last[-count(SIZES[-2:]) + 2] = huge  # the bias of action 2
        data = batches(1, next_allowed=allowed, actions=np.zeros((1, 16), np.int64))
        found.append(train(start._replace(latest=last, average=last), SIZES, data).first_moment)
    np.testing.assert_array_equal(*found)


def test_a_network_has_the_values_that_the_learner_has():
    """Compiled features in float64 against JAX in float32."""
    learnt = train(learner(), SIZES, batches(100)).average
    inputs = np.random.default_rng(1).standard_normal((20, 2))
    *hidden, (bias, matrix) = layers = list(split(learnt, SIZES))
    network = Network(SIZES[1:-1], weights=as_text(joined(hidden)))
    values = network.build(SPACE)(inputs)[:, :-1] @ matrix + bias
    np.testing.assert_allclose(values, action_values(layers, inputs), rtol=1e-5, atol=1e-6)


def test_transitions_over_several_steps_end_with_their_episode():
    memory = new_memory(8, 1, 2)
    memory.counters[:] = (7, 3, 7)
    memory.episodes[:7] = (1, 2, 1, 2, 1, 2, 3)  # of two copies, whose rows alternate
    memory.steps[:7] = (0, 0, 1, 1, 2, 2, 0)
    memory.rewards[:7] = 2.0 ** np.arange(7)
    memory.ends[:7] = (CONTINUES,) * 4 + (TERMINATED, TRUNCATED, CONTINUES)
    found = multi_step(memory, np.arange(7), 3, 0.5, 2)
    np.testing.assert_array_equal(found.last, (4, 5, 4, 5, 4, 5, 6))
    rewards = (1 + 2 + 4, 2 + 4 + 8, 4 + 8, 8 + 16, 16, 32, 64)
    np.testing.assert_array_equal(found.rewards, rewards)
    np.testing.assert_array_equal(found.discounts, (0, 0.125, 0, 0.25, 0, 0.5, 0.5))


def test_values_stay_the_same_in_other_units():
    agent = DeepQ("CartPole-v1", Network((6, 4)), seed=0).learn(BATCH + 2 * BLOCK)
    seen = agent.session.memory.kept().observations[:20].copy()
    agent._rescale_values()
    before = agent.policy().values(seen)
    agent.session.memory.rewards[:] *= 5.0
    agent.session.memory.observations[:] *= (1.0, 2.0, 3.0, 4.0)
    unit = agent.state.unit.copy()
    agent._rescale_values()
    agent._rescale_observations()
    agent._act_by_average()
    np.testing.assert_allclose(agent.state.unit, 5.0 * unit)
    assert not np.allclose(agent.basis.std, 1.0)
    np.testing.assert_allclose(agent.policy().values(seen), before, rtol=1e-5)  # of float32


def test_a_full_memory_keeps_the_newest_and_learns_on(monkeypatch):
    monkeypatch.setattr(DeepQ, "most_remembered", 10 * BATCH)
    agent = DeepQ("CartPole-v1", Network(4), seed=0).learn(2000)
    memory = agent.session.memory
    assert 0.7 * 10 * BATCH < memory.size < 10 * BATCH
    order = memory.order()
    np.testing.assert_array_equal(order, np.arange(memory.size))
    assert memory.episodes[order[-1]] == memory.counters[1]


@pytest.mark.slow
def test_it_learns_to_balance_a_pole():
    """Random actions have a return of about 22."""
    agent = DeepQ("CartPole-v1", Network((32, 32)), seed=1).learn(6000)
    assert evaluate(agent.policy(), episodes=10, seed=0).returns.mean() > 150.0


def test_it_says_which_basis_and_observations_it_takes():
    with pytest.raises(TypeError, match=r"DeepQ learns its features.*use OptimisticLSVI"):
        DeepQ("CartPole-v1", lambda s: s)
    env = gym.make("CartPole-v1")
    env.observation_space = gym.spaces.Box(-1.0, 1.0, (30, 30))
    with pytest.raises(ValueError, match="observations of 900 numbers are too large"):
        DeepQ(env)
