"""How true is what agents state: intervals of values and of gaps, and how sure a choice is.

    python -m benchmarks.calibration FOLDER [SEEDS] [FIRST_SEED] [PROBLEM ...]

trains the default agent in every problem of `benchmarks.problems`, for some seeds, and compares
what it states after a tenth, half and all of its steps with the values of its policy. Of tables and
plants these are computed, of other environments they are simulated. What was found is kept in
FOLDER/results.json: run again, it makes what is missing only. At the end it prints a table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np

import rblspi
from benchmarks.problems import DISCOUNT, PROBLEMS, Plant, Table, make
from rblspi.core.files import replacing
from rblspi.core.progress import progress
from rblspi.online.agent import Agent
from rblspi.policies import ActionValues, LinearPolicy
from rblspi.policies.values import reach
from rblspi.rollout.calibration import Calibration, TrueValues, true_values

#: by the problem, the seed and the share of the steps
Results: TypeAlias = dict[str, dict[str, float]]
SHARES = (0.1, 0.5, 1.0)
#: the first seed; smaller ones were used to choose
FIRST = 7000
#: the probability above which an agent counts as sure
SURE = 0.95


def truth_of(agent: Agent, policy: LinearPolicy) -> TrueValues:
    """The values of the policy, in all states or in those on its way."""
    env: Any = agent.env.unwrapped
    if isinstance(env, Table | Plant):
        seen, values = env.exact_values(policy, DISCOUNT)
        return TrueValues(seen, values, np.zeros_like(values))
    if hasattr(env, "P"):
        seen, values = np.arange(len(env.P)), toy_text_values(env.P, policy)
        return TrueValues(seen, values, np.zeros_like(values))
    return true_values(policy, agent.env, seed=1)


def toy_text_values(outcomes: Any, policy: LinearPolicy) -> Any:
    """Q of a policy by the probabilities of Gymnasium's toy text, shape (states, actions)."""
    states, actions = len(outcomes), len(outcomes[0])
    moves, rewards = np.zeros((actions, states, states)), np.zeros((actions, states))
    for s in range(states):
        for a in range(actions):
            for chance, after, reward, ended in outcomes[s][a]:
                rewards[a, s] += chance * reward
                moves[a, s, after] += chance * (not ended)
    return Table(moves, rewards).exact_values(policy, DISCOUNT)[1]


def numbers_of(stated: ActionValues, true: TrueValues) -> dict[str, float]:
    """Coverage and width of the intervals of values and of gaps, and how sure a choice is."""
    assert stated.std is not None
    assert stated.draws is not None
    count, rows = len(stated.draws), np.arange(len(stated.mean))
    best, second = np.argsort(-stated.mean, axis=1)[:, :2].T
    low, high = stated.gap()
    gap = Calibration(
        (low + high) / 2.0,
        (high - low) / 2.0 / reach(count, 0.95),
        true.values[rows, best] - true.values[rows, second],
        np.hypot(true.errors[rows, best], true.errors[rows, second]),
        draws=count,
    )
    columns = (stated.mean, stated.std, true.values, true.errors)
    value = Calibration(*(np.ravel(column) for column in columns), draws=count)  # type: ignore
    likely = stated.probability_best()
    sure, chosen = likely.max(axis=1) >= SURE, likely.argmax(axis=1)
    error = 2.0 * np.hypot(true.errors[rows, chosen], true.errors.max(axis=1))
    right = true.values[rows, chosen] >= true.values.max(axis=1) - error - 1e-9
    return {
        "coverage": float(value.coverage(0.95)[0]),
        "width": value.sharpness,
        "gap coverage": float(gap.coverage(0.95)[0]),
        "gap width": gap.sharpness,
        "sure": float(sure.mean()),
        "right": float(right[sure].mean()) if sure.any() else float("nan"),
    }


def run(name: str, seed: int) -> dict[float, dict[str, float]]:
    """What one agent states, by the share of its steps."""
    agent, found = rblspi.agent(make(name), seed=seed, discount=DISCOUNT), {}
    for share in SHARES:
        agent.learn(
            int(share * PROBLEMS[name].steps) - agent.num_timesteps, reset_num_timesteps=False
        )
        start = time.process_time()
        policy = agent.policy()
        _ = policy.value_draws
        seconds = time.process_time() - start
        true = truth_of(agent, policy)
        found[share] = numbers_of(policy.action_values(true.observations), true)
        found[share]["seconds"] = seconds
    return found


def table(results: Results, names: Sequence[str]) -> str:
    """One row for every problem and share of the steps."""
    columns = ("agents", "coverage of 95%", "least", "width", "of gaps", "width", "sure", "right")
    lines = [f"| problem | steps | {' | '.join(columns)} | seconds |", "|---" * 11 + "|"]
    for name in names:
        for share in SHARES:
            runs = [r for key, r in results.items() if _is_of(key, name, share)]
            if not runs:
                continue
            by = {key: np.array([r[key] for r in runs]) for key in runs[0]}
            known = by["right"][np.isfinite(by["right"])]
            cells = [
                *(f"{len(runs)}", f"{by['coverage'].mean():.0%}", f"{by['coverage'].min():.0%}"),
                *(f"{np.median(by['width']):.1f}", f"{by['gap coverage'].mean():.0%}"),
                *(f"{np.median(by['gap width']):.1f}", f"{by['sure'].mean():.0%}"),
                *(f"{known.mean():.0%}" if len(known) else "", f"{by['seconds'].mean():.1f}"),
            ]
            steps = f"{int(share * PROBLEMS[name].steps):,}"
            lines.append(f"| {name} | {steps} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _is_of(key: str, name: str, share: float) -> bool:
    return key.startswith(f"{name}|") and key.endswith(f"|{share}")


def main(
    folder: Path, jobs: Sequence[tuple[str, int]], make_run: Callable[[str, int], dict[Any, Any]]
) -> Results:
    """Make the missing runs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    results: Results = json.loads(path.read_text()) if path.exists() else {}
    with progress(len(jobs)) as tell:
        for done, (name, seed) in enumerate(jobs):
            if not any(key.startswith(f"{name}|{seed}|") for key in results):
                made = make_run(name, seed)
                results |= {f"{name}|{seed}|{kind}": numbers for kind, numbers in made.items()}
                with replacing(path) as temporary:
                    Path(temporary).write_text(json.dumps(results, indent=1))
            tell(done + 1, f"{name} {seed}")
    return results


if __name__ == "__main__":
    given = sys.argv[2:]
    seeds, first = [*map(int, given[:2]), *(20, FIRST)[len(given) :]][:2]
    names = given[2:] or [*PROBLEMS]
    found = main(Path(sys.argv[1]), [(n, first + i) for i in range(seeds) for n in names], run)
    print(table(found, names))
