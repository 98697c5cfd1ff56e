"""Small logs with known contents."""

import numpy as np

from rblspi.data import ParquetWriter
from rblspi.data.transitions import Transitions, concatenated


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
    return concatenated(list(chunks))


def write_parquet(path, log, chunks=1, metadata=None):
    """A file of transitions, in so many groups of rows."""
    with ParquetWriter(path, metadata) as writer:
        for rows in np.array_split(np.arange(log.size), chunks):
            writer.write(log.rows(rows[0], rows[-1] + 1))
    return path


def arrays(log, first=6):
    """The first columns of transitions."""
    return tuple(log.columns().values())[:first]


def unmarked(log):
    """The same transitions, cut short only where the next row does not continue an episode."""
    return Transitions.from_arrays(*arrays(log, 5))


def assert_same(one, other, first=8):
    for a, b in zip(arrays(one, first), arrays(other, first), strict=True):
        np.testing.assert_array_equal(a, b)


WORDS = ("Mon", "Tue", "Wed")
ACTIONS = ("large", "none", "small")


def episode_rows(episodes=12, seed=0):
    """Rows of episodes as dictionaries: numbers, words, and both ways to end."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        length, ends = int(rng.integers(1, 9)), bool(rng.random() < 0.5)
        for time in range(length):
            last = time == length - 1
            rows.append(
                {
                    "episode": f"e{episode}",
                    "time": time,
                    "stock": float(rng.uniform(-1, 1)),
                    "weekday": str(rng.choice(WORDS)),
                    "action": str(rng.choice(ACTIONS)),
                    "reward": float(rng.standard_normal()),
                    "terminated": last and ends,
                    "truncated": last and not ends,
                }
            )
    return rows


def transitions_of_rows(rows, words=WORDS, actions=ACTIONS):
    """The transitions of such rows, by a loop."""
    found = []
    for now, after in zip(rows, [*rows[1:], None], strict=True):
        follows = after is not None and after["episode"] == now["episode"]
        if not (follows or now["terminated"]):
            continue
        s, s_next = (
            [row["stock"], *(float(row["weekday"] == word) for word in words)]
            for row in (now, after if follows else now)
        )
        action = actions.index(now["action"])
        found.append([s, action, now["reward"], s_next, now["terminated"], now["episode"]])
    truncated = [
        not one[4] and (other is None or other[5] != one[5])
        for one, other in zip(found, [*found[1:], None], strict=True)
    ]
    return Transitions.from_arrays(*zip(*(row[:5] for row in found), strict=True), truncated)
