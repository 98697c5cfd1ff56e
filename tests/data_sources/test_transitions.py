from dataclasses import replace

import numpy as np
import pytest

from rblspi.data.transitions import Transitions
from tests.support.logs import arrays


def columns(**changed):
    whole = {
        "observations": np.arange(6.0).reshape(3, 2),
        "actions": [0, 1, 0],
        "rewards": [0.0, -1.0, 2.5],
        "next_observations": np.arange(6.0).reshape(3, 2),
        "terminated": [False, False, True],
    }
    return {**whole, **changed}


def test_columns_become_arrays_of_known_types():
    transitions = Transitions.from_arrays(**columns(actions=[0.0, 1.0, 0.0], terminated=[0, 0, 1]))
    assert transitions.size == 3
    assert transitions.actions.dtype == np.int64
    assert transitions.rewards.dtype == np.float64
    assert transitions.terminated.dtype == np.bool_
    again = Transitions.from_arrays(*arrays(transitions))
    assert all(a is b for a, b in zip(arrays(again), arrays(transitions), strict=True))


def test_rows_and_batches_share_memory():
    transitions = Transitions.from_arrays(**columns())
    assert transitions.rows(1, 3).actions.tolist() == [1, 0]
    batches = list(transitions.batches(2))
    assert [batch.size for batch in batches] == [2, 1]
    assert np.shares_memory(batches[0].observations, transitions.observations)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"rewards": [0.0, np.nan, 0.0]}, ValueError, "rewards in row 1 is nan: it must be finite"),
        (
            {"observations": [[0.0, 1.0], [2.0, 3.0], [np.inf, 0.0]]},
            ValueError,
            r"observations in row 2 is \[inf, 0.0\]: it must be finite",
        ),
        (
            {"next_observations": [[0.0, np.nan], [0.0, 0.0], [0.0, 0.0]]},
            ValueError,
            "next_observations in row 0",
        ),
        ({"actions": [0, -1, 0]}, ValueError, "actions in row 1 is -1: it must be 0 or more"),
        ({"actions": [0, 0.5, 0]}, ValueError, r"actions in row 1 is 0\.5: .* a whole number"),
        ({"actions": [0, 1]}, ValueError, r"actions has shape \(2,\), .* a shape of \(3,\)"),
        ({"rewards": np.zeros((3, 1))}, ValueError, r"rewards has shape \(3, 1\)"),
        ({"next_observations": np.zeros((3, 4))}, ValueError, r"next_observations has shape"),
        ({"terminated": [0, 2, 0]}, ValueError, "terminated in row 1 is 2: .* true or false"),
        ({"terminated": [0, np.nan, 0]}, ValueError, "terminated in row 1 is nan"),
        ({"actions": ["left"] * 3}, TypeError, "actions of type .* must be numbers"),
        ({"observations": [[0.0], [0.0, 1.0]]}, ValueError, "rows of different shapes"),
        ({"rewards": 1.0}, ValueError, r"rewards=1\.0 must have a row for every transition"),
        ({"observations": np.empty((0, 2))}, ValueError, "observations has no rows"),
    ],
)
def test_faults_are_named_by_column_row_and_value(changed, error, message):
    with pytest.raises(error, match=message):
        Transitions.from_arrays(**columns(**changed))


STATES = np.array([0, 1, 2, 7, 8, 3])
NEXT = np.array([1, 2, 9, 8, 3, 4])


def walk(terminated=(), **changed):
    """Rows 0 to 2 are one walk; rows 3 to 5 are another one."""
    ended = np.isin(np.arange(6), terminated)
    return Transitions.from_arrays(STATES, np.zeros(6, int), np.zeros(6), NEXT, ended, **changed)


def test_an_episode_is_cut_short_where_the_next_row_does_not_continue_it():
    assert np.flatnonzero(walk().truncated).tolist() == [2]
    assert np.flatnonzero(walk(terminated=[2]).truncated).tolist() == []
    vectors = np.stack([STATES, np.zeros(6)], axis=1), np.stack([NEXT, np.zeros(6)], axis=1)
    log = Transitions.from_arrays(vectors[0], [0] * 6, [0.0] * 6, vectors[1], [0] * 6)
    assert np.flatnonzero(log.truncated).tolist() == [2]


def test_a_given_truncation_is_taken_as_it_is():
    given = walk(truncated=[0, 1, 0, 0, 0, 1])
    assert given.truncated.dtype == np.bool_
    assert np.flatnonzero(given.truncated).tolist() == [1, 5]
    assert np.flatnonzero(given.starts()).tolist() == [0, 2]
    with pytest.raises(ValueError, match="truncated in row 1 is 2: it must be true or false"):
        walk(truncated=[0, 2, 0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"truncated has shape \(5,\)"):
        walk(truncated=[0] * 5)


@pytest.mark.parametrize(
    ("terminated", "starts"), [([], [0, 3]), ([2], [0, 3]), ([0, 4, 5], [0, 1, 3, 5])]
)
def test_an_episode_starts_after_the_end_of_another(terminated, starts):
    assert np.flatnonzero(walk(terminated).starts()).tolist() == starts


@pytest.mark.parametrize("border", range(1, 6))
@pytest.mark.parametrize("terminated", [[], [2], [0, 4, 5]])
def test_episodes_continue_across_the_borders_of_chunks(border, terminated):
    log = walk(terminated)
    whole = arrays(log, 5)
    first, second = (
        Transitions.from_arrays(*(column[rows] for column in whole))
        for rows in (slice(border), slice(border, None))
    )
    starts = np.concatenate([first.starts(), second.starts(first)])
    np.testing.assert_array_equal(starts, log.starts())
    assert second.starts()[0]  # without the chunk before it


def test_a_chunk_that_was_cut_short_is_not_continued():
    cut = walk(truncated=[0, 0, 0, 0, 0, 1])
    following = Transitions.from_arrays([4], [0], [0.0], [5], [False])
    assert following.starts(cut).tolist() == [True]
    assert following.starts(walk()).tolist() == [False]


def test_columns_of_a_plain_constructor_are_brought_into_form():
    log = Transitions.from_arrays(**columns())
    assert log.conformed() is log
    lists = Transitions(**{name: column.tolist() for name, column in log.columns().items()})
    for name, one in lists.conformed().columns().items():
        other = log.columns()[name]
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    with pytest.raises(ValueError, match=r"rewards has shape \(2,\)"):
        replace(log, rewards=log.rewards[:2]).conformed()
    with pytest.raises(ValueError, match=r"actions in row 1 is 0\.5: .* a whole number"):
        replace(log, actions=np.array([0.0, 0.5, 1.0])).conformed()
