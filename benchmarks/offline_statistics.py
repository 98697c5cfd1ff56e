"""Offline: the sums over a million transitions, against one matrix product of that size."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Row, seconds
from rblspi import LSTD, RBFGrid, Transitions
from rblspi.model.statistics import accumulate, empty

ROWS, FEATURES, ACTIONS = 1_000_000, 65, 3


def statistics() -> list[Row]:
    """N n^2 multiply-adds for C, and as many for A: each as one product, X'X and X'Y."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, ROWS, FEATURES))
    actions = rng.integers(ACTIONS, size=ROWS)
    next_actions = rng.integers(-1, ACTIONS, size=ROWS)
    rewards = rng.standard_normal(ROWS)
    sums = empty(ACTIONS, FEATURES)
    accumulate(sums, x[:100], actions[:100], rewards[:100], y[:100], next_actions[:100], 0.99)
    product = seconds(lambda: (x.T @ x, x.T @ y))
    ours = seconds(lambda: accumulate(sums, x, actions, rewards, y, next_actions, 0.99))
    return [
        Row(
            "LSTD statistics, 1,000,000 transitions, k = 195, against dgemm",
            ours / product,
            "x",
            "within 2.5x",
            ours / product <= 2.5,
            {"ours_s": ours, "dgemm_s": product, **_from_observations(actions, rewards)},
        ),
        *(_traces(actions) for actions in (None, 2)),
    ]


def _traces(actions: int | None) -> Row:
    """LSTD(0.9) against LSTD(0) in one walk, of states or of actions, features included."""
    rng = np.random.default_rng(2)
    walk = np.cumsum(0.05 * rng.standard_normal((ROWS + 1, 2)), axis=0)
    states = np.abs(walk % 2.0 - 1.0)
    data = Transitions(
        *(states[:-1], rng.integers(2, size=ROWS), rng.standard_normal(ROWS), states[1:]),
        terminated=np.zeros(ROWS, bool),
        truncated=np.arange(ROWS) % 200 == 199,
    )
    policy = None if actions is None else rng.integers(actions, size=ROWS)

    def fit(trace_decay: float) -> float:
        lstd = LSTD(RBFGrid(8, low=0.0, high=1.0), actions, trace_decay=trace_decay)
        return seconds(lambda: lstd.fit(data, policy))

    ratio = fit(0.9) / fit(0.0)
    of = "states" if actions is None else f"{actions} actions"
    name = f"LSTD(0.9) against LSTD(0), values of {of}, 1,000,000 transitions"
    return Row(name, ratio, "x", "at most 1.5x", ratio <= 1.5, {})


def _from_observations(actions: np.ndarray, rewards: np.ndarray) -> dict[str, float]:
    """The whole estimator, features included, for information."""
    rng = np.random.default_rng(1)
    observations = rng.uniform(0.0, 1.0, (ROWS, 2))
    data = Transitions.from_arrays(
        observations, actions, rewards, np.roll(observations, -1, axis=0), np.zeros(ROWS, bool)
    )
    estimator = LSTD(RBFGrid(8), ACTIONS)
    policy = np.zeros(ROWS, np.int64)
    return {"estimator_with_features_s": seconds(lambda: estimator.fit(data, policy), rounds=1)}
