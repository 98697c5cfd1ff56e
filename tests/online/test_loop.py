"""One loop, two speeds: plain and compiled give the same bits, however it is cut up."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, FunctionBasis, OneHot, OnlineLSPI, RBFGrid
from rblspi.online.agent import Agent
from rblspi.online.baselines.online_lspi import SINGULAR
from rblspi.online.rblspi import IMPROVEMENTS
from tests.support.agents import assert_same_bits
from tests.support.domains import DOMAINS, Domain, quick_on

ALGORITHMS = {"RBLSPI": RBLSPI, "OnlineLSPI": OnlineLSPI}


def make(kind: str, domain: Domain, env: Any = None, **settings: Any) -> Agent:
    given = {**domain.settings, "seed": 11, **settings}
    if kind == "OnlineLSPI":
        given = {k: v for k, v in given.items() if not k.endswith("precision")}
    return ALGORITHMS[kind](domain.id if env is None else env, domain.basis, **given)


@pytest.mark.parametrize("domain", quick_on("ChainWalk-v0", "InvertedPendulum-v0"))
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_plain_and_compiled_give_the_same_numbers(kind: str, domain: Domain) -> None:
    compiled = make(kind, domain)
    plain = make(kind, domain, gym.Wrapper(gym.make(domain.id)))
    assert compiled.session.compiled
    assert not plain.session.compiled
    assert_same_bits(compiled.learn(1500), plain.learn(1500))


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize(
    "update_every", [pytest.param(1, marks=pytest.mark.slow), 7, 20, "episode"]
)
def test_two_runs_of_one_seed_give_the_same_bits(kind: str, update_every: Any) -> None:
    domain = DOMAINS["CartPole-v0"]
    one = make(kind, domain, update_every=update_every).learn(2000)
    assert_same_bits(one, make(kind, domain, update_every=update_every).learn(2000))
    other = make(kind, domain, update_every=update_every, seed=12).learn(2000)
    assert not np.array_equal(one.episodes, other.episodes)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_learning_in_pieces_changes_nothing(kind: str) -> None:
    domain = DOMAINS["PuddleWorld-v0"]
    pieces = make(kind, domain)
    for steps in (1, 333, 19, 647):
        pieces.learn(steps, reset_num_timesteps=False)
    assert pieces.num_timesteps == 1000
    assert_same_bits(make(kind, domain).learn(1000), pieces)


@pytest.mark.parametrize("wrap", [gym.Wrapper, lambda env: env], ids=["plain", "compiled"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_compiled_code_releases_the_generator(kind: str, wrap: Any) -> None:
    domain = DOMAINS["ChainWalk-v0"]
    agent = make(kind, domain, wrap(gym.make(domain.id))).learn(1500)
    before = sys.getrefcount(agent.rng), sys.getrefcount(agent.rng.bit_generator)
    agent.learn(200)
    assert (sys.getrefcount(agent.rng), sys.getrefcount(agent.rng.bit_generator)) == before


def test_a_callback_sees_every_episode_and_can_stop() -> None:
    seen: list[int] = []

    def callback(agent: Agent) -> bool:
        seen.append(len(agent.episodes))
        return len(seen) < 5

    agent = make("RBLSPI", DOMAINS["CartPole-v0"])
    agent.learn(100_000, callback=callback)
    assert seen == [1, 2, 3, 4, 5]


def test_episodes_are_counted_and_recorded() -> None:
    agent = make("RBLSPI", DOMAINS["CartPole-v0"]).learn(episodes=7)
    assert agent.episodes.shape == (7, 2)
    assert agent.episodes[:, 0].sum() == agent.num_timesteps
    # +1 a step and 0 for the failing one
    np.testing.assert_array_equal(agent.episodes[:, 1], agent.episodes[:, 0] - 1)


class Corridor(gym.Env):
    """Two states; every episode is one step that ends as told."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2, start=3)

    def __init__(self, terminated: bool, bad: str = "") -> None:
        self.terminated = terminated
        self.bad = bad
        self.taken: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.array([np.nan if self.bad == "reset" else 0.25], np.float32), {}

    def step(self, action: int) -> Any:
        self.taken.append(action)
        observation = np.array([np.inf if self.bad == "step" else 0.75], np.float32)
        reward = np.nan if self.bad == "reward" else 1.0
        return observation, reward, self.terminated, not self.terminated, {}


@pytest.mark.parametrize(
    ("terminated", "limit_ends"), [(True, False), (False, False), (False, True)]
)
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_terminal_transitions_do_not_bootstrap_and_truncated_ones_do_unless_the_limit_ends(
    kind: str, terminated: bool, limit_ends: bool
) -> None:
    env = Corridor(terminated)
    basis = FunctionBasis(lambda observation: np.array([1.0, float(observation[0])]), size=2)
    settings: dict[str, Any] = {"discount": 0.5, "update_every": 1, "limit_ends": limit_ends}
    agent = ALGORITHMS[kind](env, basis, seed=0, **settings).learn(1)
    state: Any = agent.state
    cross = state.posterior.statistics.cross if kind == "RBLSPI" else state.cross
    x, y = np.array([1.0, 0.25]), np.array([1.0, 0.75])
    action = env.taken[0] - 3
    # A_a = x d': with the next state's features gone, only x x' is left.
    total = cross[action][:, :4].reshape(2, 2, 2).sum(axis=1)
    expected = np.outer(x, x) - (0.0 if terminated or limit_ends else 0.5) * np.outer(x, y)
    np.testing.assert_allclose(total, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("bad", "word"), [("reset", "observation"), ("step", "observation"), ("reward", "reward")]
)
def test_what_is_not_finite_is_an_error(bad: str, word: str) -> None:
    agent = RBLSPI(Corridor(True, bad), RBFGrid(3), seed=0)
    with pytest.raises(ValueError, match=f"{word}.*not finite"):
        agent.learn(10)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_an_error(bad: float) -> None:
    basis = FunctionBasis(lambda o: np.array([1.0, bad if o[0] > 0.5 else 1.0]), size=2)
    with pytest.raises(ValueError, match="the basis makes features that are not finite"):
        RBLSPI(Corridor(False), basis, seed=0).learn(10)


def test_the_first_improvement_shifts_all_later_ones() -> None:
    domain = DOMAINS["MountainCar-v0"]
    agent = make("RBLSPI", domain, update_every=20, first_update=1)
    improved = []
    for _ in range(45):
        agent.learn(1, reset_num_timesteps=False)
        improved.append(int(agent.state.counters[IMPROVEMENTS]))
    assert [t for t, n in enumerate(improved) if n > (improved[t - 1] if t else 0)] == [0, 20, 40]
    usual, stated = (
        make("RBLSPI", domain, update_every=20, **given) for given in ({}, {"first_update": 20})
    )
    assert_same_bits(usual.learn(300), stated.learn(300))


def test_without_rewards_the_weights_are_zero_and_nothing_is_factorised() -> None:
    sparse, standard = (
        make("OnlineLSPI", DOMAINS["MountainCar-v0"], f"rblspi/{name}MountainCar-v0").learn(400)
        for name in ("Sparse", "")
    )
    assert not sparse.state.weights.any()
    assert not sparse.state.workspace_system.any()
    assert standard.state.weights.any()


def test_improvements_that_were_left_out_are_told() -> None:
    agent = OnlineLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0).learn(10)
    agent.state.counters[SINGULAR] = 3
    with pytest.warns(UserWarning, match="3 improvements were left out"):
        agent.learn(10)
