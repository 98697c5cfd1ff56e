"""How often the intervals of off-policy evaluation contain the true value: for docs/offline.md.

    python -m benchmarks.off_policy coverage|value|compare|picture

The problems are random Garnets, whose values are known exactly. Nothing was chosen with the seeds
that are used here.
"""

from __future__ import annotations

import math
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
from rblspi.data import Transitions
from rblspi.features import OneHot, Polynomial, RBFGrid
from rblspi.model.posterior import ConditionWarning
from rblspi.offline import LSTD, policy_value
from rblspi.offline.comparison import compare
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


def values(problems: str = "100") -> None:
    """Coverage and width of `policy_value` alone, also with a discount near 1."""
    print("| log | discount | coverage of 95% | mean width | width that the errors need |")
    print("|---|---|---|---|---|")
    for name, (share, basis) in LOGS.items():
        for discount in (0.9, 0.99):
            found = []
            for seed in range(FRESH, FRESH + int(problems)):
                rng = np.random.default_rng(seed)
                garnet = Garnet.random(rng, STATES, ACTIONS, 3)
                log, _ = garnet.log(rng, 200, 50, garnet.following(share))
                value = policy_value(
                    *(log, garnet.act, basis, ACTIONS),
                    discount=discount,
                    observation_space=gym.spaces.Discrete(STATES),
                )
                true = float(garnet.values(discount).mean())
                found.append((true, value.mean, value.low, value.high))
            truth, mean, low, high = np.array(found).T
            held = share_interval(int(((low <= truth) & (truth <= high)).sum()), len(found))
            needed = 2 * 1.96 * float(np.sqrt(np.mean((mean - truth) ** 2)))
            print(
                f"| {name} | {discount} | {held.mean:.0%} ({held.low:.0%} to {held.high:.0%}) | "
                f"{np.mean(high - low):.2f} | {needed:.2f} |",
                flush=True,
            )


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


# Comparison with a baseline -----------------------------------------------------------------


def inventory(rng: np.random.Generator) -> Garnet:
    """Stock of 0 to 10, orders of 0 to 4; the policy orders up to a random level."""
    demand = rng.uniform(1.5, 3.0)
    probabilities, rewards = np.zeros((11, 5, 11)), np.zeros((11, 5))
    likely = np.array([demand**d * math.exp(-demand) / math.factorial(d) for d in range(30)])
    for stock, order in np.ndindex(11, 5):
        held = min(stock + order, 10)
        after = np.maximum(held - np.arange(30), 0)
        np.add.at(probabilities[stock, order], after, likely / likely.sum())
        rewards[stock, order] = (
            4 * (likely @ (held - after)) - order - 2 * (order > 0) - 0.2 * stock
        )
    return Garnet(probabilities, rewards, order_up_to(rng.integers(3, 9)))


def order_up_to(level: int) -> np.ndarray:
    return np.clip(level - np.arange(11), 0, 4)


def changed(garnet: Garnet, rng: np.random.Generator) -> np.ndarray:
    """The policy with other actions in some states."""
    states = rng.choice(len(garnet.policy), rng.integers(1, len(garnet.policy) + 1), replace=False)
    other = garnet.policy.copy()
    other[states] = rng.integers(garnet.rewards.shape[1], size=len(states))
    return other


def learnt(garnet: Garnet, log: Transitions) -> np.ndarray:
    """A policy that five steps of policy iteration find in a log."""
    actions, space = garnet.rewards.shape[1], gym.spaces.Discrete(len(garnet.policy))
    policy = garnet.policy
    for _ in range(5):
        q = LSTD(OneHot(), actions, discount=DISCOUNT, ridge=1.0, observation_space=space)
        q.fit(log, lambda s, policy=policy: policy[s])
        policy = q.predict(garnet.states).argmax(axis=1)
    return policy


def best(garnet: Garnet) -> Garnet:
    """The same problem with the best policy, so that no other is better."""
    while True:
        policy = garnet.action_values(DISCOUNT).argmax(axis=1)
        if (policy == garnet.policy).all():
            return garnet
        garnet = garnet._replace(policy=policy)


def comparison(problem: str, how: str, baseline: str, seed: int) -> tuple[float, bool]:
    """The true difference of a policy from the baseline, and whether it would be deployed."""
    rng = np.random.default_rng(seed)
    garnet = Garnet.random(rng, 10, 3, 3) if problem == "Garnet" else inventory(rng)
    garnet = best(garnet) if baseline == "the best policy" else garnet
    logged = baseline == "the log's policy"
    chosen, basis = garnet.following(0.5), OneHot()
    if how.endswith("basis too small"):
        basis = Pairs() if problem == "Garnet" else Polynomial(2)
    log, _ = garnet.log(rng, 100, 20, chosen)
    given = log.rows(0, log.size // 2) if how == "learnt from other episodes" else log
    other = changed(garnet, rng) if how.startswith("changed") else learnt(garnet, given)
    compared = log.rows(log.size // 2, log.size) if given is not log else log
    found = compare(
        *(lambda s: other[s], None if logged else garnet.act, compared),
        *(basis, garnet.rewards.shape[1]),
        discount=DISCOUNT,
        observation_space=gym.spaces.Discrete(len(garnet.policy)),
    )
    true = garnet._replace(policy=other).values(DISCOUNT)
    true = true - garnet.values(DISCOUNT, chosen if logged else None)
    return float(true.mean()), found.deploy


#: how the policy arises, the baseline, and the number of logs of each problem
COMPARISONS = (
    ("changed at random", "the log's policy", 150),
    ("changed at random", "another policy", 150),
    ("learnt from other episodes", "the log's policy", 50),
    ("learnt from other episodes", "another policy", 50),
    ("learnt from other episodes", "the best policy", 100),
    ("learnt from the same episodes", "another policy", 50),
    ("learnt from the same episodes", "the best policy", 100),
    ("changed at random, basis too small", "another policy", 100),
)


def comparisons() -> None:
    """How often `compare` would deploy a policy that is better, and one that is not."""
    print("| policy | baseline | problem | logs | better | of these deployed | wrongly deployed |")
    print("|---|---|---|---|---|---|---|")
    for number, (how, baseline, logs) in enumerate(COMPARISONS):
        for problem in ("Garnet", "inventory"):
            first = FRESH + 10_000 * (number + 1) + (5000 if problem == "inventory" else 0)
            seeds = range(first, first + logs)
            results = np.array([comparison(problem, how, baseline, seed) for seed in seeds])
            better, deployed = results[:, 0] > 1e-9, results[:, 1] > 0.0
            cells = len(seeds), better.sum(), (better & deployed).sum(), (deployed & ~better).sum()
            print(
                f"| {how} | {baseline} | {problem} |", " | ".join(map(str, cells)), "|", flush=True
            )


COMMANDS: dict[str, Callable[..., None]] = {
    "coverage": coverage,
    "value": values,
    "compare": comparisons,
    "picture": picture,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConditionWarning)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
