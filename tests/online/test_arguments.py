"""Bad input gets a clear error, and nothing else."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from rblspi import RBLSPI, OnlineLSPI, RBFGrid

CAR = "rblspi/MountainCar-v0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior_precision": 0.0}, "prior_precision=0.0 must be a positive number"),
        ({"prior_precision": -1}, "prior_precision=-1 must be"),
        ({"noise_precision": float("nan")}, "noise_precision=nan must be"),
        ({"noise_precision": float("inf")}, "noise_precision=inf must be"),
        ({"update_every": 0}, "update_every=0 must be at least 1"),
        ({"update_every": "run"}, "update_every='run' must be a number of transitions"),
        ({"discount": 1.5}, "discount=1.5 must lie between 0 and 1"),
        ({"discount": -0.1}, "discount=-0.1 must lie"),
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"ridge": 0}, "ridge=0 must be"),
        ({"first_update": 0}, "first_update=0 must be at least 1"),
        ({"update_every": 5, "first_update": 6}, "first_update=6 is later than update_every=5"),
        ({"update_every": "episode", "first_update": 1}, 'later than update_every="episode"'),
    ],
)
def test_values(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RBLSPI(CAR, RBFGrid(3), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"update_every": 2.5}, "update_every=2.5 must be a whole number"),
        ({"discount": "high"}, "discount='high' must be a number"),
    ],
)
def test_types(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        RBLSPI(CAR, RBFGrid(3), **arguments)


def test_online_lspi_values() -> None:
    with pytest.raises(TypeError, match="on_policy='both' must be True or False"):
        OnlineLSPI(CAR, RBFGrid(3), on_policy="both")
    with pytest.raises(ValueError, match="epsilon=2 must lie"):
        OnlineLSPI(CAR, RBFGrid(3), epsilon=2)


def test_an_unknown_environment_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean rblspi/MountainCar-v0"):
        RBLSPI("rblspi/MountainCat-v0", RBFGrid(3))


def test_continuous_actions_are_refused() -> None:
    with pytest.raises(TypeError, match="is not discrete"):
        RBLSPI("Pendulum-v1", RBFGrid(3))


def test_a_basis_of_another_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3 .*2 dimensions"):
        RBLSPI(CAR, RBFGrid((3, 3, 3)))


def test_learning_needs_an_amount() -> None:
    agent = RBLSPI(CAR, RBFGrid(3))
    with pytest.raises(ValueError, match="needs total_timesteps or episodes"):
        agent.learn()
    with pytest.raises(ValueError, match="total_timesteps=0 must be at least 1"):
        agent.learn(0)
    with pytest.raises(ValueError, match=r"total_timesteps=1000.* must be at most 4,611"):
        agent.learn(10**400)


def test_a_seed_may_have_any_number_of_digits() -> None:
    assert RBLSPI(CAR, RBFGrid(3), seed=10**400).seed == 10**400


def test_an_observation_of_another_dimension_is_refused() -> None:
    agent = RBLSPI(gym.make(CAR), RBFGrid(3))
    with pytest.raises(ValueError, match="2"):
        agent.predict([0.0, 0.0, 0.0])


def test_a_posterior_that_does_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="30003 weights, and a posterior over them takes 22 GB"):
        RBLSPI(CAR, RBFGrid(100), seed=0)
