import numpy as np
import pytest

from rblspi.transitions import Transitions


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
    again = Transitions.from_arrays(*transitions)
    assert all(a is b for a, b in zip(again, transitions, strict=True))


def test_rows_and_pieces_share_memory():
    transitions = Transitions.from_arrays(**columns())
    assert transitions.rows(1, 3).actions.tolist() == [1, 0]
    pieces = list(transitions.pieces(2))
    assert [piece.size for piece in pieces] == [2, 1]
    assert np.shares_memory(pieces[0].observations, transitions.observations)


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
