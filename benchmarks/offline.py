"""What fits to logged data achieve: the numbers of docs/offline.md.

    python benchmarks/offline.py chain|balance|large|pessimism|value

Each prints a table. Settings were chosen on data sets with the seeds 1000 to 1009; the numbers
reported are those of the seeds 0 to 19, or as the table says.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np

from rblspi.agents import FittedPolicy
from rblspi.datasets import ParquetData, ParquetWriter, collect
from rblspi.environments.chain_walk import ChainWalk
from rblspi.estimators import BLSPI, BLSTD, LSPI, LSTD, ConvergenceWarning, policy_value
from rblspi.features import OneHot, Polynomial, RBFGrid
from rblspi.transitions import Transitions

CHAIN = Polynomial(4, scale=10, low=-1, high=19)
OPTIMAL = np.array([0] * 10 + [1] * 10)
STATES = np.arange(20)


def gathered(env: Any, **arguments: Any) -> Transitions:
    chunks = [chunk.transitions for chunk in collect(env, **arguments)]
    return Transitions._make(np.concatenate(column) for column in zip(*chunks, strict=True))


def as_agent(env: str, fitted: Any, seed: int) -> FittedPolicy:
    names = ("discount", "ridge", "prior_precision", "noise_precision", "pessimism")
    settings = {name: getattr(fitted, name) for name in names if hasattr(fitted, name)}
    weights = (fitted.statistics_, fitted.weights_)
    return FittedPolicy.from_fit(env, fitted.basis, *weights, seed=seed, **settings)


def play(env: str, fitted: Any, episodes: int = 20, seed: int = 77) -> np.ndarray:
    """Lengths of episodes of a fitted policy, in compiled code."""
    agent = as_agent(env, fitted, seed)
    _, record = agent.session.run(agent.functions, agent.state, agent.rng, 2**62, episodes)
    return record[:, 0]


# The chain, through a file ------------------------------------------------------------------


def chain(sets: int = 50) -> None:
    """How often both algorithms find the best policy of the chain, read from Parquet."""
    print(f"| seeds | sets | LSPI ends there | LSPI visits it | BLSPI ends there | visits it |")
    print("|---|---|---|---|---|---|")
    for block in range(6):
        counts = np.zeros(4, int)
        for i in range(sets):
            counts += _chain_set(seed=block * sets + i)
        print(f"| {block * sets} to {block * sets + sets - 1} | {sets} | " + " | ".join(map(str, counts)) + " |")


def _chain_set(seed: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.parquet"
        with ParquetWriter(path) as writer:
            for chunk in collect("rblspi/ChainWalk-v0", 5000, seed=seed):
                writer.write(*chunk)
        data = ParquetData(path, actions=2)
        found = []
        for fitted in (LSPI(CHAIN, 2, discount=0.9), BLSPI(CHAIN, 2, discount=0.9)):
            fitted.fit(data)
            x = fitted.features_(STATES)
            visited = [
                (x @ i.weights.reshape(2, -1).T).argmax(axis=1) for i in fitted.history_
            ]
            found += [
                (fitted.act(STATES) == OPTIMAL).all(),
                any((policy == OPTIMAL).all() for policy in visited),
            ]
    return np.array(found, int)


# Balancing ----------------------------------------------------------------------------------


class Task(NamedTuple):
    env: str
    limit: int
    lspi: Any
    blspi: Any


def _pole(cells: tuple[int, ...]) -> RBFGrid:
    high = (2.4, 2.5, math.pi / 6, 2.5)
    return RBFGrid(cells, low=tuple(-bound for bound in high), high=high)


PENDULUM = RBFGrid(3, low=(-math.pi / 4, -1.0), high=(math.pi / 4, 1.0), width=1.5)
TASKS = {
    "pendulum": Task(
        "rblspi/InvertedPendulum-v0",
        3000,
        LSPI(PENDULUM, 3, discount=0.95, ridge=1e-3),
        BLSPI(PENDULUM, 3, discount=0.95, prior_precision=1e-6, noise_precision=1.0),
    ),
    "cart pole": Task(
        "rblspi/CartPole-v0",
        500,
        LSPI(_pole((2, 3, 3, 3)), 2, discount=0.9, ridge=10.0),
        BLSPI(_pole((2, 2, 3, 3)), 2, discount=0.95, prior_precision=0.5, noise_precision=1.0),
    ),
}


def balance(sets: int = 20) -> None:
    """The share of data sets whose policy balances to the limit in 20 episodes of 20."""
    print("| domain | random episodes | transitions | LSPI | BLSPI | mean steps, LSPI | BLSPI |")
    print("|---|---|---|---|---|---|---|")
    for name, task in TASKS.items():
        for episodes in (100, 300, 1000):
            lengths, rows = [], []
            for seed in range(sets):
                data = gathered(task.env, episodes=episodes, seed=seed)
                rows.append(data.size)
                lengths.append([play(task.env, e.fit(data)) for e in (task.lspi, task.blspi)])
            steps = np.array(lengths)
            ends = (steps >= task.limit).all(axis=2).sum(axis=0)
            means = steps.mean(axis=(0, 2))
            print(
                f"| {name} | {episodes} | {np.mean(rows):,.0f} | {ends[0]} of {sets} | "
                f"{ends[1]} of {sets} | {means[0]:.0f} | {means[1]:.0f} |",
                flush=True,
            )


# Pessimism ----------------------------------------------------------------------------------


def pessimism(sets: int = 20, rare: float = 0.002, episodes: int = 300) -> None:
    """The pendulum from logs in which the middle action hardly occurs."""
    env = "rblspi/InvertedPendulum-v0"
    estimators = {f"LSPI, ridge {ridge:g}": LSPI(PENDULUM, 3, discount=0.95, ridge=ridge)
                  for ridge in (1e-6, 1e-4, 1e-2)}
    estimators |= {
        f"BLSPI, pessimism {c:g}": BLSPI(
            PENDULUM, 3, discount=0.95, prior_precision=1e-5, noise_precision=10.0, pessimism=c
        )
        for c in (0.0, 0.1, 0.3, 1.0)
    }
    steps = np.zeros((sets, len(estimators)))
    counts = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        chances = ((1 - rare) / 2, rare, (1 - rare) / 2)
        data = gathered(
            env, episodes=episodes, seed=seed, policy=lambda _: int(rng.choice(3, p=chances))
        )
        counts.append(int((data.actions == 1).sum()))
        for i, estimator in enumerate(estimators.values()):
            steps[seed, i] = play(env, estimator.fit(data)).mean()
    print(f"{np.mean(counts):.1f} transitions with the middle action on average")
    best = steps[:, 2]
    print("| | mean steps of 3000 | better than LSPI with ridge 0.01, sets | mean difference |")
    print("|---|---|---|---|")
    for i, name in enumerate(estimators):
        difference = steps[:, i] - best
        half = 2.09 * difference.std(ddof=1) / math.sqrt(sets)
        print(
            f"| {name} | {steps[:, i].mean():.0f} | {(difference > 0).sum()} of {sets} | "
            f"{difference.mean():.0f} ± {half:.0f} |"
        )


# Twenty million transitions -----------------------------------------------------------------


def large(rows: int = 20_000_000) -> None:
    """One LSTD pass over a file, beside the same pass in memory, each in a process of its own."""
    import subprocess
    import sys

    folder = Path(tempfile.mkdtemp(prefix="rblspi-large-"))
    try:
        path = folder / "car.parquet"
        start = time.perf_counter()
        with ParquetWriter(path) as writer:
            for chunk in collect("rblspi/MountainCar-v0", rows, seed=0):
                writer.write(*chunk)
        seconds = time.perf_counter() - start
        size = path.stat().st_size / 2**20
        print(f"{rows:,} transitions collected and written in {seconds:.1f} s, {size:,.0f} MB")
        for how in ("file", "memory", "file", "memory"):
            code = f"from benchmarks.offline import one_pass; one_pass({str(path)!r}, {how!r})"
            subprocess.run([sys.executable, "-c", code], check=True)
    finally:
        shutil.rmtree(folder)


def one_pass(path: str, how: str) -> None:
    import resource

    data: Any = ParquetData(path, actions=3)
    env = gym.make("rblspi/MountainCar-v0")
    lstd = LSTD(RBFGrid(8), discount=0.99, observation_space=env.observation_space)
    small = next(iter(data)).rows(0, 100)
    lstd.fit(small)  # compiles
    if how == "memory":
        data = Transitions._make(np.concatenate(c) for c in zip(*data, strict=True))
    start = time.perf_counter()
    lstd.fit(data)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    rows = int(lstd.statistics_.count.sum())
    print(
        f"{how}: {rows:,} transitions in {seconds:.2f} s, {rows / seconds / 1e6:.2f} million a "
        f"second, peak memory of the process {peak:,.0f} MB, first weight {lstd.weights_[0]:.12g}",
        flush=True,
    )


# Values of other policies -------------------------------------------------------------------


def value(sets: int = 200) -> None:
    """How often intervals for the value of another policy hold the true one."""
    print("| domain | basis | data | discount | true | mean estimate | bias / std | coverage of 95% | BLSTD |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rows in (500, 2000, 5000):
        for basis in (OneHot(), CHAIN):
            _chain_coverage(basis, rows, sets)
    for episodes in (100, 300, 1000):
        for basis in (_pole((3, 3, 3, 3)), Polynomial(4, low=(-2.4, -2.5, -0.53, -2.5), high=(2.4, 2.5, 0.53, 2.5))):
            _pole_coverage(basis, episodes, max(sets // 2, 20))


def _chain_coverage(basis: Any, rows: int, sets: int) -> None:
    exact = ChainWalk().exact_action_values(OPTIMAL, 0.9)
    true = float(exact[STATES, OPTIMAL].mean())
    logs = (gathered("rblspi/ChainWalk-v0", transitions=rows, seed=seed) for seed in range(sets))
    space = gym.make("rblspi/ChainWalk-v0").observation_space
    _coverage(
        f"chain | {type(basis).__name__} | {rows} rows | 0.9",
        *(logs, lambda s: OPTIMAL[s], basis, 2, 0.9, true, STATES, space),
    )


def lean(observations: np.ndarray) -> np.ndarray:
    """Push the cart to where the pole leans and moves to."""
    return (observations[..., 2] + 0.2 * observations[..., 3] > 0).astype(int)


def _pole_coverage(basis: Any, episodes: int, sets: int, discount: float = 0.9) -> None:
    env = "rblspi/CartPole-v0"
    true, firsts = _monte_carlo(env, discount)
    logs = (gathered(env, episodes=episodes, seed=seed) for seed in range(sets))
    _coverage(
        f"cart pole | {type(basis).__name__} | {episodes} episodes | {discount}",
        *(logs, lean, basis, 2, discount, true, None, gym.make(env).observation_space),
    )


def _monte_carlo(env: str, discount: float, episodes: int = 2000) -> tuple[float, None]:
    data = gathered(env, episodes=episodes, seed=12345, policy=lambda s: int(lean(s)))
    ends = np.flatnonzero(data.terminated | _cut(data))
    values, start = [], 0
    for end in ends:
        rewards = data.rewards[start : end + 1]
        values.append(float(rewards @ discount ** np.arange(len(rewards))))
        start = end + 1
    return float(np.mean(values)), None


def _cut(data: Transitions) -> np.ndarray:
    follows = (data.next_observations[:-1] == data.observations[1:]).all(axis=1)
    return np.append(~follows, True)


def _coverage(
    name: str,
    logs: Iterator[Transitions],
    policy: Callable[[np.ndarray], np.ndarray],
    basis: Any,
    actions: int,
    discount: float,
    true: float,
    firsts: Any,
    space: Any,
) -> None:
    means, stds, held, held_by_posterior = [], [], [], []
    for data in logs:
        found = policy_value(
            data, policy, basis, actions, discount=discount,
            first_observations=firsts, observation_space=space,
        )
        means.append(found.mean)
        stds.append(found.std)
        held.append(found.low <= true <= found.high)
        held_by_posterior.append(_posterior_holds(data, policy, basis, actions, discount, true, firsts, space))
    error = np.mean(means) - true
    print(
        f"| {name} | {true:.4f} | {np.mean(means):.4f} | {error / np.mean(stds):+.2f} | "
        f"{np.mean(held):.1%} | {np.mean(held_by_posterior):.1%} |",
        flush=True,
    )


def _posterior_holds(data: Any, policy: Any, basis: Any, actions: int, discount: float, true: float, firsts: Any, space: Any) -> bool:
    """BLSTD with the noise that the temporal differences of LSTD show."""
    lstd = LSTD(basis, actions, discount=discount, observation_space=space).fit(data, policy)
    after = lstd.predict(data.next_observations, policy(data.next_observations))
    target = data.rewards + discount * np.where(data.terminated, 0.0, after)
    noise = float(np.var(target - lstd.predict(data.observations, data.actions)))
    blstd = BLSTD(
        basis, actions, discount=discount, observation_space=space,
        prior_precision=1e-6, noise_precision=1.0 / max(noise, 1e-9),
    ).fit(data, policy)
    if firsts is None:
        firsts = data.observations[np.append(True, data.terminated[:-1])]
    x = blstd.features_(firsts)
    z = np.zeros((len(x), actions, x.shape[1]))
    z[np.arange(len(x)), policy(firsts)] = x
    mean = z.reshape(len(x), -1).mean(axis=0)
    spread = math.sqrt(mean @ blstd.posterior_.covariance() @ mean)
    return abs(mean @ blstd.weights_ - true) <= 1.96 * spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = {f.__name__: f for f in (chain, balance, large, pessimism, value)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--size", type=int, help="data sets, or transitions of `large`")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    commands[arguments.command](*([] if arguments.size is None else [arguments.size]))


if __name__ == "__main__":
    main()
