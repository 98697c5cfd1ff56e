"""Whether files are whole, agree with themselves, and hold the numbers of an undisturbed run."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from rblspi import RBLSPI, Agent
from rblspi.core.archive import FileError
from rblspi.features import basis_from_text
from rblspi.online.rblspi import TRANSITIONS
from tests.chaos.prepared import BASES, NUMBERS
from tests.support.agents import assert_same_bits

# Agents -------------------------------------------------------------------------------------


def saved_agent(folder):
    """The agent in a folder, which agrees with itself."""
    try:
        agent = Agent.load(folder / "agent.npz")
    except FileError as error:
        raise AssertionError(str(error)) from error
    state = agent.state
    learnt = state.posterior.statistics.count.sum() + state.buffer.size[0]
    made = agent.num_timesteps
    assert state.counters[TRANSITIONS] == learnt == made >= agent.episodes[:, 0].sum(), (
        f"{made} steps, {learnt} in the sums, {state.counters[TRANSITIONS]} counted"
    )
    return agent


def undisturbed(env, seed, steps):
    """An agent that has learnt for so many steps."""
    agent = RBLSPI(env, basis_from_text(BASES[env]), seed=seed)
    return agent.learn(steps) if steps else agent


def as_loaded(agent, folder):
    """The same agent after a way through a file: in Python, its episode begins anew."""
    if agent.session.compiled:
        return agent
    agent.save(folder / ".trial-undisturbed.npz")
    return Agent.load(folder / ".trial-undisturbed.npz")


def require_same(one, other):
    """All bits are the same."""
    try:
        assert_same_bits(one, other)
    except AssertionError as error:
        raise AssertionError(
            f"the agent has other bits than an undisturbed one: {error}"
        ) from error


def require_first_episodes(agent, whole):
    """The episodes are the first ones of an undisturbed run."""
    count = len(agent.episodes)
    same = np.array_equal(agent.episodes, whole.episodes[:count])
    assert same, f"the {count} episodes are not the first of an undisturbed run"


# Logs ---------------------------------------------------------------------------------------


NO_ROWS = np.empty((0, 3))


def monitor_rows(file):
    """Return, length and seconds of every episode in monitor.csv, all lines whole."""
    text = file.read_text()
    assert text.endswith("\n") or not text, f"the last line of {file.name} is not whole"
    header, names, *lines = text.splitlines() or ["#{}", "r,l,t"]
    try:
        json.loads(header.removeprefix("#"))
        rows = [[float(word) for word in line.split(",")] for line in lines]
        assert (names, {len(row) for row in rows} - {3}) == ("r,l,t", set()), "not three numbers"
    except ValueError as error:
        raise AssertionError(f"{file.name} cannot be read: {error}") from error
    return np.array(rows) if rows else NO_ROWS


def require_rows(rows, episodes):
    """The rows of a log are these episodes, as far as both go."""
    count = min(len(rows), len(episodes))
    ours = np.column_stack([np.round(episodes[:count, 1], 6), episodes[:count, 0]])
    same = np.array_equal(rows[:count, :2], ours)
    assert same, "monitor.csv has other episodes than the agent"


# Files and results ---------------------------------------------------------------


def require_same_numbers(printed, saved):
    """``evaluate`` has printed the same numbers of an agent or policy as undisturbed."""
    assert printed == (saved / NUMBERS).read_text(), f"other numbers: {printed}"


def require_same_outputs(folder, prepared, *only):
    """The files that commands wrote to a folder are those of an undisturbed run."""
    undisturbed = {
        "policy/policy.npz": prepared.policy / "policy.npz",
        "log.parquet": prepared.log,
        "out/table.jsonl": prepared.results / "table.jsonl",
    }
    names = only or [name for name in undisturbed if (folder / name).exists()]
    assert names, "nothing was written"
    for name in names:
        read = _rows if name.endswith(".jsonl") else Path.read_bytes
        same = read(folder / name) == read(undisturbed[name])
        assert same, f"{name} is not that of an undisturbed run"


def _rows(table):
    """The numbers of an experiment; its times may be others."""
    lines = table.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) | {"finished": "", "seconds": ""} for line in lines]


def stored_runs(folder):
    """The runs that are committed in a folder of results."""
    file = folder / "results.sqlite"
    if not file.exists():
        return set()
    with closing(sqlite3.connect(file)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert verdict == "ok", f"{file.name} is damaged: {verdict}"
        rows = connection.execute("SELECT id, curve, seed, code, record FROM runs")
        return set(rows)


def require_kept(before, after):
    """Every committed run is still there."""
    assert before <= after, f"{len(before - after)} committed runs are gone"
