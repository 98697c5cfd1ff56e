"""Fits to logs with nothing chosen but the discount.

    python -m benchmarks.offline_defaults RESULTS.json [--only DOMAIN ...] [--logs N]
    python -m benchmarks.offline_defaults RESULTS.json --markdown

The bases, the ridges and the rule that chooses among them were found on logs with the seeds 1000 to
1009; the logs here have the seeds from 5000 on. Results are kept log by log: what was stopped goes
on where it was. A log is a success if the greedy policy reaches the time limit on the pendulum in
all of 20 episodes, 475 steps on average on a cart pole, and the best action in every state of the
chain.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np

from benchmarks.offline import OPTIMAL, STATES, gathered, play
from rblspi.core.files import replacing
from rblspi.core.progress import progress
from rblspi.data import Transitions
from rblspi.offline import BLSTD, FQI
from rblspi.rollout import evaluate

FIRST_SEED = 5000


class Domain(NamedTuple):
    """Where logs come from, and which score counts as a success."""

    env: str
    discount: float
    log: dict[str, int]  # what a log consists of
    logs: int
    good: float
    score: Callable[[str, FQI], float]
    goal: int  # logs that should succeed


def steps(env: str, fitted: FQI) -> float:
    """The mean length of 20 episodes, in compiled code."""
    return float(play(env, fitted, 20).mean())


def steps_in_python(env: str, fitted: FQI) -> float:
    """The mean length of 20 episodes."""
    return float(np.mean(evaluate(fitted.policy(env), episodes=20, seed=77).lengths))


def best_actions(env: str, fitted: FQI) -> float:
    """The share of the chain's states in which the action is the best one."""
    return float((fitted.act(STATES) == OPTIMAL).mean())


DOMAINS = {
    "chain": Domain("rblspi/ChainWalk-v0", 0.9, {"transitions": 5000}, 50, 1.0, best_actions, 48),
    "pendulum": Domain(
        "rblspi/InvertedPendulum-v0", 0.95, {"transitions": 9000}, 20, 3000.0, steps, 18
    ),
    "cart pole": Domain("rblspi/CartPole-v0", 0.99, {"episodes": 1000}, 20, 475.0, steps, 18),
    "CartPole-v1": Domain("CartPole-v1", 0.99, {"episodes": 1000}, 20, 475.0, steps_in_python, 18),
}


def one_log(domain: Domain, seed: int) -> dict[str, Any]:
    """Fit with nothing but the discount, and say how good the policy is and what it promises."""
    log = gathered(domain.env, seed=seed, **domain.log)
    start = time.perf_counter()
    fitted = FQI(discount=domain.discount).fit(log)
    seconds = time.perf_counter() - start
    assert fitted.selection_ is not None
    return {
        "score": domain.score(domain.env, fitted),
        "seconds": seconds,
        "transitions": log.size,
        "basis": str(fitted.basis_),
        "ridge": fitted.ridge_,
        "held_out_values": [candidate.values for candidate in fitted.selection_.candidates],
        "converged": fitted.converged_,
        "iterations": fitted.n_iter_,
        **cross_check(fitted, log),
    }


def cross_check(fitted: FQI, log: Transitions) -> dict[str, float]:
    """What FQI says of its policy, and what BLSTD says of the same policy in the same basis."""
    blstd = BLSTD(fitted.basis_, fitted.actions_, discount=fitted.discount).fit(log, fitted.act)
    starts = log.observations[log.starts()]
    chosen = fitted.act(starts)
    mean, std = blstd.predict(starts, chosen, return_std=True)
    other = blstd.predict(log.observations).argmax(axis=1)
    return {
        "value": float(fitted.predict(starts, chosen).mean()),
        "blstd_value": float(mean.mean()),
        "blstd_std": float(std.mean()),
        "limits": list(fitted.limits_),  # type: ignore[dict-item]
        "blstd_prefers_another_action": float((other != fitted.act(log.observations)).mean()),
    }


def run(path: Path, only: list[str], logs: int | None) -> None:
    """Fit to all logs that have no result yet."""
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    tasks = [
        (name, seed)
        for name in only
        for seed in range(FIRST_SEED, FIRST_SEED + (logs or DOMAINS[name].logs))
        if f"{name} {seed}" not in results
    ]
    with progress(max(1, len(tasks))) as tell:
        for done, (name, seed) in enumerate(tasks):
            tell(done, f"{name}, log {seed}")
            results[f"{name} {seed}"] = one_log(DOMAINS[name], seed)
            with replacing(path) as temporary:
                Path(temporary).write_text(json.dumps(results, indent=1))


def markdown(path: Path) -> None:
    """Print the table."""
    results = json.loads(path.read_text())
    print("| domain | discount | log | successes | goal | scores that fail | converged | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name, domain in DOMAINS.items():
        found = [result for key, result in results.items() if key.rsplit(" ", 1)[0] == name]
        if not found:
            continue
        scores = [result["score"] for result in found]
        failed = sorted(round(score, 2) for score in scores if score < domain.good)
        (what, count), *_ = domain.log.items()
        print(
            f"| {name} | {domain.discount} | {count:,} {what} | {len(scores) - len(failed)} of "
            f"{len(scores)} | {domain.goal} of {domain.logs} | "
            f"{', '.join(map(str, failed)) or 'none'} | "
            f"{sum(result['converged'] for result in found)} of {len(found)} | "
            f"{np.median([result['seconds'] for result in found]):.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    parser.add_argument("--logs", type=int, help="logs of each domain")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.markdown:
        markdown(arguments.results)
    else:
        run(arguments.results, arguments.only, arguments.logs)


if __name__ == "__main__":
    main()
