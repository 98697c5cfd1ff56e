"""Every registered agent keeps the promises of `Agent`: the suite goes over the registry.

An agent that is added to the registry is tested here without another line, if it learns on a
`TABLE` and from `NUMBERS`. If it takes one of them alone, it says so in `REFUSES`.
"""

import copy
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi import LinearPolicy, Multilinear, Network, evaluate
from rblspi.core.archive import FileError
from rblspi.registry import OURS
from rblspi.rollout.memory import TERMINATED
from tests.support.agents import assert_resumes_to_the_bit, assert_same_bits
from tests.support.diary import Diary
from tests.support.masked import ACTIONS, STATES, Masked
from tests.support.points import Points

TABLE, NUMBERS = "rblspi/DeepSeaStochastic-v0", "rblspi/PuddleWorld-v0"
BOTH = TABLE, NUMBERS
STEPS = 170
#: by algorithm and environment, the error that says why they do not go together
REFUSES = {
    ("opsrl", NUMBERS): "OPSRL counts visits of states and needs a Discrete",
    ("psrl", NUMBERS): "PSRL counts visits of states and needs a Discrete",
    ("lbrl", TABLE): "LBRL needs observations in a Box",
    ("ctbrl", TABLE): "CTBRL needs observations in a Box",
}
#: by algorithm and environment, the basis that it needs, or a coarse one where it takes long
BASES = {("fitted-rmax", TABLE): Multilinear(4)}
BASES |= {(name, NUMBERS): Multilinear(2) for name in ("lbrl", "ctbrl")}
BASES |= {(record.name, name): Network(8) for record in OURS if record.needs for name in BOTH}
ONLINE = [record for record in OURS if record.online and record.available]


@pytest.fixture(autouse=True, scope="module")
def few_planning_states():
    """Let LBRL plan from a few states, in a tenth of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rblspi.online.baselines.lbrl.STATES", 20)
        yield


def make(record, env, name="", **given):
    """The agent in one of the two environments, which may be wrapped."""
    usual = Multilinear((5, 4)) if (name or env) == NUMBERS else None
    basis = BASES.get((record.name, name or env), usual)
    return record.load()(env, basis, **{"seed": 3, **given})


def case(record, *more):
    """Parameters of a test, which is slow for algorithms to compare with."""
    marks = pytest.mark.slow if "baselines" in record.target else ()
    name = "-".join([record.name, *(one.partition("/")[2] for one in more)])
    return pytest.param(record, *more, id=name, marks=marks)


def every(*environments):
    """Every agent in those of the environments that it takes."""
    pairs = [
        case(record, name)
        for record in ONLINE
        for name in environments
        if (record.name, name) not in REFUSES
    ]
    return pytest.mark.parametrize(("record", "name"), pairs)


by_name = pytest.mark.parametrize("record", [case(record) for record in ONLINE])
on_tables = pytest.mark.parametrize(
    "record", [case(record) for record in ONLINE if (record.name, TABLE) not in REFUSES]
)


# Learning ----------------------------------------------------------------------------------------


@every(TABLE, NUMBERS)
def test_it_learns_counts_and_says_how_it_stands(record, name):
    agent = make(record, name).learn(STEPS)
    assert agent.num_timesteps == STEPS == agent.session.memory.size
    assert np.isfinite(list(agent.diagnostics().values())).all()
    assert agent.cost().weights == agent.actions * agent.features.size
    assert f"{STEPS} steps" in repr(agent)
    under_way = STEPS - agent.episodes[:, 0].sum()
    assert under_way >= 0
    assert agent.learn(episodes=2).num_timesteps == agent.episodes[-2:, 0].sum() - under_way


@every(TABLE, NUMBERS)
def test_it_resumes_to_the_bit(record, name, tmp_path):
    assert_resumes_to_the_bit(lambda: make(record, name), 211, tmp_path / "agent.npz")


@every(TABLE, NUMBERS)
def test_plain_and_compiled_give_the_same_bits(record, name):
    compiled, plain = make(record, name), make(record, gym.Wrapper(gym.make(name)), name)
    assert compiled.session.compiled
    assert not plain.session.compiled
    for agent in (compiled, plain):
        agent.learn(STEPS).session.clear_episode()  # a state may be more than its observation
    assert_same_bits(compiled, plain)


@every(TABLE, NUMBERS)
def test_a_seed_decides_everything(record, name, tmp_path):
    one, two, other = (make(record, name, seed=seed).learn(STEPS) for seed in (3, 3, 4))
    assert_same_bits(one, two)
    assert not np.array_equal(one.session.memory.actions, other.session.memory.actions)
    one.save(tmp_path / "one.npz")
    two.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@every(TABLE, NUMBERS)
def test_other_units_of_the_rewards_change_units_alone(record, name, unit):
    """By a power of two, so that not even rounding differs."""
    plain, other = Diary(gym.make(name)), Diary(gym.make(name), unit)
    one, two = (make(record, env, name).learn(STEPS) for env in (plain, other))
    assert plain.actions == other.actions
    np.testing.assert_array_equal(unit * one.policy().weights, two.policy().weights)


@every(TABLE, NUMBERS)
def test_compiled_code_releases_the_generator(record, name):
    for env in (name, gym.Wrapper(gym.make(name))):
        agent = make(record, env, name).learn(100)
        before = sys.getrefcount(agent.rng), sys.getrefcount(agent.rng.bit_generator)
        agent.learn(50)
        assert (sys.getrefcount(agent.rng), sys.getrefcount(agent.rng.bit_generator)) == before


@by_name
def test_it_learns_from_copies_or_says_why_not(record):
    name = TABLE if (record.name, TABLE) not in REFUSES else NUMBERS
    copies = SyncVectorEnv([lambda: gym.make(name)] * 3)
    try:
        agent = make(record, copies, name)
    except ValueError as error:
        assert "cannot learn from 3 copies at a time: pass a single" in str(error)  # noqa: PT017
        return
    agent.learn(120)
    assert 120 <= agent.num_timesteps == agent.session.memory.size < 123


# Interruptions -----------------------------------------------------------------------------------


class TwoChoices(gym.Wrapper):
    """An action is two choices."""

    action_space = gym.spaces.MultiDiscrete([2, 2])


class Fragile(gym.Wrapper):
    """Fails once, in a step or in a reset; episodes have ten steps."""

    def __init__(self, name, error=None, where=""):
        super().__init__(gym.make(name, max_episode_steps=10))
        self.error, self.where, self.left = error, where, {"step": 78, "reset": 8}.get(where, 0)

    def _count(self, where):
        self.left -= where == self.where
        if self.error and self.left == 0:
            error, self.error = self.error, None
            raise error(f"the {where} failed")

    def step(self, action):
        self._count("step")
        return self.env.step(action)

    def reset(self, **settings):
        self._count("reset")
        return self.env.reset(**settings)


@pytest.mark.parametrize(
    ("error", "where", "made"), [(KeyboardInterrupt, "step", 77), (RuntimeError, "reset", 70)]
)
@every(TABLE, NUMBERS)
def test_after_an_interruption_the_counts_agree_and_it_learns_on(record, name, error, where, made):
    agent = make(record, Fragile(name, error, where), name)
    with pytest.raises(error, match=f"the {where} failed"):
        agent.learn(200)
    assert agent.num_timesteps == agent.session.memory.size == made
    np.testing.assert_array_equal(agent.episodes[:, 0], [10.0] * 7)
    whole = make(record, Fragile(name), name).learn(made)
    np.testing.assert_array_equal(agent.policy().weights, whole.policy().weights)
    assert agent.learn(50, reset_num_timesteps=False).num_timesteps == made + 50


# Using what was learnt ---------------------------------------------------------------------------


@every(TABLE, NUMBERS)
def test_predictions_have_the_shape_of_the_observations(record, name, tmp_path):
    agent = make(record, name).learn(200)
    space, actions = agent.env.observation_space, agent.env.action_space
    space.seed(0)
    rows = np.array([space.sample() for _ in range(5)])
    agent.policy().save(tmp_path / "policy.npz")
    for actor in (agent, agent.policy(), LinearPolicy.load(tmp_path / "policy.npz")):
        chosen, state = actor.predict(rows, state="mine", deterministic=True)
        assert chosen.shape == (5,)
        assert state == "mine"
        singly = [actor.predict(row, deterministic=True)[0] for row in rows]
        assert {type(action) for action in singly} == {int}
        np.testing.assert_array_equal(chosen, singly)
        np.testing.assert_array_equal(chosen, agent.predict(rows, deterministic=True)[0])
    assert all(actions.contains(action) for action in agent.predict(rows)[0])
    only = np.eye(agent.actions, dtype=bool)[np.full(5, agent.actions - 1)]
    last = int(actions.start) + agent.actions - 1
    assert (agent.predict(rows, action_masks=only)[0] == last).all()
    values = agent.action_values(rows)
    assert values.mean.shape == (5, agent.actions)
    assert np.isfinite(values.mean).all()
    assert len(evaluate(agent, episodes=2, longest=50).returns) == 2


@every(TABLE, NUMBERS)
def test_a_file_holds_what_it_was_and_a_copy_is_made_by_one(record, name, tmp_path):
    agent = make(record, name).learn(100)
    agent.save(tmp_path / "agent.npz")
    loaded = record.load().load(tmp_path / "agent.npz")
    assert_same_bits(agent, loaded)
    assert loaded.get_parameters() == agent.get_parameters()
    assert loaded.basis == agent.basis
    other = next(one for one in ONLINE if one is not record).load()
    with pytest.raises(FileError, match=f"it holds {record.name}, not .*Agent.load"):
        other.load(tmp_path / "agent.npz")
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"is neither copied nor pickled.*save\(\) it"):
            copied(agent)


# Masks -------------------------------------------------------------------------------------------

some = st.lists(st.booleans(), min_size=ACTIONS, max_size=ACTIONS).filter(any)
tables = st.lists(some, min_size=STATES, max_size=STATES)


@on_tables
@settings(deadline=None, max_examples=5)
@given(tables, st.sampled_from(["info", "observation"]), st.integers(0, 99))
def test_a_forbidden_action_is_never_taken(record, masks, where, seed):
    env = Masked(masks, where, seed)
    agent = make(record, env, TABLE, discount=0.9, seed=seed).learn(40)
    assert len(evaluate(agent, env, 2).returns) == 2
    memory = agent.session.memory.kept()
    after = memory.next_observations[:, 0].astype(int)
    going = memory.ends != TERMINATED
    np.testing.assert_array_equal(memory.next_allowed[going], np.array(masks)[after][going])


@on_tables
def test_values_do_not_depend_on_what_a_forbidden_action_is_thought_to_be_worth(record):
    """State 1 is left by action 0 alone: a huge value of the others must not reach state 0."""
    env = Masked([[1, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 1]])
    env.order[:] = [[1, 1, 1], [2, 3, 3], [0, 0, 0], [0, 0, 0]]
    agent = make(record, env, TABLE, discount=0.5)
    for field in {"mean", "sampled", "weights"} & set(agent.state._fields):
        values = getattr(agent.state, field)
        values[STATES + 1 :: STATES] = 1e6  # Q(1, a) of the actions 1 and 2
    agent.learn(300)
    best = agent.policy().values(np.arange(STATES))
    # The walk goes 0, 1, 2, 0, ..., with a reward of 1 in state 0: Q = 1 + gamma^3 + ... <= 8/7
    assert best[0].max() < 1.5


# What it refuses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "name"), REFUSES)
def test_it_says_which_observations_it_needs(record, name):
    kind = next(one for one in ONLINE if one.name == record)
    with pytest.raises(TypeError, match=REFUSES[record, name]):
        make(kind, name)


@pytest.mark.parametrize(
    "record",
    [case(r) for r in ONLINE if r.name != "fitted-rmax" and (r.name, NUMBERS) not in REFUSES],
)
def test_numbers_as_actions_are_the_points_of_a_grid(record):
    """By the bit as if a wrapper offered the points; `FittedRmax` knows how near they are."""
    environments = gym.make("Pendulum-v1"), Points(gym.make("Pendulum-v1"))
    basis = Network(8) if record.needs else Multilinear(3)
    one, other = (record.load()(e, basis, seed=0).learn(STEPS) for e in environments)
    assert one.actions == 5
    assert_same_bits(one, other)


@by_name
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"discount": 1.5}, ValueError, "discount=1.5 must lie between 0 and 1"),
        ({"discount": float("nan")}, ValueError, "discount=nan must lie"),
        ({"discount": "high"}, TypeError, "discount='high' must be a number"),
        ({"seed": -1}, ValueError, "seed=-1 must be at least 0"),
        ({"seed": 0.5}, TypeError, "seed=0.5 must be a whole number"),
        ({"env": "rblspi/PudleWorld-v0"}, ValueError, "did you mean rblspi/PuddleWorld-v0"),
        (
            {"env": TwoChoices(gym.make("CartPole-v1"))},
            TypeError,
            "is neither Discrete nor a Box|needs a Discrete",
        ),
        ({"env": 7}, TypeError, "env=7 is neither a Gymnasium environment nor the id of one"),
        ({"basis": 7}, TypeError, "7"),
    ],
)
def test_hostile_arguments_are_refused_in_a_sentence(record, arguments, error, message):
    name = TABLE if (record.name, TABLE) not in REFUSES else NUMBERS
    given = {"env": name, "basis": BASES.get((record.name, name)), "seed": 0, **arguments}
    with pytest.raises(error, match=message):
        record.load()(**given)


@by_name
def test_every_setting_is_checked_under_its_name(record):
    name = TABLE if (record.name, TABLE) not in REFUSES else NUMBERS
    for setting in record.settings():
        for wrong in (float("nan"), "x", [1]):
            with pytest.raises((ValueError, TypeError), match=setting):
                make(record, name, **{setting: wrong})


@by_name
def test_learning_needs_an_amount(record):
    name = TABLE if (record.name, TABLE) not in REFUSES else NUMBERS
    agent = make(record, name)
    calls = [
        (agent.learn, "needs total_timesteps or episodes"),
        (lambda: agent.learn(0), "total_timesteps=0 must be at least 1"),
        (lambda: agent.learn(episodes=-1), "episodes=-1 must be at least 1"),
        (lambda: agent.learn(10**400), r"total_timesteps=1000.* must be at most 4,611"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(RuntimeError, match="already learning"):
        agent.learn(1000, callback=lambda agent: agent.learn(1))
