"""How many episodes it takes to learn a chain of N states: RLSVI against random actions.

    python -m benchmarks.chain_length FILE [SEEDS]

The result of the paper of RLSVI, on the N-chain: learning takes a number of episodes that grows
like a power of the length if value functions are sampled, and exponentially if actions are. A chain
is learnt after the first episode at whose end the best estimate has at least half of the best
return, once the reward of the other end was seen.

Every finished run is a line of FILE, and is not made again. Seeds are from 1000 on. The figure is
written to docs/images/chain-length.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
from matplotlib.figure import Figure

from rblspi import RLSVI, Agent, OnlineLSPI
from rblspi.environments.n_chain import MORE_STEPS
from rblspi.plotting.style import BLACK, BLUE, GREY, ORANGE, save, style

FIRST = 1000
#: a run that has not learnt after so many episodes is given up, and counts as if it then had
LONGEST = 5000


class Learner(NamedTuple):
    """An agent for a chain of a length, and the lengths it is asked for."""

    make: Callable[[Any, int, int], Agent]  # environment, length, seed
    lengths: tuple[int, ...]
    color: str


def _dithering(epsilon: float) -> Callable[[Any, int, int], Agent]:
    settings: dict[str, Any] = {"epsilon": epsilon, "epsilon_decay": 1.0, "on_policy": False}
    return lambda env, length, seed: OnlineLSPI(env, update_every="episode", seed=seed, **settings)


OURS = "RLSVI, finite horizon"
LEARNERS = {
    OURS: Learner(
        lambda env, length, seed: RLSVI(env, horizon=length + MORE_STEPS, discount=1.0, seed=seed),
        (4, 6, 8, 12, 16, 24),
        BLUE,
    ),
    "epsilon = 1": Learner(_dithering(1.0), (4, 6, 8, 10, 12, 14), ORANGE),
    "epsilon = 0.5": Learner(_dithering(0.5), (4, 5, 6, 7, 8), GREY),
    "epsilon = 0.1": Learner(_dithering(0.1), (3, 4, 5), BLACK),
}


def greedy_return(agent: Agent, env: gym.Env[Any, Any]) -> float:
    """The return of an episode by the best estimate; the chain leaves nothing to chance."""
    observation, _ = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        action, _ = agent.predict(observation, deterministic=True)
        observation, reward, _, ended, _ = env.step(int(action))
        total += float(reward)
    return total


def run(name: str, length: int, seed: int) -> dict[str, Any]:
    """Learn until the chain is learnt."""
    env = gym.make("rblspi/NChain-v0", length=length)
    goal = 0.5 * env.unwrapped.optimal_return()  # type: ignore[attr-defined]
    agent, trial = LEARNERS[name].make(env, length, seed), gym.make(env.spec)
    start = time.process_time()

    def learnt(agent: Agent) -> bool:
        return agent.episodes[:, 1].max() >= 1.0 and greedy_return(agent, trial) >= goal

    agent.learn(episodes=LONGEST, callback=lambda a: not learnt(a))
    return {
        "agent": name,
        "length": length,
        "seed": seed,
        "episodes": len(agent.episodes) if learnt(agent) else None,
        "seconds": time.process_time() - start,
    }


class Growth(NamedTuple):
    """log episodes = a + p log N, or a + c N: slopes, and what is left of the variance."""

    power: float
    power_residual: float
    rate: float
    rate_residual: float

    @classmethod
    def of(cls, lengths: np.ndarray, episodes: np.ndarray) -> Growth:
        """Both lines by least squares."""
        found: list[float] = []
        for x in (np.log(lengths), lengths):
            line = np.polyfit(x, np.log(episodes), 1)
            found += [line[0], float(np.var(np.log(episodes) - np.polyval(line, x)))]
        return cls(*found)


def judged(rows: np.ndarray, draws: int = 1000) -> tuple[Growth, np.ndarray]:
    """The growth of medians over seeds, and its bootstrap draws; rows: length, seed, episodes."""
    rng, seeds = np.random.default_rng(0), np.unique(rows[:, 1])

    def growth(chosen: np.ndarray) -> Growth:
        lengths = np.unique(rows[:, 0])
        table = {(n, s): e for n, s, e in rows}
        values = [np.median([table[n, s] for s in chosen if (n, s) in table]) for n in lengths]
        return Growth.of(lengths, np.array(values))

    return growth(seeds), np.array([growth(rng.choice(seeds, len(seeds))) for _ in range(draws)])


def quartiles(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lengths, and the quartiles of episodes for each of them."""
    lengths = np.unique(rows[:, 0])
    of_length = [np.quantile(rows[rows[:, 0] == n, 2], (0.25, 0.5, 0.75)) for n in lengths]
    return lengths, np.array(of_length)


def draw(tables: dict[str, np.ndarray]) -> None:
    """Exponential growth is a line on the left, a power on the right."""
    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for name, rows in tables.items():
            lengths, found = quartiles(rows)
            color = LEARNERS[name].color
            for axis in axes:
                axis.fill_between(lengths, *found[:, ::2].T, color=color, alpha=0.2)
                axis.plot(lengths, found[:, 1], "o-", color=color, label=name)
        axes[0].set(yscale="log", xlabel="states N", ylabel="episodes to learn")
        axes[1].set(xscale="log", xlabel="states N (logarithmic)")
        axes[1].set_xticks([4, 8, 16, 24], ["4", "8", "16", "24"])
        axes[1].minorticks_off()
        axes[0].legend()
        save(figure, Path("docs/images/chain-length"))


def growth_of(name: str, rows: np.ndarray) -> Growth | None:
    """Print a line of the table; no growth can be told from runs that were given up."""
    lengths, found = quartiles(rows)
    medians = zip(lengths, found[:, 1], strict=True)
    words = ", ".join(f"{n:.0f}: {m:.4g}" for n, m in medians)
    if found[:, 1].max() >= LONGEST:
        print(f"| {name} | {words} | {len(rows)} | | |")
        return None
    growth, draws = judged(rows)
    p, c = (np.quantile(draws[:, place], (0.025, 0.975)) for place in (0, 2))
    print(
        f"| {name} | {words} | {len(rows)} | {growth.power:.2f} ({p[0]:.2f} to {p[1]:.2f}) | "
        f"{growth.rate:.3f} ({c[0]:.3f} to {c[1]:.3f}) |"
    )
    return growth


def report(path: Path) -> None:
    """Print the table and the verdict, and draw the figure."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    tables = {
        name: np.array(
            [
                (x["length"], x["seed"], x["episodes"] or LONGEST)
                for x in lines
                if x["agent"] == name
            ]
        )
        for name in LEARNERS
    }
    draw(tables)
    print("| agent | N: episodes to learn it, median | runs | p, of N^p | c, of exp(c N) |")
    print("|---|---|---|---|---|")
    found = {name: growth_of(name, rows) for name, rows in tables.items()}
    like_a_power = {
        name: growth.power_residual < growth.rate_residual
        for name, growth in found.items()
        if growth
    }
    ours = like_a_power.pop(OURS)
    print(
        f"\nEpisodes of RLSVI grow like a power of the length rather than exponentially: "
        f"{'holds' if ours else 'does not hold'}.\nThose of epsilon-greedy agents grow "
        f"exponentially: {'holds' if not any(like_a_power.values()) else 'does not hold'}."
    )
    for name, growth in found.items():
        if growth:
            print(
                f"  {name}: a power leaves {growth.power_residual:.4f} of the variance of "
                f"logarithms, an exponential {growth.rate_residual:.4f}"
            )


def main() -> None:
    """Make the runs that are missing, and print the table."""
    path, seeds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    done = path.read_text().splitlines() if path.exists() else []
    known = {(x["agent"], x["length"], x["seed"]) for x in map(json.loads, done)}
    with path.open("a") as file:
        for seed in range(FIRST, FIRST + seeds):
            for name, learner in LEARNERS.items():
                for length in learner.lengths:
                    if (name, length, seed) not in known:
                        print(json.dumps(run(name, length, seed)), file=file, flush=True)
            print(f"seed {seed} is done", file=sys.stderr)
    report(path)


if __name__ == "__main__":
    main()
