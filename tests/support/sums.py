"""Random transitions in features, and their sums."""

import numpy as np

from rblspi.model.statistics import accumulate, empty


def random_batch(seed, rows=60, features=3, choices=2):
    """Features, actions, rewards, features of next states, next actions or -1."""
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((rows, features)),
        rng.integers(choices, size=rows),
        rng.standard_normal(rows),
        rng.standard_normal((rows, features)),
        rng.integers(-1, choices, size=rows),
    )


def sums_of(columns, discount=0.9, choices=2):
    sums = empty(choices, columns[0].shape[1])
    accumulate(sums, *columns, discount)
    return sums


def dense(sums, ridge=1e-6):
    """A, C with its ridge, and b, as the paper writes them."""
    k, n = sums.weights, sums.features
    gram = np.zeros((k, k))
    for a in range(sums.actions):
        gram[a * n : (a + 1) * n, a * n : (a + 1) * n] = sums.gram[a] + ridge * np.eye(n)
    return sums.drift, gram, sums.reward
