"""Results of fits to logged data: the numbers in docs/offline.md.

    python benchmarks/offline.py chain|figure|balance|large|pessimism|value

Each command prints a table. The settings were chosen on data sets with the seeds 1000 to 1009; the
reported data sets have other seeds.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numba
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.intervals import share_interval
from rblspi.core.kernels import dot
from rblspi.data import ParquetWriter, Transitions, read_log
from rblspi.data.transitions import concatenated
from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot, Polynomial, RBFGrid
from rblspi.model.posterior import ConditionWarning
from rblspi.offline import BLSPI, LSPI, LSTD, ConvergenceWarning, PolicyValue, policy_value
from rblspi.policies import LinearPolicy
from rblspi.rollout import collect
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition
from rblspi.rollout.session import Session

CHAIN = Polynomial(4, scale=10, low=-1, high=19)
OPTIMAL = np.array([0] * 10 + [1] * 10)
STATES = np.arange(20)


def gathered(env: Any, **arguments: Any) -> Transitions:
    chunks = list(collect(env, **arguments))
    return concatenated(chunks)


# A fitted policy in compiled code -----------------------------------------------------------


class Player(NamedTuple):
    """A policy that acts in the compiled loop and does not learn."""

    weights: np.ndarray  # by action (actions, n)
    covariances: np.ndarray  # c^2 S_aa (actions, n, n); empty without pessimism

    @classmethod
    def of(cls, policy: LinearPolicy) -> Player:
        """The player of a policy."""
        weights, n = policy.weights_by_action, policy.features.size
        if policy.posterior is None or not policy.pessimism:
            return cls(weights, np.zeros((0, n, n)))
        blocks = policy.posterior.covariance().reshape(policy.actions, n, policy.actions, n)
        diagonal = [blocks[a, :, a] for a in range(policy.actions)]
        return cls(weights, np.ascontiguousarray(policy.pessimism**2 * np.array(diagonal)))


@jit
def act(player: Player, x: np.ndarray, allowed: np.ndarray, rng: Any) -> int:
    """argmax_a x'm_a - (x' c^2 S_aa x)^1/2; ties go to the first action."""
    best, highest = 0, -np.inf
    for a in range(len(player.weights)):
        value = dot(player.weights[a], x)
        if len(player.covariances) > 0:
            variance = 0.0
            for i in range(len(x)):
                variance += x[i] * dot(player.covariances[a, i], x)
            value -= np.sqrt(max(variance, 0.0))
        if value > highest:
            best, highest = a, value
    return best


@jit
def observe(player: Player, transition: Transition, rng: Any) -> None:
    """Learn nothing."""


PLAYER = AgentFunctions(act, observe, numba.typeof(Player(np.zeros((1, 1)), np.zeros((0, 1, 1)))))


def play(env: str, fitted: Any, episodes: int = 20, seed: int = 77) -> np.ndarray:
    """The lengths of episodes of a fitted policy."""
    policy = fitted.policy(env)
    agent_seed, environment_seed, _ = np.random.SeedSequence(seed).spawn(3)
    session = Session(
        gym.make(env), policy.features, int(environment_seed.generate_state(1)[0] >> 1)
    )
    record, counts = np.empty((episodes, 2)), np.zeros(2, np.int64)
    rng = np.random.default_rng(agent_seed)
    session.run(PLAYER, Player.of(policy), rng, 2**62, record, counts)
    return record[:, 0]


# The chain, through a file ------------------------------------------------------------------


def chain(sets: int = 50) -> None:
    """How often both algorithms find the best policy of the chain, with data from Parquet."""
    print("| seeds | LSPI ends there | visits it | without mixtures | BLSPI ends there | ", end="")
    print("visits it | without mixtures |\n|---|---|---|---|---|---|---|")
    for first in range(0, 6 * sets, sets):
        counts = sum(_chain_set(seed) for seed in range(first, first + sets))
        print(
            "|", " | ".join([f"{first} to {first + sets - 1}", *map(str, counts)]), "|", flush=True
        )


def _chain_fits(seed: int) -> tuple[LSPI, BLSPI]:
    """Both algorithms on 5000 samples of one random episode, read from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.parquet"
        with ParquetWriter(path) as writer:
            for chunk in collect("rblspi/ChainWalk-v0", 5000, seed=seed):
                writer.write(chunk)
        data = read_log(path, actions=2)
        return LSPI(CHAIN, 2, discount=0.9).fit(data), BLSPI(CHAIN, 2, discount=0.9).fit(data)


def _values(fitted: Any) -> np.ndarray:
    """Action values at every iteration, shape (iterations, states, actions)."""
    x = fitted.features_(STATES)
    return np.stack([x @ i.weights.reshape(2, -1).T for i in fitted.history_])


def _chain_set(seed: int) -> np.ndarray:
    """For each algorithm, whether the best policy is the last, any, the last before a mixture."""
    found = []
    for fitted in _chain_fits(seed):
        best = (_values(fitted).argmax(axis=2) == OPTIMAL).all(axis=1)
        mixtures = [i for i, iteration in enumerate(fitted.history_) if iteration.mixed > 1]
        before = mixtures[0] - 1 if mixtures else -1
        found += [(fitted.act(STATES) == OPTIMAL).all(), best.any(), best[before]]
    return np.array(found, int)


def figure(seed: int = 0) -> None:
    """Draw the paper's figure of the chain, in docs/images."""
    from rblspi.experiments.results import CurveResult, FigureResult
    from rblspi.plotting import style
    from rblspi_paper import chain as drawing
    from rblspi_paper.figures import FIGURES

    chosen = FIGURES["chain"]
    fits = dict(zip(("lspi", "blspi"), _chain_fits(seed), strict=True))
    record: Any = SimpleNamespace(seed=seed)
    results = [
        CurveResult(curve, (record,), {}, (_values(fits[curve.algorithm]),), True)
        for curve in chosen.curves
    ]
    with style.style():
        drawn = drawing.draw(FigureResult(chosen, results))
        print(*style.save(drawn, Path(__file__).parents[1] / "docs" / "images" / "offline-chain"))


# Balancing ----------------------------------------------------------------------------------


class Task(NamedTuple):
    """A domain, and the two estimators for it."""

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
    """In how many data sets the policy balances up to the limit in all of 20 episodes."""
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


def _rarely_middle(rare: float, seed: int) -> Callable[[Any], int]:
    rng = np.random.default_rng(seed)
    chances = ((1 - rare) / 2, rare, (1 - rare) / 2)
    return lambda _: int(rng.choice(3, p=chances))


def pessimism(sets: int = 20, rare: float = 0.002, episodes: int = 300) -> None:
    """The pendulum, from logs in which the middle action is rare."""
    env = "rblspi/InvertedPendulum-v0"
    estimators = {
        f"LSPI, ridge {ridge:g}": LSPI(PENDULUM, 3, discount=0.95, ridge=ridge)
        for ridge in (1e-6, 1e-4, 1e-2)
    }
    estimators |= {
        f"BLSPI, pessimism {c:g}": BLSPI(
            PENDULUM, 3, discount=0.95, prior_precision=1e-5, noise_precision=10.0, pessimism=c
        )
        for c in (0.0, 0.1, 0.3, 1.0)
    }
    steps = np.zeros((sets, len(estimators)))
    counts = []
    for seed in range(sets):
        data = gathered(env, episodes=episodes, seed=seed, policy=_rarely_middle(rare, seed))
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
    """One LSTD pass over a file and one over memory, each in its own process."""
    import subprocess
    import sys

    folder = Path(tempfile.mkdtemp(prefix="rblspi-large-"))
    try:
        path = folder / "car.parquet"
        start = time.perf_counter()
        with ParquetWriter(path) as writer:
            for chunk in collect("rblspi/MountainCar-v0", rows, seed=0):
                writer.write(chunk)
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

    data: Any = read_log(path, actions=3)
    env = gym.make("rblspi/MountainCar-v0")
    lstd = LSTD(RBFGrid(8), discount=0.99, observation_space=env.observation_space)
    small = next(iter(data)).rows(0, 100)
    lstd.fit(small)  # compiles
    if how == "memory":
        data = concatenated(list(data))
    start, busy = time.perf_counter(), time.process_time()
    lstd.fit(data)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    rows = int(lstd.statistics_.count.sum())
    value = float(lstd.predict(np.array([-0.5, 0.0])))
    print(
        f"{how}: {rows:,} transitions in {seconds:.1f} s ({busy:.1f} s of processor time), "
        f"{rows / seconds / 1e6:.2f} million a second, peak memory of the process {peak:,.0f} MB, "
        f"value at the start {value:.9g}",
        flush=True,
    )


# Values of other policies -------------------------------------------------------------------


#: the first seed of `value`; the form of the intervals was chosen on smaller seeds
FRESH = 5000


def value(sets: int = 200) -> None:
    """How often the interval for the value of another policy contains the true value."""
    print(
        "| domain | basis | data | discount | sets | true | mean estimate | its std | mean width | "
        "coverage of 95% | by the posterior alone | by sampling alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for rows in (500, 2000, 5000):
        for basis in (OneHot(), CHAIN):
            _chain_coverage(basis, rows, sets)
    true = {discount: _monte_carlo("rblspi/CartPole-v0", discount) for discount in (0.9, 0.95)}
    for discount in (0.9, 0.95):
        for episodes in (100, 300, 1000):
            for basis in (_pole((2, 3, 3, 3)), _pole((3, 3, 3, 3)), _pole((2, 3, 5, 5))):
                _pole_coverage(basis, episodes, sets // 4, discount, true[discount])


def _chain_coverage(basis: Any, rows: int, sets: int) -> None:
    exact = ChainWalk().exact_action_values(OPTIMAL, 0.9)
    seeds = range(FRESH, FRESH + sets)
    logs = (gathered("rblspi/ChainWalk-v0", transitions=rows, seed=seed) for seed in seeds)
    _coverage(
        f"chain | {_short(basis)} | {rows} rows | 0.9",
        float(exact[STATES, OPTIMAL].mean()),
        (
            policy_value(
                *(data, lambda s: OPTIMAL[s], basis, 2),
                discount=0.9,
                first_observations=STATES,
                observation_space=ChainWalk().observation_space,
            )
            for data in logs
        ),
    )


def lean(observations: np.ndarray) -> np.ndarray:
    """Push the cart in the direction in which the pole leans; after a while it falls."""
    return (observations[..., 2] > 0).astype(int)


def _pole_coverage(basis: Any, episodes: int, sets: int, discount: float, true: float) -> None:
    env = "rblspi/CartPole-v0"
    seeds = range(FRESH, FRESH + sets)
    logs = (gathered(env, episodes=episodes, seed=seed) for seed in seeds)
    _coverage(
        f"cart pole | {_short(basis)} | {episodes} episodes | {discount}",
        true,
        (policy_value(data, lean, basis, 2, discount=discount) for data in logs),
    )


def _monte_carlo(env: str, discount: float, episodes: int = 5000) -> float:
    """The mean discounted return of the policy."""
    data = gathered(env, episodes=episodes, seed=12345, policy=lambda s: int(lean(s)))
    ends = np.flatnonzero(data.terminated | data.truncated) + 1
    returns = [
        float(rewards @ discount ** np.arange(len(rewards)))
        for rewards in np.split(data.rewards, ends[:-1])
    ]
    mean, error = np.mean(returns), np.std(returns) / math.sqrt(episodes)
    lengths = np.diff(np.append(0, ends)).mean()
    print(
        f"<!-- Monte Carlo, discount {discount}: {mean:.4f} ± {error:.4f}, {lengths:.0f} steps -->"
    )
    return float(mean)


def _coverage(name: str, true: float, found: Iterable[PolicyValue]) -> None:
    values = list(found)
    means = np.array([v.mean for v in values])
    width = np.mean([v.high - v.low for v in values])
    held = share_interval(sum(v.low <= true <= v.high for v in values), len(values))
    alone = [
        np.mean([abs(v.mean - true) <= 1.96 * getattr(v, f"{kind}_std") for v in values])
        for kind in ("posterior", "sampling")
    ]
    print(
        f"| {name} | {len(values)} | {true:.3f} | {means.mean():.3f} | {means.std():.3f} | "
        f"{width:.3f} | {held.mean:.0%} ({held.low:.0%} to {held.high:.0%}) | {alone[0]:.0%} | "
        f"{alone[1]:.0%} |",
        flush=True,
    )


def _short(basis: Any) -> str:
    if isinstance(basis, RBFGrid):
        cells = basis.cells if isinstance(basis.cells, tuple) else (basis.cells,)
        return "RBF " + "x".join(map(str, cells))
    return type(basis).__name__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = {f.__name__: f for f in (chain, figure, balance, large, pessimism, value)}
    parser.add_argument("command", choices=commands)
    parser.add_argument(
        "--size", type=int, help="data sets; transitions of `large`; the seed of `figure`"
    )
    arguments = parser.parse_args()
    for kind in (ConvergenceWarning, ConditionWarning):
        warnings.simplefilter("ignore", kind)
    commands[arguments.command](*([] if arguments.size is None else [arguments.size]))


if __name__ == "__main__":
    main()
