"""Does it say so where the data cannot tell? Logs that mislead, and what is said about them.

    python -m benchmarks.trust RESULTS.json cars|ranking|failures [--logs N]
    python -m benchmarks.trust RESULTS.json --markdown

cars: random episodes that never reach the goal, and a policy that would. An interval has to contain
the true value, or the estimate has to say that the log does not support it.

ranking: two policies for an inventory, and whether the better one is stated to be worse, with
intervals that do not overlap.

failures: `FQI` with nothing chosen but the discount, on logs of all sizes. The trust report should
say "do not trust" of policies that fail, and of no others.

Results are kept log by log: what was stopped goes on where it was. Nothing was chosen with the
seeds that are used here.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np

from benchmarks.off_policy import inventory, order_up_to
from benchmarks.offline import gathered
from benchmarks.offline_defaults import DOMAINS
from rblspi.core.files import write_text
from rblspi.core.intervals import share_interval
from rblspi.core.progress import progress
from rblspi.features import OneHot, Polynomial
from rblspi.offline import FQI, policy_value, trust
from rblspi.offline.model_selection import candidates

FRESH = 70_000

# Cars ---------------------------------------------------------------------------------------

CARS = ("rblspi/MountainCar-v0", "rblspi/SparseMountainCar-v0")
CAR_DISCOUNT = 0.99


def swing(observations: Any) -> Any:
    """Push in the direction of the velocity, which reaches the goal."""
    return np.where(np.asarray(observations)[..., 1] < 0, 0, 2)


def car(name: str, seed: int) -> dict[str, Any]:
    """What is said about the policy, from 100 random episodes of 50 steps."""
    env = gym.make(name, max_episode_steps=50)
    log = gathered(env, episodes=100, seed=seed)
    assert not log.terminated.any()
    basis = candidates([log], None)[0].basis
    found = policy_value(log, swing, basis, 3, discount=CAR_DISCOUNT)
    return {"low": found.low, "high": found.high, "said": str(found)}


def car_value(name: str) -> float:
    """The mean discounted return of the policy from the first states."""
    log = gathered(name, episodes=1000, seed=FRESH, policy=lambda s: int(swing(s)))
    ends = np.flatnonzero(log.terminated | log.truncated) + 1
    parts = np.split(log.rewards, ends[:-1])
    return float(np.mean([r @ CAR_DISCOUNT ** np.arange(len(r)) for r in parts]))


def cars_table(results: dict[str, Any]) -> Iterator[str]:
    """In how many logs the interval contains the truth, and in how many it is called in doubt."""
    yield "| car | logs | true value | mean interval | contains it | says that it cannot tell | "
    yield "neither |\n|---|---|---|---|---|---|---|\n"
    for name in CARS:
        found = runs_of(results, "cars", name)
        if not found:
            continue
        true = car_value(name)
        held = np.array([f["low"] <= true <= f["high"] for f in found])
        said = np.array(["cannot tell" in f["said"] for f in found])
        low, high = (np.mean([f[end] for f in found]) for end in ("low", "high"))
        yield f"| {name} | {len(found)} | {true:.3g} | {low:.3g} to {high:.3g} | {held.sum()} | "
        yield f"{said.sum()} | {(~held & ~said).sum()} |\n"


# Ranking ------------------------------------------------------------------------------------

BASES: dict[str, Any] = {"a table": OneHot(), "a parabola": Polynomial(2)}
SHOP_DISCOUNT = 0.9


def ranked(name: str, seed: int) -> dict[str, Any]:
    """Two policies that order up to different levels, from 100 days of 20 shops, half random."""
    rng = np.random.default_rng(seed)
    shop = inventory(rng)
    levels = rng.choice(np.arange(2, 10), 2, replace=False)
    log, _ = shop.log(rng, 20, 100, shop.following(0.5))
    found = []
    for policy in map(order_up_to, levels):
        value = policy_value(
            *(log, lambda stock, policy=policy: policy[stock], BASES[name], 5),
            discount=SHOP_DISCOUNT,
            first_observations=shop.states,
            observation_space=gym.spaces.Discrete(len(shop.states)),
        )
        true = float(shop._replace(policy=policy).values(SHOP_DISCOUNT).mean())
        found.append([true, value.low, value.high])
    return {"values": sorted(found)}


def ranking_table(results: dict[str, Any]) -> Iterator[str]:
    """How often the order of two intervals that do not overlap is wrong, and coverage."""
    yield "| basis | logs | right order | wrong order | overlap | coverage of 95% |\n"
    yield "|---|---|---|---|---|---|\n"
    for name in BASES:
        found = np.array([run["values"] for run in runs_of(results, "ranking", name)])
        if not len(found):
            continue
        (_, low, high), (_, better_low, better_high) = np.moveaxis(found, (1, 2), (0, 1))
        right, wrong = int((better_low > high).sum()), int((better_high < low).sum())
        truth, lows, highs = np.moveaxis(found, 2, 0)
        held = (lows <= truth) & (truth <= highs)
        inside = share_interval(int(held.sum()), held.size)
        yield f"| {name} | {len(found)} | {right} | {wrong} | {len(found) - right - wrong} | "
        yield f"{inside.mean:.0%} ({inside.low:.0%} to {inside.high:.0%}) |\n"


# Failures -----------------------------------------------------------------------------------

#: how many transitions or episodes a log has, by domain of `benchmarks.offline_defaults`
SIZES = {
    "chain": (100, 300, 1000, 5000),
    "pendulum": (100, 300, 1000, 3000, 9000),
    "cart pole": (30, 100, 300, 1000),
}


def fitted(name: str, seed: int) -> dict[str, Any]:
    """Whether a policy succeeds, and what the trust report says of it."""
    domain_name, size = name.rsplit(" ", 1)
    domain = DOMAINS[domain_name]
    (unit,) = domain.log
    log = gathered(domain.env, seed=seed, **{unit: int(size)})
    fqi = FQI(discount=domain.discount).fit(log)
    settings = {"values": fqi.predict, "converged": fqi.converged_}
    report = trust(fqi.act, log, fqi.basis_, discount=domain.discount, **settings)
    score = domain.score(domain.env, fqi)
    return {"score": score, "success": score >= domain.good, **report.plain()}


def failures_table(results: dict[str, Any]) -> Iterator[str]:
    """How many failures, and how many successes, are not trusted."""
    yield "| domain | log | logs | failures | of these: do not trust | with care | successes | of "
    yield "these: do not trust | with care |\n|---|---|---|---|---|---|---|---|---|\n"
    for name in TASKS["failures"]:
        found = runs_of(results, "failures", name)
        if not found:
            continue
        counts = []
        for success in (False, True):
            verdicts = [run["verdict"] for run in found if run["success"] == success]
            counts += [len(verdicts), verdicts.count("do not trust"), verdicts.count("with care")]
        domain, size = name.rsplit(" ", 1)
        (unit,) = DOMAINS[domain].log
        cells = " | ".join(map(str, counts))
        yield f"| {domain} | {int(size):,} {unit} | {len(found)} | {cells} |\n"


# --------------------------------------------------------------------------------------------

TASKS: dict[str, list[str]] = {
    "cars": list(CARS),
    "ranking": list(BASES),
    "failures": [f"{domain} {size}" for domain, sizes in SIZES.items() for size in sizes],
}
RUNS: dict[str, tuple[Callable[[str, int], dict[str, Any]], int]] = {
    "cars": (car, 20),
    "ranking": (ranked, 200),
    "failures": (fitted, 10),
}
TABLES = {"cars": cars_table, "ranking": ranking_table, "failures": failures_table}


def runs_of(results: dict[str, Any], task: str, name: str) -> list[dict[str, Any]]:
    """The results of one row."""
    start = f"{task}, {name}, "
    return [result for key, result in results.items() if key.startswith(start)]


def run(path: Path, task: str, logs: int | None) -> None:
    """Make the runs that have no result yet."""
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    work, usual = RUNS[task]
    jobs = [(name, FRESH + i) for i in range(logs or usual) for name in TASKS[task]]
    with progress(len(jobs)) as tell:
        for done, (name, seed) in enumerate(jobs):
            tell(done, f"{name}, log {seed}")
            if f"{task}, {name}, {seed}" not in results:
                results[f"{task}, {name}, {seed}"] = work(name, seed)
                write_text(path, json.dumps(results, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("tasks", nargs="*", choices=[*RUNS, []])
    parser.add_argument("--logs", type=int, help="logs of each row")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for task in arguments.tasks:
        run(arguments.results, task, arguments.logs)
    if arguments.markdown:
        results = json.loads(arguments.results.read_text())
        for task, table in TABLES.items():
            print(f"\n{task}\n\n" + "".join(table(results)))


if __name__ == "__main__":
    main()
