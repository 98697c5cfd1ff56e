"""What commands write if nobody disturbs them: what every trial is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.support.process import Running

#: seconds that the first command may take, which has to compile everything
COMPILING = 900.0

CAR, LAKE = "rblspi/MountainCar-v0", "FrozenLake-v1"
#: a compiled environment, and one in Python
BASES = {CAR: "rbf:3", LAKE: "OneHot()"}

EXPERIMENT = """
id = "small"
title = "A small experiment"
environment = "rblspi/MountainCar-v0"
episodes = 60
block = 10
basis = "rbf:3"

[[panel]]
title = "both"

[[panel.curve]]
label = "a"
algorithm = "rblspi"

[[panel.curve]]
label = "b"
algorithm = "online-lspi"
"""
#: of every curve of the experiment
RUNS = 4

#: transitions in the log, and of the agent
ROWS, STEPS, SEED = 20_000, 3000, 1


class Prepared(NamedTuple):
    """Results of every kind of command."""

    agent: Path  # a folder that train wrote: agent.npz, settings.toml and monitor.csv
    log: Path  # a file that collect wrote
    policy: Path  # a folder that fit wrote: policy.npz
    experiment: Path  # a file that describes an experiment
    results: Path  # a folder that reproduce wrote: results.sqlite, table.jsonl and a report


#: the file in the folder of an agent or policy with the numbers that evaluate prints of it
NUMBERS = "evaluated.json"


def train(env, seed, steps, folder):
    """Arguments of ``train``."""
    goal = ("--basis", BASES[env], "--seed", seed, "--timesteps", steps)
    return ("train", env, "--algo", "rblspi", *goal, "--save", folder, "--quiet")


def collect(rows, file):
    """Arguments of ``collect``."""
    return ("collect", CAR, "--transitions", rows, "--out", file, "--quiet")


def fit(log, folder):
    """Arguments of ``fit``."""
    return ("fit", log, "--basis", BASES[CAR], "--save", folder, "--quiet")


def reproduce(config, folder, runs=RUNS):
    """Arguments of ``reproduce``."""
    export = ("--export", f"{folder}/table.jsonl")
    return ("reproduce", "--config", config, "--runs", runs, "--jobs", 1, "--out", folder, *export)


def evaluate(saved):
    """Arguments of ``evaluate``."""
    return ("evaluate", saved, "--episodes", 3, "--json")


def prepare(folder):
    """Run every command once, undisturbed; this compiles what is not compiled yet."""
    experiment = folder / "experiment.toml"
    made = Prepared(
        agent=folder / "agent",
        log=folder / "log.parquet",
        policy=folder / "policy",
        experiment=experiment,
        results=folder / "results",
    )
    if made.results.exists():  # by another worker
        return made
    experiment.write_text(EXPERIMENT)
    for arguments in (
        train(CAR, SEED, STEPS, "agent"),
        train(LAKE, SEED, 300, "lake"),
        evaluate("agent"),
        collect(ROWS, "log.parquet"),
        fit("log.parquet", "policy"),
        evaluate("policy"),
        reproduce(experiment, "results"),
    ):
        finished = Running(folder, *arguments).wait(COMPILING)
        finished.require(0)
        if arguments[0] == "evaluate":
            (folder / str(arguments[1]) / NUMBERS).write_text(finished.out)
    return made
