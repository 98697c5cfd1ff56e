"""What is stated of action values and how sure that is, by agents, estimators and their files."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rblspi import BLSPI, OPSRL, RBLSPI, FittedRmax, LinearPolicy, Multilinear, OnlineLSPI, RBFGrid
from rblspi.policies import ValuePosterior
from rblspi.rollout.collect import random_walk

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"
ROWS = np.array([[-0.5, 0.0], [0.3, 0.05]])


@pytest.fixture(scope="module")
def car() -> RBLSPI:
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


@pytest.fixture(scope="module")
def own(car: RBLSPI) -> ValuePosterior:
    """The values by the posterior that the agent learns by."""
    policy = car.policy()
    return ValuePosterior(policy, policy.posterior)


def assert_equal(one: ValuePosterior, other: ValuePosterior) -> None:
    """The same bits."""
    for ours, theirs in zip(one.action_values(ROWS, 5), other.action_values(ROWS, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.probability_best(ROWS), other.probability_best(ROWS))


# Statistics of the posterior ----------------------------------------------------------------------


def test_samples_have_the_stated_mean_and_deviation(car: RBLSPI) -> None:
    values = car.action_values(ROWS, samples=20_000, rng=np.random.default_rng(0))
    assert values.samples.shape == (20_000, 2, 3)
    error = values.std / np.sqrt(20_000)
    assert (np.abs(values.samples.mean(axis=0) - values.mean) < 5 * error).all()
    np.testing.assert_allclose(values.samples.std(axis=0), values.std, rtol=0.05)
    low, high = values.interval()
    inside = np.mean((low <= values.samples) & (values.samples <= high), axis=0)
    np.testing.assert_allclose(inside, 0.95, atol=0.01)


def test_one_observation_is_a_row_of_a_batch(car: RBLSPI) -> None:
    batch, one = car.action_values(ROWS, samples=4), car.action_values(ROWS[1], samples=4)
    np.testing.assert_allclose(one.mean, batch.mean[1])
    np.testing.assert_allclose(one.std, batch.std[1])
    np.testing.assert_allclose(one.samples, batch.samples[:, 1])


def test_probabilities_add_up_and_follow_the_samples(car: RBLSPI) -> None:
    samples = car.action_values(ROWS, samples=500).samples
    probability = car.probability_best(ROWS, samples=500)
    np.testing.assert_allclose(probability.sum(axis=-1), 1.0)
    np.testing.assert_allclose(probability[0, 2], np.mean(samples[:, 0].argmax(axis=1) == 2))
    np.testing.assert_array_equal(car.probability_best(ROWS[0], 500), probability[0])


class Second:
    """Two halves, of which none knows anything of the third action."""

    error = 100.0

    def interval(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = [500.0, -1000.0, -4000.0], [900.0, -1000.0, 4000.0]
        return np.array([low] * len(observations)), np.array([high] * len(observations))


def test_a_second_estimate_is_contained_like_the_first(own: ValuePosterior) -> None:
    """The interval ends 1.96 standard errors beyond all estimates."""
    first, both = own.action_values(ROWS).mean, replace(own, second=Second()).action_values(ROWS)
    low, high = Second().interval(ROWS)
    low, high = np.minimum(low, first), np.maximum(high, first)
    np.testing.assert_allclose(both.mean, (low + high) / 2)
    ends = (high - low) / 2 + 1.959964 * 100.0
    np.testing.assert_allclose(1.959964 * both.std, ends, rtol=1e-6)


def test_no_stated_value_is_beyond_what_the_rewards_allow() -> None:
    # Every step of the cart pole brings 1: with a discount of 0.99, values are from 1 to 100.
    agent = RBLSPI("CartPole-v1", RBFGrid(3), seed=0).learn(1000)
    rows = np.random.default_rng(0).uniform(-3.0, 3.0, (500, 4))
    values = agent.value_posterior().in_basis()
    assert values.limits == pytest.approx((1.0, 100.0))
    beyond = replace(values, limits=(-np.inf, np.inf)).action_values(rows).mean
    assert beyond.min() < 1.0 or beyond.max() > 100.0  # otherwise nothing was tested
    np.testing.assert_array_equal(values.action_values(rows).mean, beyond.clip(*values.limits))
    with_second = agent.action_values(rows).mean
    assert 1.0 - 1e-9 <= with_second.min() <= with_second.max() <= 100.0 + 1e-9
    with pytest.raises(ValueError, match="the lower number first"):
        replace(values, limits=(1.0, 0.0))


# Of agents and estimators -------------------------------------------------------------------------


def test_asking_changes_nothing(car: RBLSPI) -> None:
    before = car.rng.bit_generator.state
    car.probability_best([-0.5, 0.0])
    assert car.rng.bit_generator.state == before


def test_an_agent_states_what_its_value_posterior_does(car: RBLSPI) -> None:
    np.testing.assert_array_equal(
        car.action_values(ROWS).std, car.value_posterior().action_values(ROWS).std
    )


def test_an_agent_that_learns_on_evaluates_its_policy_again() -> None:
    """Also if it counts its steps from zero again, to the same number."""
    agent = OPSRL("rblspi/ChainWalk-v0", seed=0).learn(50)
    before = agent.value_posterior()
    assert agent.value_posterior() is before
    assert agent.learn(50).value_posterior() is not before


def test_an_agent_without_a_posterior_says_so() -> None:
    agent = OnlineLSPI(CAR, RBFGrid(2), seed=0)
    assert agent.action_values([0.0, 0.0]).std is None
    with pytest.raises(ValueError, match="online-lspi keeps no posterior"):
        agent.probability_best([0.0, 0.0])
    with pytest.raises(ValueError, match="no intervals"):
        agent.action_values([0.0, 0.0]).interval()


# In files -----------------------------------------------------------------------------------------


def test_a_file_states_what_was_stated_in_the_basis(car: RBLSPI, tmp_path: Path) -> None:
    """The second estimate holds transitions, and no file does."""
    values, path = car.value_posterior(), tmp_path / "policy.npz"
    values.save(path)
    assert values.second is not None
    loaded = ValuePosterior.load(path)
    assert_equal(loaded, values.in_basis())
    assert_equal(pickle.loads(pickle.dumps(values)), values.in_basis())
    assert (loaded.limits, loaded.basis_std) == (values.limits, values.basis_std)
    alone = LinearPolicy.load(path)
    np.testing.assert_array_equal(alone.weights, car.policy().weights)
    np.testing.assert_array_equal(alone(ROWS), car.policy()(ROWS))
    for limits in ((-np.inf, 0.0), (-np.inf, np.inf)):
        replace(values, limits=limits).save(path)
        assert ValuePosterior.load(path).limits == limits


def test_a_policy_saved_alone_states_its_own_posterior(own: ValuePosterior, tmp_path: Path) -> None:
    own.policy.save(tmp_path / "policy.npz")
    assert_equal(ValuePosterior.load(tmp_path / "policy.npz"), own)


def test_values_in_another_basis_than_the_policys_are_saved(tmp_path: Path) -> None:
    values = FittedRmax("MountainCar-v0", Multilinear(8), seed=0).learn(500).value_posterior()
    assert type(values.basis) is not type(values.policy.basis)
    values.save(tmp_path / "policy.npz")
    loaded = ValuePosterior.load(tmp_path / "policy.npz")
    assert_equal(loaded, values.in_basis())
    np.testing.assert_array_equal(loaded.policy(ROWS), values.policy(ROWS))


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
@pytest.mark.parametrize("pessimism", [0.0, 2.0])
def test_an_estimators_file_states_what_it_does(pessimism: float, tmp_path: Path) -> None:
    fitted = BLSPI(RBFGrid(3), 3, pessimism=pessimism).fit(random_walk(CAR, 1000, seed=0))
    fitted.save(tmp_path / "policy.npz")
    assert_equal(ValuePosterior.load(tmp_path / "policy.npz"), fitted.value_posterior().in_basis())
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    np.testing.assert_array_equal(loaded(ROWS), fitted.policy()(ROWS))
