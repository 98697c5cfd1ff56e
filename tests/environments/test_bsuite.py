"""The adapter for bsuite, around an environment of its form, and the rules of its scores.

Where bsuite is installed, the adapter is checked on its own environments, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import bsuite_rules
from benchmarks.bsuite_rules import BsuiteEnvironment, History, first_solved, score


class Step(NamedTuple):
    """As dm_env's."""

    observation: Any
    reward: float | None
    discount: float | None
    over: bool

    def last(self):
        return self.over


class Board:
    """Three steps down a board of 3 x 2; the reward is the action."""

    bsuite_num_episodes = 7

    def __init__(self):
        self._rng, self.row, self.total = np.random.RandomState(0), 0, 0.0

    def action_spec(self):
        return type("Spec", (), {"num_values": 2})

    def observation_spec(self):
        return type("Spec", (), {"shape": (3, 2)})

    def _board(self):
        board = np.zeros((3, 2), np.float32)
        if self.row < 3:
            board[self.row, self._rng.randint(2)] = 1.0
        return board

    def reset(self):
        self.row = 0
        return Step(self._board(), None, None, False)

    def step(self, action):
        self.row += 1
        self.total += action
        over = self.row == 3
        return Step(self._board(), float(action), 0.0 if over else 1.0, over)

    def bsuite_info(self):
        return {"total_bad_episodes": self.total}


@pytest.fixture
def board(monkeypatch):
    monkeypatch.setattr(bsuite_rules, "_load", lambda name: Board())


def test_an_episode_is_noted_when_it_ends(board):
    env = BsuiteEnvironment("deep_sea/0", table=True)
    assert env.observation_space.n == 6
    assert env.action_space.n == 2
    assert env.episodes == 7
    first, _ = env.reset(seed=1)
    assert first in (0, 1)
    for row, action in enumerate((1, 0, 1)):
        seen, reward, terminated, truncated, _ = env.step(action)
        assert reward == action
        assert terminated == (row == 2)
        assert not truncated
        assert seen // 2 == (row + 1 if row < 2 else 0)
    assert env.history == ([2.0], [{"total_bad_episodes": 2.0}])


def test_a_seed_repeats_an_episode_and_a_vector_is_flat(board):
    env = BsuiteEnvironment("deep_sea/0")
    starts = [env.reset(seed=seed)[0] for seed in (3, 3, 4, 5, 6, 7)]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert len({tuple(start) for start in starts}) == 2
    assert env.observation_space.contains(starts[0])
    assert starts[0].shape == (6,)


def test_a_board_of_catch_is_the_ball_and_the_paddle():
    seen = set()
    for ball in range(9 * 5):
        for paddle in range(5):
            board = np.zeros((10, 5))
            board[ball // 5, ball % 5] = board[9, paddle] = 1.0
            seen.add(bsuite_rules._catch_number(board))
    assert len(seen) == 225
    assert max(seen) < bsuite_rules._TABLES["catch"].states((10, 5))


def history(returns, **sums):
    columns = zip(*sums.values(), strict=True)
    return History(returns, [dict(zip(sums, column, strict=True)) for column in columns])


def test_an_agent_without_regret_has_the_score_1_and_a_random_one_0():
    for name, base in (("bandit", 0.5), ("catch", 1.6)):
        for regret, expected in ((0.0, 1.0), (base, 0.0), (base / 4, 0.75), (2 * base, 0.0)):
            run = history([0.0] * 4, total_regret=[regret, 2 * regret, 3 * regret, 4 * regret])
            assert score(name, {name: ({}, run)}) == pytest.approx(expected)


def test_scores_of_returns():
    car = history([0.0] * 2, raw_return=[-200.0, -400.0])
    assert score("mountain_car", {"a": ({}, car)}) == pytest.approx(0.9)
    pole = history([0.0] * 2, raw_return=[100.0, 1000.0], best_episode=[100.0, 900.0])
    assert score("cartpole", {"a": ({}, pole)}) == pytest.approx(0.5 * (0.5 + 1.0))
    chain = history([1.0, 1.1], nothing=[0.0, 0.0])
    assert score("discounting_chain", {"a": ({}, chain)}) == pytest.approx(0.5)
    short, long = (history([0.0] * 2, total_regret=[1.0, regret]) for regret in (0.9, 1.1))
    runs = {"a": ({}, short), "b": ({}, long)}
    assert score("umbrella_length", runs) == 0.5


def test_a_deep_sea_is_solved_when_few_episodes_were_bad_and_in_time():
    bad = history([0.0] * 200, total_bad_episodes=[min(t, 50.0) for t in range(1, 201)])
    assert first_solved({"size": 10}, bad) == 56  # 50 / 56 < 0.9
    assert first_solved({"size": 10}, bad, 0.8, 100) == 100
    late = history([0.0] * 200, total_bad_episodes=[min(t, 150.0) for t in range(1, 201)])
    assert first_solved({"size": 6}, late) is None  # by 2^6 + 100 = 164 episodes
    assert first_solved({"size": 10}, late) == 167
    runs = {"a": ({"size": 10}, bad), "b": ({"size": 6}, late)}
    assert score("deep_sea", runs) == 0.5
    with pytest.raises(ValueError, match="there is no rule for 'mnist'"):
        score("mnist", {})


def test_without_bsuite_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "bsuite", None)
    with pytest.raises(ImportError, match=r"pip install 'rblspi\[bsuite\]'"):
        BsuiteEnvironment("deep_sea/0")
