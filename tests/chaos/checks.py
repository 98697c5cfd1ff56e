"""Whether files are whole, agree with themselves, and hold the numbers of an undisturbed run."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rblspi import RBLSPI, Agent
from rblspi.core.archive import FileError
from rblspi.features import basis_from_text
from rblspi.online.rblspi import TRANSITIONS
from tests.chaos.command import Failure, Lost, Wrong
from tests.chaos.prepared import BASES, Prepared
from tests.support.agents import assert_same_bits


def require(condition: object, kind: type[Failure], message: str) -> None:
    """Fail unless something is the case."""
    if not condition:
        raise kind(message)


# Agents -------------------------------------------------------------------------------------


def saved_agent(folder: Path) -> Agent:
    """The agent in a folder, which agrees with itself."""
    try:
        agent = Agent.load(folder / "agent.npz")
    except FileError as error:
        raise Lost(str(error)) from error
    state: Any = agent.state
    learnt = state.posterior.statistics.count.sum() + state.buffer.size[0]
    made = agent.num_timesteps
    require(
        state.counters[TRANSITIONS] == learnt == made >= agent.episodes[:, 0].sum(),
        Wrong,
        f"{made} steps, {learnt} in the sums, {state.counters[TRANSITIONS]} counted",
    )
    return agent


def undisturbed(env: str, seed: int, steps: int) -> Agent:
    """An agent that has learnt for so many steps."""
    agent = RBLSPI(env, basis_from_text(BASES[env]), seed=seed)
    return agent.learn(steps) if steps else agent


def as_loaded(agent: Agent, folder: Path) -> Agent:
    """The same agent after a way through a file: in Python, its episode begins anew."""
    if agent.session.compiled:
        return agent
    agent.save(folder / ".trial-undisturbed.npz")
    return Agent.load(folder / ".trial-undisturbed.npz")


def require_same(one: Agent, other: Agent) -> None:
    """All bits are the same."""
    try:
        assert_same_bits(one, other)
    except AssertionError as error:
        raise Wrong(f"the agent has other bits than an undisturbed one: {error}") from error


def require_first_episodes(agent: Agent, whole: Agent) -> None:
    """The episodes are the first ones of an undisturbed run."""
    count = len(agent.episodes)
    same = np.array_equal(agent.episodes, whole.episodes[:count])
    require(same, Wrong, f"the {count} episodes are not the first of an undisturbed run")


# Logs ---------------------------------------------------------------------------------------


NO_ROWS = np.empty((0, 3))


def monitor_rows(file: Path) -> np.ndarray:
    """Return, length and seconds of every episode in monitor.csv, all lines whole."""
    text = file.read_text()
    require(text.endswith("\n") or not text, Wrong, f"the last line of {file.name} is not whole")
    header, names, *lines = text.splitlines() or ["#{}", "r,l,t"]
    try:
        json.loads(header.removeprefix("#"))
        rows = [[float(word) for word in line.split(",")] for line in lines]
        require(names == "r,l,t" and {len(row) for row in rows} <= {3}, Wrong, "not three numbers")
    except ValueError as error:
        raise Wrong(f"{file.name} cannot be read: {error}") from error
    return np.array(rows) if rows else NO_ROWS


def require_rows(rows: np.ndarray, episodes: np.ndarray) -> None:
    """The rows of a log are these episodes, as far as both go."""
    count = min(len(rows), len(episodes))
    ours = np.column_stack([np.round(episodes[:count, 1], 6), episodes[:count, 0]])
    same = np.array_equal(rows[:count, :2], ours)
    require(same, Wrong, "monitor.csv has other episodes than the agent")


# Files and results ---------------------------------------------------------------


def require_same_file(file: Path, other: Path) -> None:
    """Two files are the same, byte by byte."""
    same = file.read_bytes() == other.read_bytes()
    require(same, Wrong, f"{file.name} is not that of an undisturbed run")


def require_same_numbers(printed: str, numbers: str) -> None:
    """A command has printed the same numbers as undisturbed."""
    require(printed == numbers, Wrong, f"other numbers: {printed}")


def require_same_policy(folder: Path, prepared: Prepared) -> None:
    """The policy is that of an undisturbed run."""
    require_same_file(folder / "policy.npz", prepared.policy / "policy.npz")


def require_same_log(folder: Path, prepared: Prepared) -> None:
    """The log is that of an undisturbed run."""
    require_same_file(folder / "log.parquet", prepared.log)


def require_same_table(folder: Path, prepared: Prepared) -> None:
    """The numbers of the experiment are those of an undisturbed run; its times may be others."""
    here, there = (_rows(path / "table.csv") for path in (folder, prepared.results))
    require(here == there, Wrong, "table.csv is not that of an undisturbed run")


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return [row | {"finished": "", "seconds": ""} for row in csv.DictReader(file)]


def stored_runs(folder: Path) -> set[tuple[Any, ...]]:
    """The runs that are committed in a folder of results."""
    file = folder / "results.sqlite"
    if not file.exists():
        return set()
    with closing(sqlite3.connect(file)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        require(verdict == "ok", Wrong, f"{file.name} is damaged: {verdict}")
        rows = connection.execute("SELECT id, curve, seed, code, finished FROM runs")
        return set(rows)


def require_kept(before: set[Any], after: set[Any]) -> None:
    """Every committed run is still there."""
    require(before <= after, Lost, f"{len(before - after)} committed runs are gone")
