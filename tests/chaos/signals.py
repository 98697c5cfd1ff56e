"""Signals at random moments, also two in a row and while a file is being saved."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.chaos.checks import (
    as_loaded,
    monitor_rows,
    require,
    require_first_episodes,
    require_kept,
    require_rows,
    require_same,
    require_same_policy,
    saved_agent,
    stored_runs,
    undisturbed,
)
from tests.chaos.command import Finished, Lost, Running, Wrong
from tests.chaos.prepared import CAR, LAKE, ROWS, collect, fit, reproduce, train
from tests.chaos.trial import Trial

POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: seconds that a busy machine may take for a checkpoint that is due
SLACK = 2.0


def disturb(trial: Trial, running: Running, longest: float) -> list[int]:
    """Send a signal, sometimes two in a row; returns those that were sent."""
    signals = [trial.rng.choice((*POLITE, signal.SIGKILL))]
    if trial.rng.random() < 0.4:
        signals.append(trial.rng.choice((*POLITE, signals[0], signal.SIGKILL)))
    to_all = trial.rng.random() < 0.3  # as a terminal does
    trial.pause(longest)
    for number in signals:
        running.signal(number, to_all=to_all)
        trial.pause(trial.rng.choice((0.002, 0.02, 0.2)))
    names = ", ".join(signal.Signals(number).name for number in signals)
    trial.lines.append(f"# {names}{' to all' if to_all else ''}")
    return signals


# train --------------------------------------------------------------------------------------


def train_compiled(trial: Trial) -> None:
    """Stop the training in a compiled environment, then go on."""
    _train(trial, CAR)


def train_python(trial: Trial) -> None:
    """Stop the training in an environment in Python, then go on."""
    _train(trial, LAKE)


def _train(trial: Trial, env: str) -> None:
    seed, every = trial.rng.randrange(100), trial.rng.choice((0.005, 0.2))
    folder = trial.folder / "run"
    running = trial.start(
        *train(env, seed, 10**9, "run"),
        prelude=f"import rblspi.cli.keeping as k; k.CHECKPOINT_EVERY = {every}",
    )
    running.until(lambda: _has_rows(folder / "monitor.csv"))
    signals = disturb(trial, running, 1.5)
    finished = running.wait()
    if signal.SIGKILL not in signals:
        finished.require(130)
        trial.require_tidy()
    _check_training(trial, env, seed, signals, every)


def _has_rows(file: Path) -> bool:
    return file.exists() and len(file.read_bytes().splitlines()) > 2


def _check_training(trial: Trial, env: str, seed: int, signals: list[int], every: float) -> None:
    folder, killed = trial.folder / "run", signal.SIGKILL in signals
    rows = monitor_rows(folder / "monitor.csv")
    if not (folder / "agent.npz").exists():
        require(killed, Lost, "there is no agent.npz")
        require(rows[-1, 2] < every + SLACK, Lost, f"no checkpoint in {rows[-1, 2]:.1f} s")
        return
    agent = saved_agent(folder)
    count = len(agent.episodes)
    require_rows(rows, agent.episodes)
    if len(rows) > count:
        require(killed, Lost, f"{len(rows)} episodes in monitor.csv, {count} in agent.npz")
        lost = rows[-1, 2] - rows[max(count - 1, 0), 2]
        require(lost < every + SLACK, Lost, f"{lost:.1f} s of learning since the last checkpoint")
    whole = undisturbed(env, seed, agent.num_timesteps)
    require_first_episodes(agent, whole)
    if len(signals) > 1:  # the second one breaks an episode off
        return
    loaded = as_loaded(whole, trial.folder)
    require_same(agent, loaded)
    if trial.rng.random() < 0.3:
        more = ("train", "--resume", "run", "--timesteps", 500, "--save", "run", "--quiet")
        trial.run(*more).require(0)
        require_same(
            saved_agent(folder),
            as_loaded(loaded.learn(500, reset_num_timesteps=False), trial.folder),
        )
        require(len(monitor_rows(folder / "monitor.csv")) >= count, Lost, "monitor.csv is shorter")


# collect and fit ----------------------------------------------------------------------------


def collect_rows(trial: Trial) -> None:
    """Stop the collection of a log."""
    file, older = trial.folder / "log.parquet", b""
    if trial.rng.random() < 0.5:
        older = trial.copy(trial.prepared.experiment, "log.parquet").read_bytes()
    finished, signals = _once(trial, collect(ROWS, "log.parquet"), 3.0)
    content = file.read_bytes() if file.exists() else b""
    whole = content == trial.prepared.log.read_bytes()
    _require_ended(trial, finished, signals, whole)
    require(whole or content == older, Lost, "log.parquet is neither the old one nor the new one")


def fit_policy(trial: Trial) -> None:
    """Stop the fitting of a policy."""
    folder, older = trial.folder / "policy", b""
    if trial.rng.random() < 0.5:
        older = trial.copy(trial.prepared.experiment, "policy/policy.npz").read_bytes()
    finished, signals = _once(trial, fit(trial.prepared.log, "policy"), 3.0)
    file = folder / "policy.npz"
    old = (file.read_bytes() if file.exists() else b"") == older
    _require_ended(trial, finished, signals, not old)
    if not old:
        require_same_policy(file, trial.prepared.policy / "policy.npz")


def _once(
    trial: Trial, arguments: tuple[object, ...], longest: float
) -> tuple[Finished, list[int]]:
    """Run a command, and disturb it after it has begun."""
    running = trial.start(*arguments)
    running.until_begun()
    signals = disturb(trial, running, longest)
    return running.wait(), signals


def _require_ended(trial: Trial, finished: Finished, signals: list[int], done: bool) -> None:
    """The exit code says how it ended, and no temporary file is left."""
    if signal.SIGKILL in signals:
        return
    # A process that has done its work may meet the signal on its way out.
    finished.require(*((0, 130) if done else (130,)))
    trial.require_tidy()


# reproduce ----------------------------------------------------------------------------------


def reproduce_twice(trial: Trial) -> None:
    """Stop an experiment once or twice, then let it end."""
    folder, committed = trial.folder / "out", set()
    arguments = reproduce(trial.prepared.experiment, "out")
    for _ in range(trial.rng.choice((1, 1, 2))):
        finished, signals = _once(trial, arguments, 4.0)
        done = (folder / "table.csv").exists()
        _require_ended(trial, finished, signals, done)
        stored = stored_runs(folder)
        require_kept(committed, stored)
        committed = stored
    trial.run(*arguments).require(0)
    require_kept(committed, stored_runs(folder))
    same = (folder / "table.csv").read_bytes() == trial.prepared.table
    require(same, Wrong, "table.csv has other numbers than an undisturbed run")
