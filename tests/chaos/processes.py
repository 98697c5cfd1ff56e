"""Two processes that write to the same place at the same time."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.chaos import checks
from tests.chaos.checks import require
from tests.chaos.command import Wrong
from tests.chaos.prepared import CAR, ROWS, RUNS, collect, fit, reproduce, train
from tests.chaos.trial import Trial


def two(trial: Trial) -> None:
    """Start a command twice."""
    trial.rng.choices((_train, _collect, _fit, _reproduce), (5, 2, 2, 2))[0](trial)
    trial.require_tidy()


def _both(trial: Trial, *commands: tuple[object, ...], **options: Any) -> None:
    """Run two commands at the same time; one of them may be refused, with a sentence."""
    running = []
    for arguments in commands:
        running.append(trial.start(*arguments, **options))
        trial.pause(0.5)
    finished = [each.wait() for each in running]
    for each in finished:
        if each.code:
            each.require_sentence()
    require(any(each.code == 0 for each in finished), Wrong, "both have failed")


def _train(trial: Trial) -> None:
    commands = [train(CAR, seed, trial.rng.randrange(9000, 40_000), "run") for seed in (3, 4)]
    prelude = "import rblspi.cli.autosave as a; a.SAVE_EVERY = 0.02"
    _both(trial, *commands, prelude=prelude)
    folder = trial.folder / "run"
    agent = checks.saved_agent(folder)
    checks.require_same(agent, checks.undisturbed(CAR, agent.seed, agent.num_timesteps))
    rows = checks.monitor_rows(folder / "monitor.csv")
    checks.require_rows(rows, agent.episodes)
    require(len(rows) == len(agent.episodes), Wrong, f"{len(rows)} rows in monitor.csv")
    settings = tomllib.loads((folder / "settings.toml").read_text())
    plan = (settings["seed"], settings["timesteps"])
    require(plan == (agent.seed, agent.num_timesteps), Wrong, f"settings.toml has {plan}")


def _collect(trial: Trial) -> None:
    _both(trial, *2 * [collect(ROWS, "log.parquet")])
    checks.require_same_log(trial.folder, trial.prepared)


def _fit(trial: Trial) -> None:
    _both(trial, *2 * [fit(trial.prepared.log, "policy")])
    checks.require_same_policy(trial.folder / "policy", trial.prepared)


def _reproduce(trial: Trial) -> None:
    _both(trial, *2 * [reproduce(trial.prepared.experiment, "out")])
    folder = trial.folder / "out"
    require(len(checks.stored_runs(folder)) == 2 * RUNS, Wrong, "not all runs are there")
    checks.require_same_table(folder, trial.prepared)
