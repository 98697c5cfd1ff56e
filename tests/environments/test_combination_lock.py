import numpy as np
import pytest

from rblspi.environments.combination_lock import CombinationLock


def turn(lock, actions):
    lock.reset(seed=0)
    steps = [lock.step(int(action))[:3] for action in actions]
    places, rewards, ends = zip(*steps, strict=True)
    assert ends == (False,) * (len(ends) - 1) + (True,)
    return places, rewards


def test_the_combination_opens_the_lock():
    lock = CombinationLock(5, slip=0.0)
    places, rewards = turn(lock, lock.combination)
    assert places == (1, 2, 3, 4, 4)
    assert rewards == (0.0, 0.0, 0.0, 0.0, 1.0)
    assert lock.optimal_return() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("wrong", range(5))
def test_one_wrong_action_is_paid_once_and_locks_out(wrong):
    lock = CombinationLock(5, slip=0.0, bribe=0.1)
    actions = lock.combination.copy()
    actions[wrong] = (actions[wrong] + 1) % 4
    places, rewards = turn(lock, actions)
    assert sum(rewards) == pytest.approx(0.1)
    assert all(place >= 5 for place in places[wrong:])


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


def test_the_combination_is_drawn_from_its_own_seed():
    one, same, other = (CombinationLock(combination_seed=s).combination for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_arguments_without_meaning_are_refused():
    with pytest.raises(ValueError, match="actions=1"):
        CombinationLock(actions=1)
    with pytest.raises(ValueError, match=r"slip=1\.5"):
        CombinationLock(slip=1.5)
