"""Without alpha and beta, the units of the rewards do not matter, and nothing need be chosen."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, OneHot, OnlineLSPI, Polynomial, RBFGrid
from rblspi.features import default_basis
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
    steps = 40 if name == "Taxi-v4" else 500  # 3,000 weights
    assert kind(name, seed=0).learn(steps).num_timesteps == steps


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


def test_the_papers_precisions_are_in_units_of_the_largest_reward() -> None:
    agent = RBLSPI(Scaled(gym.make("rblspi/MountainCar-v0"), 10.0), seed=0).learn(100)
    assert agent.state.largest_reward[0] == 10.0
    assert agent.posterior.prior_precision == pytest.approx(0.01 / 100)
    assert agent.posterior.noise_precision == pytest.approx(1.0 / 100)


def test_with_rewards_of_size_one_the_papers_precisions_are_themselves() -> None:
    untold, told = (
        RBLSPI("rblspi/MountainCar-v0", RBFGrid(4), seed=0, **given).learn(1000)
        for given in ({}, {"prior_precision": 0.01, "noise_precision": 1.0})
    )
    np.testing.assert_array_equal(untold.state.sampled, told.state.sampled)


def test_as_long_as_there_are_no_rewards_it_explores_all_the_same() -> None:
    agent = RBLSPI("rblspi/SparseMountainCar-v0", RBFGrid(4), seed=0).learn(100)
    assert agent.state.largest_reward[0] == 0.0
    assert not agent.state.mean.any()
    assert agent.state.sampled.all()
