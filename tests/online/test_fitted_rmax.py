"""Fitted R-max against a plain version of its equations, and what follows from these."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi import FittedRmax, Multilinear, RBFGrid, evaluate
from rblspi.core import archive
from rblspi.offline.fitted_q import attainable
from rblspi.offline.grid_model import allowed_at
from rblspi.offline.kernel_model import nearest, sweep
from rblspi.online import agent_file
from rblspi.online.fitted_rmax import PRECISION
from rblspi.rollout import collect
from tests.support.agents import assert_resumes_to_the_bit, assert_same_bits
from tests.support.textbook_fitted_rmax import Axis, backup

LINES = np.array([False, False])
CAR, PUDDLES = "rblspi/MountainCar-v0", "rblspi/PuddleWorld-v0"


def remembered(agent):
    return agent.session.memory.transitions(agent.features.shape)


def small(seed=1, **settings):
    return FittedRmax(PUDDLES, Multilinear((5, 4)), seed=seed, **settings)


def one_backup(agent, log, values, hope):
    """Q of the agent's model, as a matrix times the values."""
    model = agent._model(log, hope)
    entries = np.repeat(np.arange(len(model.rewards)), np.diff(model.starts))
    q = model.rewards.copy()
    np.add.at(q, entries, model.shares * values[model.next])
    return q.reshape(agent.actions, -1)


@pytest.mark.parametrize("steps", [3, 60, 400])
@pytest.mark.parametrize("neighbours", [1, 8])
def test_a_backup_is_that_of_the_textbook(steps, neighbours):
    agent = small(neighbours=neighbours).learn(steps)
    log, basis = remembered(agent), agent.basis
    values = np.random.default_rng(0).standard_normal(agent.features.size)
    found = one_backup(agent, log, values, 2.0)
    grid = [Axis(*axis) for axis in zip(basis.low, basis.high, basis.vertices, strict=True)]
    wanted = backup(log, grid, values, 2.0, agent.discount, neighbours, agent.actions)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


class Wheel(gym.Env):
    """A wheel that is pushed either way, fast enough to turn; rewarded where it stands up.

    Its observation is (angle, speed), or (cosine, sine, speed), or the latter in another order.
    """

    action_space = gym.spaces.Discrete(2)

    def __init__(self, components="angle", offset=0.0):
        self.components, self.offset = components, offset
        turn = [1.0, 1.0] if components != "angle" else [np.pi]
        high = np.array([*turn, 3.0])
        self.observation_space = gym.spaces.Box(-high, high, dtype=np.float64)

    def seen(self):
        angle = self.angle + self.offset
        cosine, sine = np.cos(angle), np.sin(angle)
        parts = {
            "angle": [np.arctan2(sine, cosine)],
            "cosine first": [cosine, sine],
            "sine first": [sine, cosine],
        }
        return np.array([*parts[self.components], self.speed])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed, self.steps = 0.3, float(self.np_random.uniform(-0.2, 0.2)), 0
        return self.seen(), {}

    def step(self, action):
        push = 2 * int(action) - 1 + self.np_random.normal()
        self.speed = float(
            np.clip(0.95 * self.speed + 0.4 * push - 0.3 * np.sin(self.angle), -3, 3)
        )
        self.angle += 0.7 * self.speed
        self.steps += 1
        return self.seen(), float(np.cos(self.angle) < -0.8), False, self.steps == 40, {}


def on_wheel(components="angle", offset=0.0):
    """An agent, and what it plans on."""
    env = Wheel(components, offset)
    agent = FittedRmax(env, Multilinear((8, 5)), discount=0.9, seed=0)
    (log,) = collect(env, 300, seed=3)
    agent._fit_grid(log, np.zeros((2, 40)))
    return agent, log


def planned(agent, log):
    values, q, everywhere = np.zeros(40), np.empty((2, 40)), np.ones((40, 2), np.bool_)
    sweep(agent._model(log, 3.0), everywhere, values, q, 1e-13)
    return q.reshape(2, 8, 5)


def test_a_backup_on_a_circle_is_that_of_the_textbook():
    agent, log = on_wheel()
    values = np.random.default_rng(0).standard_normal(40)
    grid = [Axis(-np.pi, np.pi, 8, True), Axis(agent.basis.low[1], agent.basis.high[1], 5)]
    wanted = backup(log, grid, values, 2.0, agent.discount, agent.neighbours, 2)
    np.testing.assert_allclose(one_backup(agent, log, values, 2.0), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("components", ["cosine first", "sine first"])
def test_a_pair_and_its_angle_give_the_same_plan(components):
    one, other = on_wheel(), on_wheel(components)
    assert (one[0].basis.angles, other[0].basis.angles) == ((0,), ((0, 1),))
    found, wanted = planned(*other), planned(*one)
    if components == "sine first":  # the angle goes the other way round, from a quarter of a turn
        found = found[:, (2 - np.arange(8)) % 8]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("cells", [1, 3])
def test_angles_turned_by_some_cells_turn_the_plan_by_as_many(cells):
    wanted, found = planned(*on_wheel()), planned(*on_wheel(offset=cells * np.pi / 4))
    np.testing.assert_allclose(found, np.roll(wanted, cells, axis=1), rtol=1e-9)


def test_beside_an_angle_the_grid_spans_three_standard_deviations_of_what_was_seen():
    agent, log = on_wheel()
    log.next_observations[0, 1] = 300.0
    agent._fit_grid(log, np.zeros((2, 40)))
    seen = np.concatenate([log.observations, log.next_observations])
    middle, reach = seen.mean(axis=0), 3.0 * seen.std(axis=0)
    np.testing.assert_allclose(agent.basis.low, [-np.pi, seen[:, 1].min()])
    np.testing.assert_allclose(agent.basis.high, [np.pi, (middle + reach)[1]])


def test_the_angles_are_found_once_and_kept(tmp_path):
    agent = FittedRmax("rblspi/CartPoleSwingUp-v0", Multilinear(4), seed=0).learn(200)
    assert agent.basis.angles == ((2, 3),)
    assert agent.features.size == 4**4
    make = lambda: FittedRmax("rblspi/CartPoleSwingUp-v0", Multilinear(4), seed=1)  # noqa: E731
    assert_resumes_to_the_bit(make, 700, tmp_path / "agent.npz")


def test_planned_values_solve_the_bellman_equation_of_the_model():
    agent = small().learn(500)
    log = remembered(agent)
    hope = agent._hope(log)
    q = agent._solve(log, np.zeros((agent.actions, agent.features.size)), hope)
    low, high = attainable([log], agent.discount)
    again = one_backup(agent, log, q.max(axis=0), hope)
    np.testing.assert_allclose(again, q, atol=2 * PRECISION * max(high, hope) - 2 * PRECISION * low)


def test_the_model_is_a_contraction_with_probabilities():
    agent = small().learn(300)
    model = agent._model(remembered(agent), 0.0)
    assert (model.shares >= 0.0).all()
    sums = np.add.reduceat(np.append(model.shares, 0.0), model.starts[:-1])
    empty = np.diff(model.starts) == 0
    assert (sums[~empty] <= agent.discount + 1e-12).all()


def test_values_stay_within_what_the_rewards_and_the_hope_allow():
    agent = small().learn(600)
    log = remembered(agent)
    low, high = attainable([log], agent.discount)
    hope = agent._hope(log)
    q = agent._solve(log, np.zeros((agent.actions, agent.features.size)), hope)
    assert q.min() >= low - 1e-9 * abs(low)
    assert q.max() <= max(high, hope) + 1e-9 * abs(low)


def test_optimism_is_a_number_of_pseudo_observations():
    rng = np.random.default_rng(0)
    states, vertices = rng.random((100, 2)), rng.random((5, 2))
    once = nearest(states, vertices, LINES, 8)
    thrice = nearest(states, vertices, LINES, 8, optimism=3.0)
    np.testing.assert_array_equal(thrice.unknown, 3.0 * once.unknown)
    np.testing.assert_array_equal(thrice.weights, once.weights)


def test_a_best_reward_that_is_known_is_hoped_for_whatever_was_seen():
    agent = small(best_reward=2.0, discount=0.9, optimism=1e12).learn(200)
    log = remembered(agent)
    assert agent._hope(log) == pytest.approx(20.0)
    q = agent._solve(log, np.zeros((agent.actions, agent.features.size)), agent._hope(log))
    np.testing.assert_allclose(q, 20.0, rtol=1e-6)  # the unknown outweighs everything


def test_forbidden_actions_are_not_bootstrapped_from():
    agent = small().learn(300)
    log = remembered(agent)
    only_first = np.zeros((log.size, agent.actions), np.bool_)
    only_first[:, 0] = True
    allowed = allowed_at(replace(log, next_allowed=only_first), agent._grid, agent.actions)
    assert allowed[:, 0].all()
    assert not allowed[:, 1:].any()
    values, q = np.zeros(agent.features.size), np.empty((agent.actions, agent.features.size))
    sweep(agent._model(log, 1e6), allowed, values, q, 1e-6)
    np.testing.assert_array_equal(values, q[0])


@pytest.mark.parametrize("offset", [-10.0, 3.0])
def test_a_constant_added_to_rewards_without_terminal_states_moves_all_values(offset):
    agent = small(discount=0.9).learn(400)
    log = remembered(agent)
    log = replace(log, terminated=np.zeros_like(log.terminated))
    moved = replace(log, rewards=log.rewards + offset)
    start = np.zeros((agent.actions, agent.features.size))
    assert agent._hope(moved) == pytest.approx(agent._hope(log) + offset / 0.1)
    one = agent._solve(log, start, agent._hope(log))
    other = agent._solve(moved, start, agent._hope(moved))
    low, high = attainable([log], agent.discount)
    np.testing.assert_allclose(other - one, offset / 0.1, atol=4 * PRECISION * 2 * (high - low))


def test_it_hopes_for_more_than_it_has_seen_as_long_as_nothing_ends():
    agent = FittedRmax(CAR, Multilinear(5), seed=0).learn(20)
    log = remembered(agent)
    assert not log.terminated.any()
    assert agent._hope(log) == pytest.approx(-1.0 / (1.0 - agent.discount) + 1.0)


def test_the_grid_spans_what_was_seen_and_the_functions_on_it_stay_the_same():
    agent = small().learn(100)
    log = remembered(agent)
    weights = np.random.default_rng(0).standard_normal((agent.actions, agent.features.size))
    before = agent.features
    some = log.rows(0, 30)
    again = agent._fit_grid(some, weights)
    seen = np.concatenate([some.observations, some.next_observations])
    np.testing.assert_allclose(agent.basis.low, seen.min(axis=0))
    np.testing.assert_allclose(agent.basis.high, seen.max(axis=0))
    np.testing.assert_allclose(again.T, before(agent._grid.points()) @ weights.T, atol=1e-12)


def test_a_full_memory_keeps_what_is_rare(monkeypatch):
    """Half of it, and from every cell and action as many as from any other, or all there are."""
    monkeypatch.setattr(FittedRmax, "most_remembered", 400)
    agent = small().learn(399)
    memory = agent.session.memory
    rows = agent._spread_out(memory.kept())
    assert rows.sum() == 200
    cells = np.floor(agent._grid.places(memory.kept().observations) * agent._grid.cells)
    by_place = {}
    for *cell, action, kept in np.column_stack([cells, memory.kept().actions, rows]):
        by_place.setdefault((*cell, action), []).append(bool(kept))
    level = max(sum(kept) for kept in by_place.values())
    assert level < max(len(kept) for kept in by_place.values())  # some were left out
    for kept in by_place.values():
        assert min(len(kept), level - 1) <= sum(kept) <= min(len(kept), level)


def test_with_a_full_memory_it_resumes_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(FittedRmax, "most_remembered", 300)
    assert_resumes_to_the_bit(small, 700, tmp_path / "agent.npz")


@pytest.mark.parametrize("capacity", [300, 10**6])
def test_what_another_thread_saves_before_a_plan_resumes_to_the_bit(
    capacity, tmp_path, monkeypatch
):
    """Between the last step and the plan that is due, a checkpoint may be written."""
    monkeypatch.setattr(FittedRmax, "most_remembered", capacity)
    whole, due = small().learn(500), []
    plan = FittedRmax._plan

    def saved_before(agent):
        due.append(agent.num_timesteps)
        agent.save(tmp_path / f"{agent.num_timesteps}.npz")
        agent.policy()  # looking changes nothing
        plan(agent)

    with monkeypatch.context() as patched:
        patched.setattr(FittedRmax, "_plan", saved_before)
        looked_at = small().learn(500)
    np.testing.assert_array_equal(looked_at.policy().weights, whole.policy().weights)
    assert due[-1] < 500
    for steps in due[-4:]:
        loaded = FittedRmax.load(tmp_path / f"{steps}.npz")
        loaded.learn(500 - steps, reset_num_timesteps=False)
        assert_same_bits(whole, loaded)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rows", "capacity"), [(0, 300), (0, 1), (1, 1)])
def test_a_file_with_hardly_any_memory_is_learnt_on(rows, capacity, tmp_path):
    path = tmp_path / "agent.npz"
    small().learn(100).save(path)
    description, arrays = archive.read(path, agent_file.FORMAT, agent_file.VERSION)
    arrays |= {
        name: array[:rows]
        for name, array in arrays.items()
        if name.startswith("memory.") and name != "memory.counters"
    }
    arrays["memory.counters"] = np.array([100, 1, rows])
    archive.write(
        path, agent_file.FORMAT, agent_file.VERSION, description | {"capacity": capacity}, arrays
    )
    loaded = FittedRmax.load(path)
    loaded.predict([0.5, 0.5], deterministic=True)
    assert loaded.learn(50).session.memory.size >= 1


def test_it_states_intervals_of_its_values():
    agent = small().learn(400)
    values = agent.action_values(np.array([0.5, 0.5]))
    assert values.std is not None
    assert np.isfinite(values.mean).all()
    assert (values.std > 0.0).all()


def test_it_says_what_it_cannot_do():
    with pytest.raises(TypeError, match="on a grid, Multilinear"):
        FittedRmax(CAR, RBFGrid(8))
    with pytest.raises(ValueError, match="discount=1"):
        FittedRmax(CAR, discount=1.0)
    with pytest.raises(ValueError, match="neighbours=0"):
        FittedRmax(CAR, neighbours=0)
    with pytest.raises(ValueError, match="best_reward=nan"):
        FittedRmax(CAR, best_reward=float("nan"))
    with pytest.raises(ValueError, match="optimism=-1"):
        FittedRmax(CAR, optimism=-1)

    class Wide(gym.Env):
        observation_space = gym.spaces.Box(-2.0, 2.0, (9,))
        action_space = gym.spaces.Discrete(2)

    with pytest.raises(ValueError, match=r"at most 8 numbers.*have 9: use OptimisticLSVI"):
        FittedRmax(Wide(), Multilinear(2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_it_drives_up_the_hill_within_six_thousand_steps(seed):
    agent = FittedRmax(CAR, Multilinear(60), seed=seed).learn(6000)
    assert evaluate(agent.policy(), gym.make(CAR), 10, seed=1).lengths.mean() < 115


class Useless(gym.ObservationWrapper):
    """The position twice, and a constant, beside the observation."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-2.0, 2.0, (4,))

    def observation(self, observation):
        return np.array([*observation, observation[0], 0.3], np.float32)


def test_useless_numbers_change_nothing_and_are_named(capsys):
    plain = FittedRmax(gym.Wrapper(gym.make("MountainCar-v0")), seed=0).learn(300)
    assert "left out" not in capsys.readouterr().err
    other = FittedRmax(Useless(gym.make("MountainCar-v0")), seed=0).learn(300)
    assert "numbers [2, 3] of the observation are left out" in capsys.readouterr().err
    assert other.basis.left_out == (2, 3)
    np.testing.assert_array_equal(plain.policy().weights, other.policy().weights)
