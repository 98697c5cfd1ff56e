"""A clock that jumps back and forth, also to 1970, where a board without a battery begins."""

from __future__ import annotations

from tests.chaos import checks
from tests.chaos.checks import require
from tests.chaos.command import Wrong
from tests.chaos.prepared import CAR, LAKE, ROWS, collect, evaluate, fit, reproduce, train
from tests.chaos.trial import Trial

JUMPING = """
import random, time
rng, true, offset = random.Random({seed}), time.time, 0.0
def jumping():
    global offset
    if rng.random() < {often}:
        offset = rng.choice((0.0, -3600.0, 3600.0, -1e8, 1e9, -true()))
    return true() + offset
time.time = jumping
import rblspi.cli.autosave as a
a.SAVE_EVERY = 0.05
"""


def jumps(trial: Trial) -> None:
    """Run a command while the clock jumps."""
    often = trial.rng.choice((0.01, 0.3, 1.0))
    prelude = JUMPING.format(seed=trial.rng.randrange(1000), often=often)
    what = trial.rng.choices((_train, _collect, _fit, _evaluate, _reproduce), (8, 3, 3, 2, 2))[0]
    what(trial, prelude)
    trial.require_tidy()


def _train(trial: Trial, prelude: str) -> None:
    env, steps = trial.rng.choice((CAR, LAKE)), trial.rng.randrange(500, 5000)
    trial.run(*train(env, 5, steps, "run"), prelude=prelude).require(0)
    agent = checks.saved_agent(trial.folder / "run")
    rows = checks.monitor_rows(trial.folder / "run/monitor.csv")
    require(len(rows) == len(agent.episodes), Wrong, f"{len(rows)} rows in monitor.csv")
    checks.require_rows(rows, agent.episodes)
    sound = checks.as_loaded(checks.undisturbed(env, 5, steps), trial.folder)
    checks.require_same(agent, sound)


def _collect(trial: Trial, prelude: str) -> None:
    trial.run(*collect(ROWS, "log.parquet"), prelude=prelude).require(0)
    checks.require_same_log(trial.folder, trial.prepared)


def _fit(trial: Trial, prelude: str) -> None:
    trial.run(*fit(trial.prepared.log, "policy"), prelude=prelude).require(0)
    checks.require_same_policy(trial.folder / "policy", trial.prepared)


def _evaluate(trial: Trial, prelude: str) -> None:
    finished = trial.run(*evaluate(trial.prepared.agent), prelude=prelude)
    finished.require(0)
    checks.require_same_numbers(finished.out, trial.prepared.agent_numbers)


def _reproduce(trial: Trial, prelude: str) -> None:
    trial.run(*reproduce(trial.prepared.experiment, "out"), prelude=prelude).require(0)
    checks.require_same_table(trial.folder / "out", trial.prepared)
