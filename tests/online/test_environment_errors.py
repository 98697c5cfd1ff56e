"""What goes wrong in an environment is told, and what was learnt before agrees with the counts."""

import signal
import sys
from contextlib import suppress

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, RLSVI, FunctionBasis, Polynomial, RBFGrid, evaluate
from rblspi.online import rblspi
from rblspi.rollout.collect import collect
from rblspi.rollout.loop import interact


class Hanging(gym.Wrapper):
    """Episodes of ten steps; the step of some number is interrupted."""

    def __init__(self, number=0):
        super().__init__(gym.make("rblspi/MountainCar-v0", max_episode_steps=10))
        self.left = number

    def step(self, action):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
            pytest.fail("the interruption came too late")
        return self.env.step(action)


@pytest.fixture
def heard():
    """Ctrl-C as in a terminal: whatever runs the tests in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def transitions_learnt(agent):
    """By the algorithm's own count, which has to agree with that of its sums."""
    state = agent.state
    absorbed = state.posterior.statistics.count.sum()
    assert state.counters[rblspi.TRANSITIONS] == absorbed + state.buffer.size[0]
    return int(state.counters[rblspi.TRANSITIONS])


# Interruptions -----------------------------------------------------------------------------------


def interrupted_at(line, agent):
    """Learn, with Ctrl-C before this line of the loop; whether the line was reached."""
    reached = False

    def trace(frame, kind, argument):
        nonlocal reached
        if frame.f_code is not interact.__code__:
            return None
        if kind == "line" and frame.f_lineno == line and not reached:
            reached = True
            signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            agent.learn(25, reset_num_timesteps=False)
            assert not reached, "the interruption was lost"
    finally:
        sys.settrace(None)
    return reached


@pytest.mark.usefixtures("heard")
def test_an_interruption_at_any_line_of_the_loop_leaves_counts_that_agree():
    agent = RBLSPI(Hanging(), RBFGrid(3), seed=0).learn(25)
    lines = {line for _, _, line in interact.__code__.co_lines() if line is not None}
    reached = [interrupted_at(line, agent) for line in sorted(lines)]
    assert sum(reached) > 20
    assert transitions_learnt(agent) == agent.num_timesteps
    assert agent.episodes[:, 0].sum() <= agent.num_timesteps
    assert (agent.episodes == [10, -10]).all()


@pytest.mark.usefixtures("heard")
def test_an_interruption_breaks_off_a_step_of_the_environment():
    agent = RBLSPI(Hanging(34), RBFGrid(3), seed=0)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(100)
    assert transitions_learnt(agent) == agent.num_timesteps == 33


# What an environment returns ----------------------------------------------------------------------


class Returns(gym.Env):
    """Returns what it is told to."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first, following):
        self.first, self.following = first, following

    def reset(self, *, seed=None, options=None):
        return self.first

    def step(self, action):
        return self.following


FINE = np.array([0.5, 0.25])
BEGUN = (FINE, {})


def then(observation, reward=0.0):
    """A step to an observation."""
    return observation, reward, False, False, {}


SHAPE = r"returned an observation of shape .* has the shape \(2,"
NO_NUMBERS = r"Returns.* an observation that does not consist of numbers"
OLD_STEP = r"step\(\) of .* \(observation, reward, terminated, tru"
OLD_RESET = r"must return \(observation, info\)"
WRONG = [
    # NumPy would repeat a single number.
    *((ValueError, SHAPE, (wrong, {}), then(FINE)) for wrong in (np.array([0.5]), 0.5)),
    *((ValueError, SHAPE, BEGUN, then(wrong)) for wrong in (0.5, np.zeros((2, 2)), np.zeros(0))),
    *(
        (TypeError, NO_NUMBERS, BEGUN, then(wrong))
        for wrong in (["a", "b"], {"position": 0.5}, [[1.0], [1.0, 2.0]])
    ),
    *(
        (TypeError, OLD_STEP, BEGUN, wrong)
        for wrong in ((FINE, 0.0, False, {}), None, list(then(FINE)))
    ),
    # Without a check, an observation of two numbers would pass for (observation, info).
    *(
        (TypeError, OLD_RESET, wrong, then(FINE))
        for wrong in (FINE, [0.5, 0.25], (FINE, {}, {}), None)
    ),
    *(
        (TypeError, "one number for a reward", BEGUN, then(FINE, wrong))
        for wrong in (None, "much", np.zeros(2))
    ),
    (ValueError, "observation.*not finite", (np.array([np.nan, 0.0]), {}), then(FINE)),
    (ValueError, "observation.*not finite", BEGUN, then(np.array([np.inf, 0.0]))),
    (ValueError, "reward.*not finite", BEGUN, then(FINE, np.nan)),
]


@pytest.mark.parametrize(("error", "message", "first", "following"), WRONG)
def test_what_an_environment_must_not_return_is_named(error, message, first, following):
    env = Returns(first, following)
    agent = RBLSPI(env, RBFGrid(2), seed=0)
    with pytest.raises(error, match=message):
        agent.learn(10)
    assert agent.num_timesteps == 0
    if "finite" not in message:
        with pytest.raises(error):
            list(collect(env, 10))
    if error is TypeError and message != NO_NUMBERS:
        with pytest.raises(error, match=message):
            evaluate(agent, env, longest=10)


def test_a_picture_on_its_side_is_an_error():
    """It has as many numbers as an upright one, in another order."""
    env = Returns((np.zeros((3, 2)), {}), then(np.zeros((2, 3))))
    env.observation_space = gym.spaces.Box(-1.0, 1.0, (3, 2))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but .* the shape \(3, 2\)"):
        RBLSPI(env, Polynomial(1), seed=0).learn(10)
    with pytest.raises(ValueError, match="shape"):
        list(collect(env, 10))


def test_axes_of_length_one_do_not_count():
    env = Returns((FINE[:, None], {}), then(FINE[None]))
    assert RBLSPI(env, RBFGrid(2), seed=0).learn(10).num_timesteps == 10


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_an_error(bad):
    basis = FunctionBasis(lambda o: np.array([1.0, bad if o[0] > 0.6 else 1.0]), size=2)
    env = Returns(BEGUN, then(np.array([0.75, 0.0])))
    with pytest.raises(ValueError, match="the basis makes features that are not finite"):
        RBLSPI(env, basis, seed=0).learn(10)


@pytest.mark.usefixtures("heard")
def test_an_interruption_waits_for_the_plan_under_way(monkeypatch):
    plans = []

    def plan(self):
        plans.append("begun")
        signal.raise_signal(signal.SIGINT)
        plan_whole(self)
        plans.append("done")

    plan_whole = RLSVI._plan
    monkeypatch.setattr(RLSVI, "_plan", plan)
    with pytest.raises(KeyboardInterrupt):
        RLSVI("rblspi/RiverSwim-v0", seed=0).learn(100)
    assert plans == ["begun", "done"]
