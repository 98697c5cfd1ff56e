"""Without alpha and beta, the units of the rewards do not matter, and nothing need be chosen."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, OneHot, OnlineLSPI, Polynomial, RBFGrid
from rblspi.features import default_basis
from rblspi.online.centre import FIRST, TOLD
from rblspi.online.noise_scale import noise_std, sampling_std
from tests.support.domains import DOMAINS, Domain, quick_on

pytestmark = pytest.mark.slow


class Scaled(gym.RewardWrapper):
    def __init__(self, env: gym.Env[Any, Any], factor: float) -> None:
        super().__init__(env)
        self.factor = factor

    def reward(self, reward: Any) -> float:
        return self.factor * float(reward)


@pytest.mark.parametrize("domain", quick_on("MountainCar-v0", "InvertedPendulum-v0"))
@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
@pytest.mark.parametrize("seed", range(4))
def test_a_factor_of_the_rewards_changes_nothing(domain: Domain, factor: float, seed: int) -> None:
    """A power of two, so that not even rounding differs: the same walk, values in other units."""
    agents = [
        RBLSPI(Scaled(gym.make(domain.id), f), domain.basis, seed=seed).learn(1000)
        for f in (1.0, factor)
    ]
    np.testing.assert_array_equal(agents[0].episodes[:, 0], agents[1].episodes[:, 0])
    if agents[0].state.centre[[FIRST, TOLD]].any():  # rewards of nothing but zero have no unit
        np.testing.assert_array_equal(factor * agents[0].state.mean, agents[1].state.mean)


@pytest.mark.parametrize("factor", [1e-6, 0.001, 1000.0, 1e6])
def test_any_factor_gives_the_same_values(factor: float) -> None:
    """Rounding may tell walks apart after a while; for a while the values are the same."""
    domain = DOMAINS["MountainCar-v0"]
    agents = [
        RBLSPI(Scaled(gym.make(domain.id), f), domain.basis, seed=1).learn(1000)
        for f in (1.0, factor)
    ]
    np.testing.assert_array_equal(agents[0].episodes[:, 0], agents[1].episodes[:, 0])
    np.testing.assert_allclose(factor * agents[0].state.mean, agents[1].state.mean, rtol=1e-4)


@pytest.mark.parametrize("kind", [RBLSPI, OnlineLSPI])
@pytest.mark.parametrize(
    "name",
    [
        *("CartPole-v1", "MountainCar-v0"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("Acrobot-v1", "Taxi-v4")),
    ],
)
def test_an_environment_is_enough(kind: Any, name: str) -> None:
    if name not in gym.registry:
        pytest.skip(f"{name} is not in this Gymnasium")
    agent = kind(name, seed=0).learn(500)
    assert agent.num_timesteps == 500


def test_the_default_basis_follows_the_space() -> None:
    def never() -> Any:
        raise AssertionError("nothing to scout in a bounded space")

    box = gym.spaces.Box
    assert default_basis(gym.spaces.Discrete(5), never) == OneHot()
    assert default_basis(box(0.0, 1.0, (2,)), never) == RBFGrid(12, low=(0, 0), high=(1, 1))
    assert isinstance(default_basis(box(0.0, 1.0, (13,)), never), Polynomial)


def test_dimensions_without_bounds_are_scaled_to_what_is_seen() -> None:
    space = gym.spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), dtype=np.float64)
    basis = default_basis(space, lambda: np.array([[0.0, 10.0], [0.5, 30.0]]))
    assert basis == RBFGrid(12, low=(-1.0, 5.0), high=(1.0, 35.0))


def test_one_precision_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="give both, or neither"):
        RBLSPI("rblspi/MountainCar-v0", prior_precision=1.0)


def test_a_dimension_that_never_changes_is_no_obstacle() -> None:
    space = gym.spaces.Box(np.array([0.0, 3.0]), np.array([1.0, 3.0]), dtype=np.float64)
    basis = default_basis(space, lambda: np.empty((0, 2)))
    assert basis == RBFGrid(12, low=(0.0, 2.5), high=(1.0, 3.5))
    assert np.isfinite(basis.build(space)([0.5, 3.0])).all()


def test_alpha_and_beta_bring_the_papers_algorithm_along() -> None:
    given = RBLSPI("rblspi/MountainCar-v0", prior_precision=1.0, noise_precision=1.0)
    assert (given.update_every, given.sample_every) == (20, 20)
    assert (given.on_policy, given.forgetting) == (0.0, 0.0)
    untuned = RBLSPI("rblspi/MountainCar-v0")
    assert (untuned.update_every, untuned.sample_every) == (5, 20)
    assert RBLSPI("rblspi/MountainCar-v0", update_every=50).sample_every == 50


def test_after_many_episodes_an_early_one_counts_what_forgetting_says() -> None:
    """One step an episode: with one feature a state, the sum of C is the sum of the weights."""
    env = gym.make("rblspi/ChainWalk-v0", max_episode_steps=1)
    agent = RBLSPI(env, OneHot(), seed=0, forgetting=2.0).learn(episodes=29)
    weights = (np.arange(1, 30) / 30) ** 2  # as they are in the thirtieth
    assert agent.state.posterior.statistics.gram.sum() == pytest.approx(weights.sum(), rel=1e-12)
    assert agent.state.posterior.statistics.count.sum() == 29


def test_the_exploring_policys_next_actions_are_taken_as_often_as_asked() -> None:
    """A mean that always goes left, a sample that always goes right."""
    settings: dict[str, Any] = {"on_policy": 0.25, "update_every": "episode"}
    settings |= {"prior_precision": 1.0, "noise_precision": 1.0}  # so that no centre is moved
    agent = RBLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0, **settings)
    agent.state.mean[:20], agent.state.mean[20:] = 1.0, 0.0
    agent.state.sampled[:20], agent.state.sampled[20:] = 0.0, 1.0
    agent.learn(64)  # as many as the buffer holds
    taken = np.bincount(agent.state.buffer.next_action[:64], minlength=2)
    np.testing.assert_array_equal(taken, [48, 16])


def test_samples_narrow_as_episodes_pass_and_the_posterior_does_not() -> None:
    scale = np.array([0.8, 1e6, 1.0, 1.0])
    std = noise_std(scale)
    assert std**-2 == pytest.approx(0.05 / (0.8**2 * np.pi / 2))
    assert sampling_std(scale, 0.0, 0) == std
    assert sampling_std(scale, 0.0, 200) == pytest.approx(std / 2)
    agent = RBLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0)
    agent.state.noise_scale[:] = scale
    assert agent.posterior.noise_precision == pytest.approx(std**-2)
