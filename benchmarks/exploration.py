"""Agents on problems that need deep exploration: the tables and the figure of docs/exploration.md.

    python -m benchmarks.exploration FILE [SEEDS] [AGENT or PROBLEM ...]

Every finished run is a line of FILE, and is not made again: stop and go on as you like. Where names
are given, only the runs of these agents on these problems are made; if they are all of one kind, on
all problems or of all agents. Seeds are from 1000 on, of the held swing-up from 5000 on; everything
was chosen with seeds below 100.
It prints what was reached and a ranking by regret, and draws docs/images/regret.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np

from benchmarks import regret
from rblspi import (
    CTBRL,
    LBRL,
    LSVIUCB,
    OPSRL,
    PSRL,
    RBLSPI,
    RLSVI,
    Agent,
    FittedRmax,
    OnlineLSPI,
    OptimisticLSVI,
    RmaxLSPI,
    evaluate,
)
from rblspi.environments.deep_sea import BAD
from rblspi.environments.river_swim import RiverSwim

FIRST = 1000
AGENTS: dict[str, type[Agent]] = {
    "OPSRL": OPSRL,
    "PSRL": PSRL,
    "LSVI-UCB": LSVIUCB,
    "Rmax-LSPI": RmaxLSPI,
    "RLSVI": RLSVI,
    "LBRL": LBRL,
    "CTBRL": CTBRL,
    "optimistic LSVI": OptimisticLSVI,
    "online LSPI": OnlineLSPI,
    "Fitted R-max": FittedRmax,
    "RBLSPI": RBLSPI,
}


class Problem(NamedTuple):
    """An environment, how long to learn in it, and what is measured."""

    measure: Callable[[Agent, int], float]  # NaN: never
    goal: str
    reached: Callable[[float], bool]
    id: str
    arguments: dict[str, Any]
    duration: int  # in episodes, or in steps where there are none
    agents: tuple[str, ...]
    seeds: int = 20
    first: int = FIRST
    varied: str = ""  # an argument that differs from seed to seed
    settings: Mapping[str, Any] = MappingProxyType({})  # of the agents, beside their defaults


def greedy_return(agent: Agent) -> float:
    """The return of an episode by the best estimate."""
    env = gym.make(agent.env.spec)
    observation, _ = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        action, _ = agent.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(int(action))
        total, ended = total + float(reward), terminated or truncated
    return total


def treasure(agent: Agent, episodes: int) -> float:
    """The first episode with the treasure, if the best estimate finds it in the end."""
    agent.learn(episodes=episodes)
    found = np.flatnonzero(agent.episodes[:, 1] > 0.5)
    return float(found[0] + 1) if len(found) and greedy_return(agent) > 0.5 else np.nan


def bad_share(agent: Agent, episodes: int) -> float:
    """The share of bad episodes among the last 100."""
    bad: list[float] = []
    agent.learn(episodes=episodes, callback=lambda a: bad.append(a.session.episode.state[BAD]))
    return float(np.mean(bad[-100:]))


def share_of_best(agent: Agent, steps: int) -> float:
    """The mean reward of the second half of the steps, as a share of the best policy's."""
    agent.learn(steps // 2)
    before = float(agent.session.episode.episode_return[0])
    agent.learn(steps // 2)
    gained = float(agent.session.episode.episode_return[0]) - before
    return gained / (steps // 2) / RiverSwim().optimal_average_reward()


def first_best(agent: Agent, episodes: int) -> float:
    """The first episode with the best return."""
    agent.learn(episodes=episodes)
    best = agent.env.unwrapped.optimal_return()  # type: ignore[attr-defined]
    found = np.flatnonzero(agent.episodes[:, 1] >= best - 1e-9)
    return float(found[0] + 1) if len(found) else np.nan


def opened(agent: Agent, episodes: int) -> float:
    """The first episode that opens the lock, if the best estimate opens it in the end."""
    agent.learn(episodes=episodes)
    lock: Any = agent.env.unwrapped
    found = np.flatnonzero(agent.episodes[:, 1] >= 1.0)
    chosen, _ = agent.predict(np.arange(lock.length), deterministic=True)
    return float(found[0] + 1) if len(found) and (chosen == lock.combination).all() else np.nan


def latest_return(agent: Agent, episodes: int) -> float:
    """The mean return of the last 20 episodes."""
    agent.learn(episodes=episodes)
    return float(agent.episodes[-20:, 1].mean())


def greedy_length(agent: Agent, steps: int) -> float:
    """The mean length of 20 episodes by the best estimate after so many steps."""
    return float(evaluate(agent.learn(steps), episodes=20).lengths.mean())


def _sea(size: int, episodes: int, **more: Any) -> Problem:
    goal = f"solved within {episodes:,} episodes"
    arguments = {"size": size}
    return Problem(
        *(treasure, goal, lambda x: x <= episodes, "rblspi/DeepSea-v0", arguments, episodes),
        **{"varied": "mapping_seed", **more},
    )


TABLES = ("OPSRL", "PSRL")
SMALL = ("OPSRL", "PSRL", "LSVI-UCB", "Rmax-LSPI", "RLSVI", "RBLSPI")
FAST = ("OPSRL", "PSRL", "LSVI-UCB", "Rmax-LSPI", "RBLSPI")
CONTINUOUS = (
    *("Fitted R-max", "optimistic LSVI", "CTBRL", "LBRL", "RLSVI", "LSVI-UCB", "Rmax-LSPI"),
    *("RBLSPI", "online LSPI"),
)
PROBLEMS = {
    "DeepSea 10": _sea(10, 100, agents=SMALL),
    "DeepSea 20": _sea(20, 300, agents=("OPSRL", "PSRL", "RBLSPI")),
    "DeepSea 30": _sea(30, 700, agents=TABLES),
    "DeepSea 50": _sea(50, 2000, agents=TABLES, seeds=5),
    "stochastic DeepSea 20": Problem(
        bad_share,
        "less than 80% bad among episodes 901 to 1,000",
        lambda x: x < 0.8,
        "rblspi/DeepSeaStochastic-v0",
        {"size": 20},
        1000,
        TABLES,
        varied="mapping_seed",
    ),
    "RiverSwim 6": Problem(
        share_of_best,
        "90% of the best mean reward in steps 5,001 to 10,000",
        lambda x: x >= 0.9,
        *("rblspi/RiverSwim-v0", {}, 10_000, FAST),
    ),
    "N-chain 100": Problem(
        first_best,
        "an optimal episode within 60",
        lambda x: x <= 60,
        *("rblspi/NChain-v0", {"length": 100}, 100, FAST),
    ),
    "combination lock": Problem(
        opened,
        "opened within 300 episodes",
        lambda x: x <= 300,
        *("rblspi/CombinationLock-v0", {}, 300, SMALL),
        varied="combination_seed",
    ),
    "swing-up": Problem(
        latest_return,
        "a mean return of 100 in episodes 281 to 300",
        lambda x: x >= 100,
        *("rblspi/CartPoleSwingUp-v0", {}, 300, ("Fitted R-max", "LBRL", "RBLSPI")),
        seeds=2,
    ),
    "sparse mountain car": Problem(
        greedy_length,
        "at the goal within 200 steps on average, after 3,000 steps",
        lambda x: x <= 200,
        *("rblspi/SparseMountainCar-v0", {}, 3000, CONTINUOUS),
        seeds=5,
    ),
    "pendulum": Problem(
        greedy_length,
        "balanced for 2,000 of 3,000 steps on average, after 1,000 steps",
        lambda x: x >= 2000,
        *("rblspi/InvertedPendulum-v0", {}, 1000, CONTINUOUS),
        seeds=5,
    ),
    # A grid blurs what moves a tenth of a cell in a step: actions are held for a tenth of a second,
    # in which the best reward is 10.
    "swing-up, held": Problem(
        latest_return,
        "a mean return of 100 in episodes 281 to 300",
        lambda x: x >= 100,
        "rblspi/CartPoleSwingUp-v0",
        {"hold": 10, "max_episode_steps": 100},
        300,
        ("Fitted R-max",),
        settings={"best_reward": 10.0},
        first=5000,
    ),
}


def run(name: str, agent: str, seed: int) -> dict[str, Any]:
    """One agent on one problem."""
    problem = PROBLEMS[name]
    varied = {problem.varied: seed} if problem.varied else {}
    env = gym.make(problem.id, **problem.arguments, **varied)
    made = AGENTS[agent](env, seed=seed, **problem.settings)
    start = time.process_time()
    value = problem.measure(made, problem.duration)
    steps = made.state.counters[0] if agent in TABLES else made.num_timesteps
    microseconds = 1e6 * (time.process_time() - start) / max(int(steps), 1)
    line = {"problem": name, "agent": agent, "seed": seed, "value": value, "us": microseconds}
    if hasattr(made.env.unwrapped, "optimal_return"):
        line["regret"] = regret.curve(made)
    return line


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The finished runs."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def missing(path: Path, seeds: int, names: set[str]) -> Iterator[tuple[str, str, int]]:
    """The runs that are wanted and not in the file."""
    done = {(line["problem"], line["agent"], line["seed"]) for line in lines_of(path)}
    problems, agents = names & set(PROBLEMS) or set(PROBLEMS), names & set(AGENTS) or set(AGENTS)
    if unknown := names - set(PROBLEMS) - set(AGENTS):
        known = ", ".join([*PROBLEMS, *AGENTS])
        raise SystemExit(f"no problem or agent is called {unknown.pop()!r}: choose from {known}")
    for name, problem in PROBLEMS.items():
        for agent in problem.agents:
            for seed in range(problem.first, problem.first + min(seeds, problem.seeds)):
                if name in problems and agent in agents and (name, agent, seed) not in done:
                    yield name, agent, seed


def table(lines: list[dict[str, Any]]) -> None:
    """Median, worst and how many reached the goal, by problem and agent."""
    print("| problem | goal | agent | reached | median | range | us a step |")
    print("|---|---|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        for agent in problem.agents:
            found = [x for x in lines if (x["problem"], x["agent"]) == (name, agent)]
            if not found:
                continue
            values = np.array([x["value"] for x in found], dtype=float)
            reached = sum(problem.reached(value) for value in values)
            some = values[np.isfinite(values)]
            numbers = "never | "
            if len(some):
                numbers = f"{np.median(some):.3g} | {some.min():.3g} to {some.max():.3g}"
            speed = np.median([x["us"] for x in found])
            print(
                f"| {name} | {problem.goal} | {agent} | {reached} of {len(values)} | "
                f"{numbers} | {speed:.0f} |"
            )


def compare(lines: list[dict[str, Any]]) -> None:
    """Rank the agents by regret, and draw it."""
    tables: dict[str, dict[str, Any]] = {}
    for name, problem in PROBLEMS.items():
        for agent in problem.agents:
            keys = (name, agent)
            rows = [x for x in lines if (x["problem"], x["agent"]) == keys and "regret" in x]
            if len(rows) > 1:
                tables.setdefault(name, {})[agent] = np.array([row["regret"] for row in rows])
    print("\n| problem | | agent | regret | next | further | | needs |")
    print("|---|---|---|---|---|---|---|---|")
    for name, regrets in tables.items():
        regret.ranking(name, regrets)
    if tables:
        durations = {name: problem.duration for name, problem in PROBLEMS.items()}
        regret.draw(tables, durations, Path("docs/images/regret"))


def main() -> None:
    """Make the runs that are missing, print the tables, and draw."""
    path, seeds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with ProcessPoolExecutor(2) as pool, path.open("a") as file:
        for future in [pool.submit(run, *key) for key in missing(path, seeds, {*sys.argv[3:]})]:
            print(json.dumps(future.result()), file=file, flush=True)
    table(lines_of(path))
    compare(lines_of(path))


if __name__ == "__main__":
    main()
