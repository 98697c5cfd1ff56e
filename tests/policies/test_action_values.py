"""What agents state of action values and how sure they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rblspi import RBLSPI, OnlineLSPI, RBFGrid

pytestmark = pytest.mark.slow

CAR = "rblspi/MountainCar-v0"


@pytest.fixture(scope="module")
def car() -> RBLSPI:
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


def test_samples_have_the_stated_mean_and_deviation(car: RBLSPI) -> None:
    rng = np.random.default_rng(0)
    values = car.action_values([[-0.5, 0.0], [0.3, 0.05]], samples=20_000, rng=rng)
    assert values.samples.shape == (20_000, 2, 3)
    error = values.std / np.sqrt(20_000)
    assert (np.abs(values.samples.mean(axis=0) - values.mean) < 5 * error).all()
    np.testing.assert_allclose(values.samples.std(axis=0), values.std, rtol=0.05)


def test_one_observation_is_a_row_of_a_batch(car: RBLSPI) -> None:
    batch = car.action_values([[-0.5, 0.0], [0.3, 0.05]], samples=4)
    one = car.action_values([0.3, 0.05], samples=4)
    np.testing.assert_allclose(one.mean, batch.mean[1])
    np.testing.assert_allclose(one.std, batch.std[1])
    np.testing.assert_allclose(one.samples, batch.samples[:, 1])


def test_probabilities_add_up_and_follow_the_samples(car: RBLSPI) -> None:
    observations = np.array([[-0.5, 0.0], [0.3, 0.05]])
    samples = car.action_values(observations, samples=500).samples
    probability = car.probability_best(observations, samples=500)
    np.testing.assert_allclose(probability.sum(axis=-1), 1.0)
    np.testing.assert_allclose(probability[0, 2], np.mean(samples[:, 0].argmax(axis=1) == 2))
    np.testing.assert_array_equal(car.probability_best(observations[0], 500), probability[0])


class Second:
    """Two halves, of which none knows anything of the third action."""

    error = 100.0

    def interval(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = [500.0, -1000.0, -4000.0], [900.0, -1000.0, 4000.0]
        return np.array([low] * len(observations)), np.array([high] * len(observations))


def test_a_second_estimate_is_contained_like_the_first(car: RBLSPI) -> None:
    """The interval ends 1.96 standard errors beyond all estimates."""
    observations = np.array([[-0.5, 0.0], [0.3, 0.05]])
    first = car.policy().action_values(observations).mean
    both = replace(car.policy(), second=Second()).action_values(observations)
    low, high = Second().interval(observations)
    low, high = np.minimum(low, first), np.maximum(high, first)
    np.testing.assert_allclose(both.mean, (low + high) / 2)
    ends = (high - low) / 2 + 1.959964 * 100.0
    np.testing.assert_allclose(1.959964 * both.std, ends, rtol=1e-6)


def test_asking_changes_nothing(car: RBLSPI) -> None:
    before = car.rng.bit_generator.state
    car.probability_best([-0.5, 0.0])
    assert car.rng.bit_generator.state == before


def test_an_agent_without_a_posterior_says_so() -> None:
    agent = OnlineLSPI(CAR, RBFGrid(2), seed=0)
    assert agent.action_values([0.0, 0.0]).std is None
    with pytest.raises(ValueError, match="online-lspi keeps no posterior"):
        agent.probability_best([0.0, 0.0])
