"""What commands write if nobody disturbs them: what every trial is compared with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.chaos.command import Running

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
RUNS = 4


class Prepared(NamedTuple):
    """A folder with the results of every kind of command."""

    folder: Path

    @property
    def agent(self) -> Path:
        """A folder that ``train`` wrote: agent.npz, settings.toml and monitor.csv."""
        return self.folder / "agent"

    @property
    def log(self) -> Path:
        """A file that ``collect`` wrote."""
        return self.folder / "log.parquet"

    @property
    def policy(self) -> Path:
        """A folder that ``fit`` wrote: policy.npz."""
        return self.folder / "policy"

    @property
    def experiment(self) -> Path:
        """The description of an experiment."""
        return self.folder / "experiment.toml"

    @property
    def results(self) -> Path:
        """A folder that ``reproduce`` wrote: results.sqlite, table.csv and the report."""
        return self.folder / "results"

    @property
    def table(self) -> bytes:
        """The numbers of the experiment."""
        return (self.results / "table.csv").read_bytes()


def train(env: str, seed: int, steps: int, folder: object) -> tuple[object, ...]:
    """Arguments of ``train``."""
    goal = ("--basis", BASES[env], "--seed", seed, "--timesteps", steps)
    return ("train", env, *goal, "--save", folder, "--quiet")


def collect(rows: int, file: object) -> tuple[object, ...]:
    """Arguments of ``collect``."""
    return ("collect", CAR, "--transitions", rows, "--out", file, "--quiet")


def fit(log: object, folder: object) -> tuple[object, ...]:
    """Arguments of ``fit``."""
    return ("fit", log, "--basis", BASES[CAR], "--save", folder, "--quiet")


def reproduce(config: object, folder: Path | str, runs: int = RUNS) -> tuple[object, ...]:
    """Arguments of ``reproduce``."""
    export = ("--export-episodes", f"{folder}/table.csv")
    return ("reproduce", "--config", config, "--runs", runs, "--jobs", 1, "--out", folder, *export)


ROWS = 20_000


def prepare(folder: Path) -> Prepared:
    """Run every command once, undisturbed; this compiles what is not compiled yet."""
    prepared = Prepared(folder)
    prepared.experiment.write_text(EXPERIMENT)

    def run(*arguments: object) -> None:
        Running(folder, *arguments).wait(COMPILING).require(0)

    def from_logs() -> None:
        run(*collect(ROWS, "log.parquet"))
        run(*fit("log.parquet", "policy"))

    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(run, *train(CAR, 1, 3000, "agent")),
            pool.submit(run, *train(LAKE, 1, 300, "lake")),
            pool.submit(from_logs),
            pool.submit(run, *reproduce("experiment.toml", "results")),
        ]
        for job in jobs:
            job.result()
    return prepared
