"""Action sets: indices and what an environment takes, also between the points of a grid."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.wrappers import RescaleAction
from hypothesis import given
from hypothesis import strategies as st

import rblspi
from rblspi import LinearPolicy, Multilinear
from rblspi.environments.actions import GridActions, action_set
from rblspi.rollout import collect

TORQUE = "Pendulum-v1"
#: on which agents learn quickly
COARSE = Multilinear(7)


def box(numbers, low=-2.0, high=3.0):
    return Box(low, high, (numbers,), np.float64)


@pytest.mark.parametrize(
    "space", [Discrete(4), Discrete(3, start=-1), box(1), box(2), box(3), Box(0, 1, (1, 2))]
)
def test_an_action_has_the_index_that_it_was_made_of(space):
    actions = action_set(space)
    indices = np.arange(actions.count)
    assert [actions.index(actions.action(i)) for i in indices] == indices.tolist()
    assert all(space.contains(actions.action(i)) for i in indices)
    np.testing.assert_array_equal(actions.actions(indices), [actions.action(i) for i in indices])
    assert space.contains(actions.sample())


@given(st.lists(st.floats(-2.0, 3.0), min_size=2, max_size=2))
def test_an_index_is_that_of_the_nearest_point(action):
    actions = action_set(box(2))
    nearest = np.abs(actions.points - action).sum(axis=1).min()
    found = actions.points[actions.index(action)]
    assert np.abs(found - action).sum() == pytest.approx(nearest)


@pytest.mark.parametrize(("numbers", "action"), [(1, [3.1]), (2, [0.0, -2.5]), (1, [0.0, 0.0])])
def test_an_action_out_of_bounds_is_named(numbers, action):
    with pytest.raises(ValueError, match=r"action \[.*\] is out of bounds: it is not in Box"):
        action_set(box(numbers)).index(action)


@given(st.lists(st.floats(-1.9, 2.9), min_size=3, max_size=3))
def test_the_maximum_of_a_paraboloid_is_found(top):
    actions = action_set(box(3))
    values = -np.square(actions.points - top) @ [1.0, 0.3, 2.0]
    found = actions.best(np.array([values.argmax()]), values[None])[0]
    inner = np.isin(np.unravel_index(values.argmax(), actions.sizes), (1,))
    np.testing.assert_allclose(found[inner], np.array(top)[inner], atol=1e-9)
    assert np.isin(found[~inner], (-2.0, 3.0)).all()  # the best point is at a bound


def test_points_need_not_be_evenly_spaced():
    actions = GridActions(box(1), [[-2.0, -1.0, 0.5, 3.0]])
    values = -np.square(actions.points[:, 0] - 0.2)
    assert actions.best(np.array([values.argmax()]), values[None]) == pytest.approx(0.2)


def test_what_lies_beside_an_action_that_is_not_allowed_is_not_taken():
    actions = action_set(box(1))
    values = -np.square(actions.points[:, 0] - 0.8)[None]
    best = values.argmax(axis=1)
    mask = np.ones((1, actions.count), np.uint8)
    assert actions.best(best, values, mask) == pytest.approx(0.8)
    mask[0, best + 1] = 0
    np.testing.assert_array_equal(actions.best(best, values, mask), actions.actions(best))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Box(-1, 1, (4,)), "has 4 numbers, and three points along each are 81 actions"),
        (Box(-np.inf, 1, (1,)), "has no bounds: give it some, with gymnasium.wrappers.Transform"),
        (Box(0, 5, (1,), np.int64), "has whole numbers: offer them as a Discrete space"),
        (Box(0, 0, (1,)), "has a number with nothing to choose: leave it out"),
        (MultiDiscrete([2, 3]), "neither Discrete nor a Box of one to three numbers"),
    ],
)
def test_other_spaces_are_refused_with_what_to_do(space, message):
    with pytest.raises(TypeError, match=message):
        action_set(space)


# Agents and policies -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def agent():
    return rblspi.agent(TORQUE, algorithm="fitted-rmax", basis=COARSE, seed=1).learn(400)


def test_units_of_the_actions_do_not_matter(agent):
    env = RescaleAction(gym.make(TORQUE), np.float32(-0.5), np.float32(0.5))
    rescaled = rblspi.FittedRmax(env, COARSE, seed=1).learn(400)
    np.testing.assert_array_equal(rescaled.episodes, agent.episodes)
    states = agent.session.memory.kept().observations
    taken = [a.predict(states, deterministic=True)[0] for a in (agent, rescaled)]
    np.testing.assert_allclose(taken[0], 4.0 * taken[1], atol=1e-6)


def test_actions_between_the_points_are_taken_unless_it_explores(agent):
    states, points = agent.session.memory.kept().observations, agent.action_set.listed
    greedy, _ = agent.predict(states, deterministic=True)
    assert greedy.shape == (len(states), 1)
    assert greedy.dtype == np.float32
    assert not np.isin(greedy, points).all()
    assert np.isin(agent.predict(states)[0], points).sum() < len(states)
    one, _ = agent.predict(states[0], deterministic=True)
    np.testing.assert_array_equal(one, greedy[0])
    assert agent.env.action_space.contains(one)


def test_files_and_evaluation_know_the_actions(agent, tmp_path):
    states = agent.session.memory.kept().observations
    expected, _ = agent.predict(states, deterministic=True)
    agent.save(tmp_path / "agent.npz")
    agent.policy().save(tmp_path / "policy.npz")
    loaded = [rblspi.Agent.load(tmp_path / "agent.npz"), LinearPolicy.load(tmp_path / "policy.npz")]
    for actor in loaded:
        np.testing.assert_array_equal(actor.predict(states, deterministic=True)[0], expected)
    returns = [rblspi.evaluate(actor, episodes=2).returns for actor in (agent, *loaded)]
    np.testing.assert_array_equal(returns[1:], returns[:1] * 2)
    vector = gym.make_vec(TORQUE, num_envs=2, vectorization_mode="sync")
    assert rblspi.evaluate(agent, vector, episodes=2).returns.shape == (2,)


def test_a_graph_takes_the_same_actions(agent, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    agent.policy().export(tmp_path / "policy.onnx")
    providers = ["CPUExecutionProvider"]
    graph = runtime.InferenceSession(tmp_path / "policy.onnx", providers=providers)
    states = agent.session.memory.kept().observations
    (taken,) = graph.run(["action"], {"observation": states})
    expected, _ = agent.predict(states, deterministic=True)
    assert taken.dtype == expected.dtype
    np.testing.assert_allclose(taken, expected, rtol=1e-6, atol=1e-6)


def test_copies_that_step_together_take_numbers():
    vector = gym.make_vec(TORQUE, num_envs=3, vectorization_mode="sync")
    agent = rblspi.FittedRmax(vector, COARSE, seed=0).learn(30)
    assert agent.session.memory.size == 30


def test_a_log_has_the_action_that_was_taken():
    (log,) = collect(TORQUE, 50, seed=0)
    assert set(log.actions) <= set(range(5))
    (log,) = collect(TORQUE, 50, lambda _: np.array([0.9]), seed=0)
    assert (log.actions == 3).all()  # -2, -1, 0, 1, 2
    with pytest.raises(ValueError, match=r"action \[2.5\] is out of bounds"):
        next(collect(TORQUE, 50, lambda _: np.array([2.5]), seed=0))
