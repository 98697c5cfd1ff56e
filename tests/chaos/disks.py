"""Disks that are full, and folders that cannot be written to."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from rblspi.core.code_cache import cache_directory
from tests.chaos import checks
from tests.chaos.prepared import CAR, ROWS, collect, evaluate, fit, reproduce, train

#: bytes of the small disk
SIZE = 3 * 2**20

#: the names of files that a command writes, and the bytes that they take, about
WRITES = {
    "train": (("agent.npz", "settings.toml", "monitor.csv"), 60_000),
    "fit": (("policy.npz",), 8_000),
    "collect": (("log.parquet",), 800_000),
    "show": (("maps",), 400_000),
    "watch": (("film.gif",), 60_000),
    "reproduce": (("out",), 400_000),
}
#: how often each of them is tried; the last one takes longest
WEIGHTS = (5, 3, 4, 2, 2, 1)


@contextmanager
def small_disk(folder):
    """A disk of its own in a folder."""
    folder.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("making a small disk takes root and the command mount")
    made = _mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder)
    if made.returncode:
        pytest.skip(f"no small disk can be made here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


def _mount(*arguments):
    line = ["mount", *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, text=True)


def _arguments(trial, command):
    """The command, which writes to the folder ``disk``."""
    agent = trial.prepared.agent
    return {
        "train": (*train(CAR, 2, 3000, "disk/run"), "--overwrite"),
        "fit": fit(trial.prepared.log, "disk/policy"),
        "collect": collect(ROWS, "disk/log.parquet"),
        "show": ("show", agent, "--resolution", 10, "--out", "disk/maps"),
        "watch": ("watch", agent, "--steps", 20, "--out", "disk/film.gif"),
        "reproduce": reproduce(trial.prepared.experiment, "disk/out"),
    }[command]


def _older_files(trial, disk):
    """Put files on the disk that the command would replace."""
    trial.copy(trial.prepared.agent, "disk/run")
    for name in (
        "policy/policy.npz",
        "log.parquet",
        "out/table.jsonl",
        "maps/maps.png",
        "film.gif",
    ):
        trial.copy(trial.prepared.experiment, f"disk/{name}")
    # The log of a new run replaces the old one at once.
    return {p: p.read_bytes() for p in disk.rglob("*.*") if p.name != "monitor.csv"}


# Full -----------------------------------------------------------------------------------------


def full(trial):
    """Let the disk become full in the middle of a command."""
    (command,) = trial.rng.choices(list(WRITES), WEIGHTS)
    names, size = WRITES[command]
    with small_disk(trial.folder / "disk") as disk:
        older = _older_files(trial, disk)
        free = trial.rng.randrange(int(1.2 * size))
        _fill(disk, free)
        print(f"# {free} bytes free")
        finished = trial.run(*_arguments(trial, command))
        if finished.code == 0:
            _require_result(trial, command, disk)
        else:
            finished.require_sentence(*names)
            for file, content in older.items():
                if not file.exists() or file.read_bytes() != content:
                    _require_newer(file)
            checks.stored_runs(disk / "out")
        trial.require_tidy()


def _require_newer(file):
    """A file that was replaced before the disk was full is one of the new run."""
    if file.name == "agent.npz":
        agent = checks.saved_agent(file.parent)
        checks.require_same(agent, checks.undisturbed(CAR, 2, agent.num_timesteps))
    else:
        assert file.name == "settings.toml", f"{file.name} is damaged"


def _fill(disk, free):
    """Leave this many bytes on a disk."""
    found = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(max(found.f_bavail * found.f_frsize - free, 0)))


def _require_result(trial, command, disk):
    """What a command says that it wrote is what it writes undisturbed."""
    if command == "train":
        checks.require_same(checks.saved_agent(disk / "run"), checks.undisturbed(CAR, 2, 3000))
    outputs = {"fit": "policy/policy.npz", "collect": "log.parquet", "reproduce": "out/table.jsonl"}
    if command in outputs:
        checks.require_same_outputs(disk, trial.prepared, outputs[command])


# Read-only ------------------------------------------------------------------------------------


def read_only(trial):
    """Use a folder that cannot be written to."""
    with small_disk(trial.folder / "disk") as disk:
        older = _older_files(trial, disk)
        frozen = _mount("-o", "remount,ro", disk)
        if frozen.returncode:
            pytest.skip(f"no disk can be made read-only here: {frozen.stderr.strip()}")
        what = trial.rng.choices((_written_to, _read_from, _home, _cache), (12, 4, 6, 2))[0]
        what(trial, disk)
        same = all(file.read_bytes() == content for file, content in older.items())
        assert same, "a file on a read-only disk has changed"
    trial.require_tidy()


def _written_to(trial, disk):
    command = trial.rng.choice(list(WRITES))
    names, _ = WRITES[command]
    trial.run(*_arguments(trial, command)).require_sentence(*names)


def _read_from(trial, disk):
    _require_numbers(trial, "disk/run", {})


def _home(trial, disk):
    compiled = {"NUMBA_CACHE_DIR": str(cache_directory().parent)}
    _require_numbers(trial, trial.prepared.agent, {"HOME": str(disk), **compiled})


def _require_numbers(trial, agent, environment):
    if trial.rng.random() < 0.5:
        finished = trial.run(*evaluate(agent), environment=environment)
        finished.require(0)
        checks.require_same_numbers(finished.out, trial.prepared.agent)
    else:
        arguments = ("show", agent, "--resolution", 5, "--out", "maps")
        trial.run(*arguments, environment=environment).require(0)


def _cache(trial, disk):
    place = {"NUMBA_CACHE_DIR": ""}  # which would come before the other one
    place[trial.rng.choice(("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"))] = str(disk)
    finished = trial.run(*collect(ROWS, "log.parquet"), environment=place)
    finished.require(0)
    assert "cannot be cached" in finished.err, "no notice about the cache"
    checks.require_same_outputs(trial.folder, trial.prepared)
