"""RBLSPI and online LSPI: their periods and sums, the units of rewards, and what they refuse."""

import gymnasium as gym
import numpy as np
import pytest

from rblspi import (
    LBRL,
    LSVIUCB,
    RBLSPI,
    RLSVI,
    FunctionBasis,
    OneHot,
    OnlineLSPI,
    RBFGrid,
    RmaxLSPI,
)
from rblspi.online.baselines.online_lspi import SINGULAR
from rblspi.online.rblspi import IMPROVEMENTS
from tests.support.agents import assert_same_bits
from tests.support.diary import Diary

CAR, CHAIN = "rblspi/MountainCar-v0", "rblspi/ChainWalk-v0"


class Corridor(gym.Env):
    """Two states; every episode is one step that ends as told."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2, start=3)

    def __init__(self, terminated):
        self.terminated, self.taken = terminated, []

    def reset(self, *, seed=None, options=None):
        return np.array([0.25], np.float32), {}

    def step(self, action):
        self.taken.append(action)
        return np.array([0.75], np.float32), 1.0, self.terminated, not self.terminated, {}


@pytest.mark.parametrize(
    ("terminated", "limit_ends"), [(True, False), (False, False), (False, True)]
)
@pytest.mark.parametrize("kind", [RBLSPI, OnlineLSPI])
def test_terminal_transitions_do_not_bootstrap_and_truncated_ones_do_unless_the_limit_ends(
    kind, terminated, limit_ends
):
    env = Corridor(terminated)
    basis = FunctionBasis(lambda observation: np.array([1.0, float(observation[0])]), size=2)
    settings = {"discount": 0.5, "update_every": 1, "limit_ends": limit_ends}
    agent = kind(env, basis, seed=0, **settings).learn(1)
    state = agent.state
    cross = state.posterior.statistics.cross if kind is RBLSPI else state.cross
    x, y = np.array([1.0, 0.25]), np.array([1.0, 0.75])
    action = env.taken[0] - 3
    # A_a = x d': with the next state's features gone, only x x' is left.
    total = cross[action][:, :4].reshape(2, 2, 2).sum(axis=1)
    expected = np.outer(x, x) - (0.0 if terminated or limit_ends else 0.5) * np.outer(x, y)
    np.testing.assert_allclose(total, expected, atol=1e-5)


def test_the_first_improvement_shifts_all_later_ones():
    agent = RBLSPI(CAR, RBFGrid(3), update_every=20, first_update=1, seed=11)
    improved = []
    for _ in range(45):
        agent.learn(1, reset_num_timesteps=False)
        improved.append(int(agent.state.counters[IMPROVEMENTS]))
    assert [t for t, n in enumerate(improved) if n > (improved[t - 1] if t else 0)] == [0, 20, 40]
    usual, stated = (
        RBLSPI(CAR, RBFGrid(3), seed=11, **given) for given in ({}, {"first_update": 20})
    )
    assert_same_bits(usual.learn(300), stated.learn(300))


def test_without_rewards_the_weights_are_zero_and_nothing_is_factorised():
    sparse, standard = (
        OnlineLSPI(f"rblspi/{name}MountainCar-v0", RBFGrid(8), seed=11).learn(400)
        for name in ("Sparse", "")
    )
    assert not sparse.state.weights.any()
    assert not sparse.state.workspace_system.any()
    assert standard.state.weights.any()


def test_improvements_that_were_left_out_are_told():
    agent = OnlineLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0).learn(10)
    agent.state.counters[SINGULAR] = 3
    with pytest.warns(UserWarning, match="3 improvements were left out"):
        agent.learn(10)


# The units of rewards ---------------------------------------------------------------------------


def test_the_papers_precisions_are_in_units_of_the_largest_reward():
    agent = RBLSPI(Diary(gym.make("rblspi/MountainCar-v0"), 10.0), seed=0).learn(100)
    assert agent.state.largest_reward[0] == 10.0
    assert agent.posterior.prior_precision == pytest.approx(0.01 / 100)
    assert agent.posterior.noise_precision == pytest.approx(1.0 / 100)


def test_with_rewards_of_size_one_the_papers_precisions_are_themselves():
    untold, told = (
        RBLSPI("rblspi/MountainCar-v0", RBFGrid(4), seed=0, **given).learn(1000)
        for given in ({}, {"prior_precision": 0.01, "noise_precision": 1.0})
    )
    np.testing.assert_array_equal(untold.state.sampled, told.state.sampled)


def test_as_long_as_there_are_no_rewards_it_explores_all_the_same():
    agent = RBLSPI("rblspi/SparseMountainCar-v0", RBFGrid(4), seed=0).learn(100)
    assert agent.state.largest_reward[0] == 0.0
    assert not agent.state.mean.any()
    assert agent.state.sampled.all()


# Without any setting, and with wrong ones -------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (RBLSPI, {"prior_precision": 0.0}, ValueError, "prior_precision=0.0 must be a positive"),
        (RBLSPI, {"prior_precision": -1}, ValueError, "prior_precision=-1 must be"),
        (RBLSPI, {"prior_precision": 1.0}, ValueError, "give both, or neither"),
        (RBLSPI, {"noise_precision": float("inf")}, ValueError, "noise_precision=inf must be"),
        (RBLSPI, {"ridge": 0}, ValueError, "ridge=0 must be"),
        (RBLSPI, {"update_every": 0}, ValueError, "update_every=0 must be at least 1"),
        (RBLSPI, {"update_every": "run"}, ValueError, "update_every='run' must be a number of tr"),
        (RBLSPI, {"update_every": 2.5}, TypeError, "update_every=2.5 must be a whole number"),
        (RBLSPI, {"first_update": 0}, ValueError, "first_update=0 must be at least 1"),
        (RBLSPI, {"update_every": 5, "first_update": 6}, ValueError, "=6 is later than update_ev"),
        (
            *(RBLSPI, {"update_every": "episode", "first_update": 1}, ValueError),
            'later than update_every="episode"',
        ),
        (OnlineLSPI, {"on_policy": "both"}, TypeError, "on_policy='both' must be True or False"),
        (OnlineLSPI, {"epsilon": 2}, ValueError, "epsilon=2 must lie"),
        (RLSVI, {"noise_std": 0.0}, ValueError, "noise_std=0"),
        (RLSVI, {"prior_std": -1.0}, ValueError, "prior_std=-1"),
        (RLSVI, {"horizon": 0}, ValueError, "horizon=0"),
        (LSVIUCB, {"bonus": 0.0}, ValueError, "bonus=0"),
        (LSVIUCB, {"penalty": -1.0}, ValueError, "penalty=-1"),
        (RmaxLSPI, {"visits": 0.0}, ValueError, "visits=0"),
        (LBRL, {"noise_std": 0.0}, ValueError, "noise_std=0"),
    ],
)
def test_settings_without_meaning_are_refused(kind, arguments, error, message):
    with pytest.raises(error, match=message):
        kind(CAR, RBFGrid(3), **arguments)


def test_a_seed_may_have_any_number_of_digits():
    assert RBLSPI(CAR, RBFGrid(3), seed=10**400).seed == 10**400


def test_an_observation_of_another_dimension_is_refused():
    agent = RBLSPI(gym.make(CAR), RBFGrid(3))
    with pytest.raises(ValueError, match="2"):
        agent.predict([0.0, 0.0, 0.0])


def test_a_posterior_that_does_not_fit_into_memory_is_refused():
    with pytest.raises(ValueError, match="30003 weights, and a posterior over them takes 22 GB"):
        RBLSPI(CAR, RBFGrid(100), seed=0)
