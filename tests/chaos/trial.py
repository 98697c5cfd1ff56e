"""A trial: a folder of its own, random choices that its name decides, and commands."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.command import PRIVATE, Failure, Finished, Running, Skipped, Wrong
from tests.chaos.prepared import Prepared

#: of the temporary folders
PREFIX = "rblspi-chaos-"


class Trial:
    """What a trial works with.

    Parameters
    ----------
    name : str
        Decides all random choices, together with the seed.
    seed : int
    prepared : Prepared
        What commands write if nobody disturbs them.
    folder : Path
        Empty, and removed in the end.
    """

    def __init__(self, name: str, seed: int, prepared: Prepared, folder: Path) -> None:
        self.prepared, self.folder = prepared, folder
        self.rng = random.Random(f"{seed}/{name}")
        self.lines: list[str] = []
        self._started: list[Running] = []

    def start(self, *arguments: object, **options: Any) -> Running:
        """Start a command in the folder of the trial."""
        running = Running(self.folder, *arguments, **options)
        self._started.append(running)
        self.lines.append(running.line)
        return running

    def run(self, *arguments: object, **options: Any) -> Finished:
        """Run a command to its end."""
        return self.start(*arguments, **options).wait()

    def pause(self, longest: float) -> None:
        """Let a random time pass."""
        time.sleep(self.rng.uniform(0.0, longest))

    def copy(self, source: Path, name: str) -> Path:
        """Copy something that was prepared into the folder of the trial."""
        target = self.folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        return target

    def require_tidy(self) -> None:
        """Refuse temporary files that a command left."""
        left = [p for p in self.folder.rglob(".*") if not p.name.startswith(PRIVATE)]
        if left:
            raise Wrong(f"left behind: {', '.join(p.name for p in left)}")

    def end(self) -> None:
        """End the commands that are still running."""
        for running in self._started:
            running.end()


class Outcome(NamedTuple):
    """How a trial ended: "kept", "skipped", or the name of a failure."""

    trial: str
    verdict: str
    reason: str
    seconds: float
    lines: tuple[str, ...]


def carry_out(name: str, seed: int, prepared: Prepared, what: Callable[[Trial], None]) -> Outcome:
    """Make one trial."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        trial = Trial(name, seed, prepared, Path(folder))
        verdict, reason = "kept", ""
        try:
            what(trial)
        except Skipped as error:
            verdict, reason = "skipped", str(error)
        except Failure as error:
            verdict, reason = error.name, str(error)
        except Exception as error:  # a check that could not read what it was to check
            verdict, reason = "wrong", f"{type(error).__name__}: {error}"
        finally:
            trial.end()
    return Outcome(name, verdict, reason, time.perf_counter() - start, tuple(trial.lines))
