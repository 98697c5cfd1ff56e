import gymnasium as gym
import numpy as np
import pytest

from rblspi.environments.deep_sea import BAD, DeepSea


def dive(sea, policy, seed=None):
    cell, _ = sea.reset(seed=seed)
    cells, rewards, terminated = [cell], [], False
    while not terminated:
        cell, reward, terminated, truncated, _ = sea.step(int(policy[cell]))
        assert not truncated
        cells.append(cell)
        rewards.append(reward)
    return cells, rewards


@pytest.mark.parametrize("size", [2, 5, 10])
def test_always_going_right_finds_the_treasure(size):
    sea = DeepSea(size)
    cells, rewards = dive(sea, sea.right_actions)
    assert cells[:-1] == [i * (size + 1) for i in range(size)]
    assert len(rewards) == size
    assert sum(rewards) == pytest.approx(0.99)
    assert sea.optimal_return() == pytest.approx(0.99, abs=1e-12)
    assert sea.state[BAD] == 0.0


def test_one_step_to_the_left_loses_it():
    sea = DeepSea(5)
    for wrong in range(5):
        policy = sea.right_actions.copy()
        policy[wrong * 6] = 1 - policy[wrong * 6]
        _, rewards = dive(sea, policy)
        assert sum(rewards) == pytest.approx(-0.01 * 4 / 5)
        assert sea.state[BAD] == 1.0


def test_the_optimal_policy_goes_right_on_the_diagonal():
    sea = DeepSea(6, mapping_seed=3)
    optimal = sea.optimal_action_values(1.0).argmax(axis=1)
    diagonal = np.arange(6) * 7
    np.testing.assert_array_equal(optimal[diagonal], sea.right_actions[diagonal])


def test_the_meaning_of_actions_is_drawn_from_its_own_seed():
    one, same, other = (DeepSea(10, mapping_seed=seed).right_actions for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert set(one) == {0, 1}
    assert set(DeepSea(10, randomise_actions=False).right_actions) == {1}


def test_in_the_stochastic_sea_every_move_to_the_right_has_to_succeed():
    """The policy that always goes right: (1 - 1/N)^(N - 1) for the treasure, and all costs."""
    sea = gym.make("rblspi/DeepSeaStochastic-v0", size=8).unwrapped
    always_right = sea.exact_action_values(sea.right_actions, 1.0)[0].max()
    assert always_right == pytest.approx((1 - 1 / 8) ** 7 - 0.01, abs=1e-12)
    assert always_right <= sea.optimal_return() < (1 - 1 / 8) ** 7


def test_a_move_that_fails_does_not_make_an_episode_bad():
    sea = DeepSea(4, stochastic=True)
    columns = set()
    for seed in range(60):
        cells, _ = dive(sea, sea.right_actions, seed)
        columns.add(cells[-2] % 4)
        assert sea.state[BAD] == 0.0
    assert len(columns) > 1


def test_the_noise_is_in_the_two_corners_at_the_bottom():
    sea = DeepSea(3, stochastic=True)
    sea.reset(seed=0)
    noisy = []
    for cell in range(9):
        rewards = set()
        for _ in range(5):
            sea.state[:] = cell, 0.0
            rewards.add(sea.step(1 - int(sea.right_actions[cell]))[1])
        noisy.append(len(rewards) > 1)
    assert [cell for cell in range(9) if noisy[cell]] == [6, 8]


def test_arguments_without_meaning_are_refused():
    with pytest.raises(ValueError, match="size=1"):
        DeepSea(1)
    with pytest.raises(TypeError, match=r"stochastic=0\.1"):
        DeepSea(stochastic=0.1)
    with pytest.raises(ValueError, match="mapping_seed=-1"):
        DeepSea(mapping_seed=-1)
