"""How often the intervals of off-policy evaluation contain the true value: for docs/offline.md.

    python -m benchmarks.off_policy coverage|compare|picture

The problems are random Garnets, whose values are known exactly. Nothing was chosen with the seeds
that are used here.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np

from rblspi.core.intervals import share_interval
from rblspi.features import OneHot, RBFGrid
from rblspi.model.posterior import ConditionWarning
from rblspi.offline.estimates import Estimates, estimates
from tests.support.garnet import Garnet

DISCOUNT, STATES, ACTIONS = 0.9, 20, 3
FRESH = 50_000


class Pairs:
    """A basis that is too small for the values: states 2i and 2i + 1 look the same."""

    def transform(self, states: np.ndarray) -> np.ndarray:
        """The indicators of the pairs."""
        return np.eye(STATES // 2)[states.astype(int).ravel() // 2]


#: who logged the data: how often the policy's own action is taken, otherwise any; and the basis
LOGS: dict[str, tuple[float, Any]] = {
    "uniformly random actions": (0.0, OneHot()),
    "70% the policy's actions": (0.7, OneHot()),
    "95% the policy's actions": (0.95, OneHot()),
    "70%, basis too small": (0.7, Pairs()),
}


def tables(share: float, basis: Any, problems: int) -> Iterator[tuple[float, Estimates]]:
    """The true value and all estimates, for 200 episodes of 50 steps of every problem."""
    for seed in range(FRESH, FRESH + problems):
        rng = np.random.default_rng(seed)
        garnet = Garnet.random(rng, STATES, ACTIONS, 3)
        log, propensities = garnet.log(rng, 200, 50, garnet.following(share))
        found = estimates(
            *(log, garnet.act, basis, ACTIONS),
            discount=DISCOUNT,
            propensities=propensities,
            observation_space=gym.spaces.Discrete(STATES),
        )
        yield float(garnet.values(DISCOUNT).mean()), found


def coverage(*names: str, problems: int = 100) -> None:
    """Coverage of 95% intervals, and their width against the one that the errors need."""
    print("| log | method | coverage of 95% | mean width | width that the errors need |")
    print("|---|---|---|---|---|")
    for name in names or LOGS:
        share, basis = LOGS[name]
        results = list(tables(share, basis, problems))
        truth = np.array([true for true, _ in results])
        for i, row in enumerate(results[0][1].rows):
            mean, low, high = np.array([found.rows[i][1:4] for _, found in results]).T
            held = share_interval(int(((low <= truth) & (truth <= high)).sum()), problems)
            needed = 2 * 1.96 * float(np.sqrt(np.mean((mean - truth) ** 2)))
            covers = f"{held.mean:.0%} ({held.low:.0%} to {held.high:.0%})"
            width = float(np.mean(high - low))
            print(f"| {name} | {row.method} | {covers} | {width:.2f} | {needed:.2f} |", flush=True)
        apart = sum(bool(found.disagreements()) for _, found in results)
        print(f"| {name} | some intervals do not overlap | in {apart} of {problems} | | |")


def picture() -> None:
    """Draw the estimates of a policy on the cart pole with a basis that is too small."""
    from benchmarks.offline import gathered, lean
    from rblspi.plotting.estimates import draw
    from rblspi.plotting.style import save, style

    log = gathered("rblspi/CartPole-v0", episodes=300, seed=FRESH)
    basis = RBFGrid((2, 3, 3, 3), low=(-2.4, -2.5, -0.53, -2.5), high=(2.4, 2.5, 0.53, 2.5))
    halves = np.full(log.size, 0.5)
    found = estimates(log, lean, basis, 2, discount=0.95, propensities=halves)
    print(found)
    with style():
        save(draw(found, truth=19.881), Path("docs/images/off-policy"))


COMMANDS: dict[str, Callable[..., None]] = {"coverage": coverage, "picture": picture}

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConditionWarning)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
