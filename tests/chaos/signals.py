"""Signals at random moments, also two in a row and while a file is being saved."""

from __future__ import annotations

import signal
from typing import NamedTuple

from tests.chaos import checks
from tests.chaos.prepared import CAR, LAKE, ROWS, collect, fit, reproduce, train

POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNLIMITED = 10**9

#: seconds that a busy machine may take for a checkpoint that is due
SLACK = 2.0


def disturb(trial, running, longest):
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
    print(f"# {names}{' to all' if to_all else ''}")
    return signals


def _require_ended(trial, finished, signals, done):
    """The exit code says how it ended, and no temporary file is left."""
    if signal.SIGKILL in signals:
        return
    # A command that has done its work may meet the signal on its way out.
    finished.require(*((0, 130) if done else (130,)))
    trial.require_tidy()


# train --------------------------------------------------------------------------------------


class Training(NamedTuple):
    """A training run that is disturbed."""

    env: str
    seed: int
    steps: int
    checkpoint_every: float


def train_compiled(trial):
    """Stop the training in a compiled environment, then go on."""
    _train(trial, CAR)


def train_python(trial):
    """Stop the training in an environment in Python, then go on."""
    _train(trial, LAKE)


def _train(trial, env):
    steps = trial.rng.choice((UNLIMITED, UNLIMITED, 5000))
    # The shorter period means that a checkpoint is being saved nearly all the time.
    run = Training(env, trial.rng.randrange(100), steps, trial.rng.choice((0.005, 0.2)))
    log, prelude = trial.folder / "run/monitor.csv", "import rblspi.cli.autosave as a"
    running = trial.start(
        *train(env, run.seed, run.steps, "run"),
        prelude=f"{prelude}; a.SAVE_EVERY = {run.checkpoint_every}",
    )
    running.until_begun()
    if trial.rng.random() < 0.8:
        running.until(lambda: _has_rows(log))  # otherwise, the signal may come before the learning
    signals = disturb(trial, running, 1.5)
    finished = running.wait()
    agent = _require_consistent(trial, run, killed=signal.SIGKILL in signals)
    done = agent is not None and agent.num_timesteps == run.steps
    _require_ended(trial, finished, signals, done)
    if agent is not None:
        _require_undisturbed(trial, run, agent, broken_off=len(signals) > 1 and not done)


def _has_rows(file):
    return file.exists() and len(file.read_bytes().splitlines()) > 2


def _require_consistent(trial, run, killed):
    """The agent in the folder; it has what its log has, up to the last checkpoint if killed."""
    folder, allowed = trial.folder / "run", run.checkpoint_every + SLACK
    log, file = folder / "monitor.csv", folder / "agent.npz"
    rows = checks.monitor_rows(log) if log.exists() else checks.NO_ROWS
    if not file.exists():
        seconds = rows[-1, 2] if len(rows) else 0.0
        assert seconds < (allowed if killed else 1e-9), f"no agent after {seconds:.1f} s"
        return None
    agent = checks.saved_agent(folder)
    count = len(agent.episodes)
    checks.require_rows(rows, agent.episodes)
    if len(rows) > count:
        assert killed, f"{len(rows)} episodes in monitor.csv, {count} in agent.npz"
        lost = rows[-1, 2] - rows[max(count - 1, 0), 2]
        assert lost < allowed, f"{lost:.1f} s of learning since the last checkpoint"
    return agent


def _require_undisturbed(trial, run, agent, broken_off):
    """The agent is where an undisturbed one is after as many steps, also if it goes on."""
    sound = checks.undisturbed(run.env, run.seed, agent.num_timesteps)
    checks.require_first_episodes(agent, sound)
    if broken_off:  # in the middle of an episode, by the second signal
        return
    sound = checks.as_loaded(sound, trial.folder)
    checks.require_same(agent, sound)
    if trial.rng.random() < 0.3:
        more = ("--timesteps", 500, "--save", "run", "--quiet")
        trial.run("train", "--resume", "run", *more).require(0)
        sound.learn(500, reset_num_timesteps=False)
        resumed = checks.saved_agent(trial.folder / "run")
        checks.require_same(resumed, checks.as_loaded(sound, trial.folder))
        rows = checks.monitor_rows(trial.folder / "run/monitor.csv")
        checks.require_rows(rows, resumed.episodes)
        assert len(rows) == len(resumed.episodes), "monitor.csv has not all episodes"


# collect and fit ----------------------------------------------------------------------------


def collect_rows(trial):
    """Stop the collection of a log."""
    _stop_and_compare(trial, collect(ROWS, "log.parquet"), "log.parquet")


def fit_policy(trial):
    """Stop the fitting of a policy."""
    _stop_and_compare(trial, fit(trial.prepared.log, "policy"), "policy/policy.npz")


def _stop_and_compare(trial, arguments, output):
    """Stop a command; its output is the older file, or that of an undisturbed run."""
    file = trial.folder / output
    if trial.rng.random() < 0.5:
        trial.copy(trial.prepared.experiment, output)
    older = _content(file)
    finished, signals = _disturbed(trial, arguments, 3.0)
    changed = _content(file) != older
    _require_ended(trial, finished, signals, changed)
    if changed:
        checks.require_same_outputs(trial.folder, trial.prepared, output)


def _content(file):
    return file.read_bytes() if file.exists() else None


def _disturbed(trial, arguments, longest):
    """Run a command, and disturb it after it has begun."""
    running = trial.start(*arguments)
    running.until_begun()
    signals = disturb(trial, running, longest)
    return running.wait(), signals


# reproduce ----------------------------------------------------------------------------------


def reproduce_again(trial):
    """Stop an experiment once or twice, then let it end."""
    folder, committed = trial.folder / "out", set()
    arguments = reproduce(trial.prepared.experiment, "out")
    for _ in range(trial.rng.choice((1, 1, 2))):
        finished, signals = _disturbed(trial, arguments, 4.0)
        _require_ended(trial, finished, signals, done=(folder / "table.jsonl").exists())
        stored = checks.stored_runs(folder)
        checks.require_kept(committed, stored)
        committed = stored
    trial.run(*arguments).require(0)
    checks.require_kept(committed, checks.stored_runs(folder))
    checks.require_same_outputs(trial.folder, trial.prepared, "out/table.jsonl")
