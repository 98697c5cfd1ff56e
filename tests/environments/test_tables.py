"""Problems that are tables: what they pay, where they lead, and which policies are the best."""

import csv
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from rblspi.environments.chain_walk import ChainWalk
from rblspi.environments.combination_lock import CombinationLock
from rblspi.environments.deep_sea import BAD, DeepSea
from rblspi.environments.n_chain import NChain
from rblspi.environments.river_swim import LEFT, RIGHT, RiverSwim

DATA = Path(__file__).parent.parent / "data"


def play(environment, policy, seed=None):
    """Observations, rewards and whether the last step was terminal, of an episode of a policy."""
    observations, rewards, ended = [environment.reset(seed=seed)[0]], [], False
    while not ended:
        action = int(policy[observations[-1]])
        observation, reward, terminated, truncated, _ = environment.step(action)
        observations.append(observation)
        rewards.append(reward)
        ended = terminated or truncated
    return observations, rewards, terminated


# Chain walk --------------------------------------------------------------------------------------


def test_exact_evaluation_gives_the_paper_s_exact_curves():
    def rows(name):
        with (DATA / name).open(newline="") as file:
            return list(csv.DictReader(file))

    figure, chain = rows("chain_figure1.csv"), ChainWalk()
    assert len(figure) == 2 * 6 * 20
    values = {}
    for row in rows("chain_policies.csv"):
        policy = [RIGHT if letter == "R" else LEFT for letter in row["evaluated_policy"]]
        values[int(row["iteration"])] = chain.exact_action_values(policy, 0.9)
    ours = [values[int(row["iteration"])][int(row["state"]) - 1].max() for row in figure]
    published = [float(row["exact"]) for row in figure]
    np.testing.assert_allclose(ours, published, rtol=0, atol=1e-10)


def test_left_half_left_and_right_half_right_is_optimal():
    optimal = [LEFT] * 10 + [RIGHT] * 10
    values = ChainWalk().exact_action_values(optimal, 0.9)
    np.testing.assert_array_equal(values.argmax(axis=1), optimal)
    np.testing.assert_allclose(values, values[::-1, ::-1], rtol=1e-12)


def test_the_reward_is_for_being_in_a_state_not_for_arriving():
    chain = ChainWalk(failure=0.0)
    chain.reset(seed=0, options={"state": [1]})
    rewards = [chain.step(LEFT)[1] for _ in range(3)]
    assert rewards == [0.0, 1.0, 1.0]
    chain.reset(options={"state": [19]})
    assert chain.step(LEFT)[:4] == (18, 1.0, False, False)


def test_starts_are_uniform():
    chain = ChainWalk()
    starts = [chain.reset(seed=0)[0], *(chain.reset()[0] for _ in range(4999))]
    counts = np.bincount(starts, minlength=20)
    assert len(counts) == 20
    # 5 standard deviations of a binomial count
    assert (np.abs(counts - 250) < 5 * np.sqrt(250 * 0.95)).all()


@pytest.mark.parametrize("policy", [[0] * 19, [2] * 20, [[0] * 20]])
def test_a_policy_of_the_wrong_shape_or_actions_is_refused(policy):
    with pytest.raises(ValueError, match="policy must be 20 actions"):
        ChainWalk().exact_action_values(policy, 0.9)


# Combination lock --------------------------------------------------------------------------------


def test_the_combination_opens_the_lock():
    lock = CombinationLock(5, slip=0.0)
    places, rewards, terminated = play(lock, lock.combination)
    assert places == [0, 1, 2, 3, 4, 4]
    assert rewards == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert terminated
    assert lock.optimal_return() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("wrong", range(5))
def test_one_wrong_action_is_paid_once_and_locks_out(wrong):
    lock = CombinationLock(5, slip=0.0, bribe=0.1)
    policy = np.tile(lock.combination, 2)
    policy[wrong] = (policy[wrong] + 1) % 4
    places, rewards, terminated = play(lock, policy)
    assert terminated
    assert sum(rewards) == pytest.approx(0.1)
    assert all(place >= 5 for place in places[wrong + 1 :])


def test_slips_multiply_and_leave_the_combination_optimal():
    lock = CombinationLock(length=10, actions=4, slip=0.05, bribe=0.0)
    assert lock.optimal_return() == pytest.approx((0.95 + 0.05 / 4) ** 10, abs=1e-12)
    best = CombinationLock().optimal_action_values(1.0)[:10].argmax(axis=1)
    np.testing.assert_array_equal(best, CombinationLock().combination)


def test_a_bribe_can_be_had_later_as_well_and_is_taken_only_by_the_impatient():
    lock = CombinationLock(length=10, slip=0.5, bribe=0.5)
    best = lock.optimal_action_values(1.0)[:10].argmax(axis=1)
    np.testing.assert_array_equal(best, lock.combination)
    assert lock.optimal_action_values(0.9)[0].argmax() != lock.combination[0]


# Deep sea ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5, 10])
def test_always_going_right_finds_the_treasure(size):
    sea = DeepSea(size)
    cells, rewards, terminated = play(sea, sea.right_actions)
    assert terminated
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
        _, rewards, _ = play(sea, policy)
        assert sum(rewards) == pytest.approx(-0.01 * 4 / 5)
        assert sea.state[BAD] == 1.0


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
        cells, *_ = play(sea, sea.right_actions, seed)
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


# N-chain and river swim --------------------------------------------------------------------------


@pytest.mark.parametrize("length", [3, 10, 100])
def test_an_optimal_episode_of_the_n_chain_has_the_return_ten(length):
    chain = NChain(length)
    states, rewards, terminated = play(chain, np.full(length, RIGHT))
    assert states[0] == 1
    assert sum(rewards) == 10.0 == chain.optimal_return()
    assert len(rewards) == length + 8
    assert not terminated


def test_giving_up_pays_a_thousandth_a_step():
    _, rewards, _ = play(NChain(10), np.full(10, LEFT))
    assert sum(rewards) == pytest.approx(0.001 * 17)


def test_the_published_probabilities():
    assert RiverSwim().reset(seed=0)[0] == 0
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


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "drawn"),
    [
        (DeepSea, "mapping_seed", lambda sea: sea.right_actions),
        (CombinationLock, "combination_seed", lambda lock: lock.combination),
    ],
)
def test_the_meaning_of_actions_is_drawn_from_its_own_seed(kind, name, drawn):
    one, same, other = (drawn(kind(**{name: seed})) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert set(DeepSea(randomise_actions=False).right_actions) == {1}


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (ChainWalk, {"failure": 1.5}, ValueError, r"failure=1\.5"),
        (ChainWalk, {"states": 4, "rewards": [0, 0, 1]}, ValueError, "3 entries for states=4"),
        (ChainWalk, {"states": 1}, ValueError, "states=1"),
        (CombinationLock, {"actions": 1}, ValueError, "actions=1"),
        (CombinationLock, {"slip": 1.5}, ValueError, r"slip=1\.5"),
        (DeepSea, {"size": 1}, ValueError, "size=1"),
        (DeepSea, {"stochastic": 0.1}, TypeError, r"stochastic=0\.1"),
        (DeepSea, {"mapping_seed": -1}, ValueError, "mapping_seed=-1"),
        (NChain, {"length": 2}, ValueError, "length=2"),
        (RiverSwim, {"states": 2}, ValueError, "states=2"),
    ],
)
def test_arguments_without_meaning_are_refused(kind, arguments, error, message):
    with pytest.raises(error, match=message):
        kind(**arguments)
