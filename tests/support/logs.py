"""Small logs with known contents."""

import numpy as np

from rblspi.data.transitions import Transitions


def some_log(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return Transitions.from_arrays(
        rng.uniform(-1, 1, (rows, 2)),
        rng.integers(3, size=rows),
        rng.standard_normal(rows),
        rng.uniform(-1, 1, (rows, 2)),
        rng.random(rows) < 0.2,
    )


def as_columns(log, **changed):
    """The columns of a table, lists as states."""
    columns = {
        "state": list(log.observations),
        "action": log.actions,
        "reward": log.rewards,
        "next_state": list(log.next_observations),
        "terminated": log.terminated,
    }
    return columns | changed


def joined(chunks):
    return Transitions._make(np.concatenate(column) for column in zip(*chunks, strict=True))


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
