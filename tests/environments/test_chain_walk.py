import csv
from pathlib import Path

import numpy as np
import pytest

from rblspi.environments.chain_walk import LEFT, RIGHT, ChainWalk

DATA = Path(__file__).parent.parent / "data"
OPTIMAL = [LEFT] * 10 + [RIGHT] * 10


def rows(name):
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


POLICIES = {
    int(row["iteration"]): [RIGHT if letter == "R" else LEFT for letter in row["evaluated_policy"]]
    for row in rows("chain_policies.csv")
}


def test_exact_evaluation_gives_the_paper_s_exact_curves():
    figure = rows("chain_figure1.csv")
    assert len(figure) == 2 * 6 * 20
    chain = ChainWalk()
    values = {i: chain.exact_action_values(policy, 0.9) for i, policy in POLICIES.items()}
    ours = [values[int(row["iteration"])][int(row["state"]) - 1].max() for row in figure]
    published = [float(row["exact"]) for row in figure]
    np.testing.assert_allclose(ours, published, rtol=0, atol=1e-10)


def test_left_half_left_and_right_half_right_is_optimal():
    values = ChainWalk().exact_action_values(OPTIMAL, 0.9)
    np.testing.assert_array_equal(values.argmax(axis=1), OPTIMAL)
    np.testing.assert_allclose(values, values[::-1, ::-1], rtol=1e-12)


def test_transitions_move_one_state_and_stay_at_the_ends():
    transitions = ChainWalk(failure=0.1).transition_probabilities()
    assert transitions.shape == (2, 20, 20)
    np.testing.assert_allclose(transitions.sum(axis=2), 1.0, rtol=1e-15)
    assert transitions[LEFT, 5, 4] == pytest.approx(0.9)
    assert transitions[LEFT, 5, 6] == pytest.approx(0.1)
    assert transitions[LEFT, 0, 0] == pytest.approx(0.9)
    assert transitions[RIGHT, 0, 0] == pytest.approx(0.1)
    assert transitions[RIGHT, 19, 19] == pytest.approx(0.9)


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


def test_a_random_walk_never_ends():
    chain = ChainWalk()
    chain.reset(seed=0)
    for action in np.random.default_rng(0).integers(2, size=500):
        _, _, terminated, truncated, _ = chain.step(action)
        assert not terminated
        assert not truncated


@pytest.mark.parametrize("policy", [[0] * 19, [2] * 20, [[0] * 20]])
def test_a_policy_of_the_wrong_shape_or_actions_is_refused(policy):
    with pytest.raises(ValueError, match="policy must be 20 actions"):
        ChainWalk().exact_action_values(policy, 0.9)


def test_arguments_without_meaning_are_refused():
    with pytest.raises(ValueError, match="discount=1"):
        ChainWalk().exact_action_values([0] * 20, 1.0)
    with pytest.raises(ValueError, match=r"failure=1\.5"):
        ChainWalk(failure=1.5)
    with pytest.raises(ValueError, match="rewards has 3 entries for states=4"):
        ChainWalk(states=4, rewards=[0, 0, 1])
    with pytest.raises(ValueError, match="states=1"):
        ChainWalk(states=1)
