import numpy as np
import pytest

from rblspi.environments.river_swim import LEFT, RIGHT, RiverSwim


def test_the_published_probabilities():
    left, right = RiverSwim().transition_probabilities()
    np.testing.assert_array_equal(left, np.eye(6)[[0, 0, 1, 2, 3, 4]])
    np.testing.assert_allclose(right[0], [0.4, 0.6, 0, 0, 0, 0])
    np.testing.assert_allclose(right[3], [0, 0, 0.05, 0.6, 0.35, 0])
    np.testing.assert_allclose(right[5], [0, 0, 0, 0, 0.4, 0.6])


def test_the_average_reward_of_always_swimming_is_that_of_its_stationary_distribution():
    """Detailed balance: pi_s P(s -> s + 1) = pi_(s + 1) P(s + 1 -> s)."""
    _, right = RiverSwim().transition_probabilities()
    steps = [right[s, s + 1] / right[s + 1, s] for s in range(5)]
    weights = np.cumprod([1.0, *steps])
    share = weights[-1] / weights.sum()
    assert RiverSwim().optimal_average_reward() == pytest.approx(share, abs=1e-12)
    assert share == pytest.approx(0.4286, abs=1e-4)


def test_swimming_is_optimal_and_resting_is_where_the_goal_is_poor():
    policy = RiverSwim().optimal_action_values(0.99).argmax(axis=1)
    np.testing.assert_array_equal(policy, RIGHT)
    poor = RiverSwim(right_reward=0.005)
    assert poor.optimal_action_values(0.99).argmax(axis=1)[0] == LEFT
    assert poor.optimal_average_reward() == pytest.approx(0.005)


def test_it_starts_on_the_left_and_never_ends():
    river = RiverSwim()
    assert river.reset(seed=0)[0] == 0
    for action in np.random.default_rng(0).integers(2, size=500):
        assert river.step(action)[2:4] == (False, False)


def test_a_river_has_three_places():
    with pytest.raises(ValueError, match="states=2"):
        RiverSwim(states=2)
