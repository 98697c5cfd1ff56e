"""A trial: a folder of its own, random choices, and real commands in processes of their own."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.chaos.prepared import Prepared

#: seconds after which a command counts as hung
PATIENCE = 120.0

#: files that a trial writes for itself, which no command makes or removes
PRIVATE = ".trial-"

#: a shell that runs commands in the background makes them ignore Ctrl-C, and so does nohup SIGHUP
HEARING = (
    "import signal as s; s.signal(s.SIGINT, s.default_int_handler); s.signal(s.SIGHUP, s.SIG_DFL)"
)


class Finished(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    def require(self, *codes: int) -> None:
        """Refuse any other exit code."""
        assert self.code in codes, f"exit code {self.code}, not {codes}: {self.err.strip()[-500:]}"

    def require_sentence(self, *names: str) -> None:
        """Refuse anything but an error in one sentence, which names one of these."""
        self.require(1, 2)
        sentence = (self.err.strip().splitlines() or [""])[-1]
        ours = sentence.startswith("rblspi: ") and "should not happen" not in sentence
        assert ours, f"not a sentence: {sentence!r}"
        named = not names or any(name in sentence for name in names)
        assert named, f"the error names none of {names}: {sentence!r}"


class Running:
    """A command that has been started in a folder, in a process group of its own.

    ``prelude`` is Python source that runs before the command, and ``environment`` has variables to
    set.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: object,
        prelude: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        private = folder / f"{PRIVATE}{time.monotonic_ns()}"
        self._begun, self._out, self._err = (
            private.with_suffix(f".{name}") for name in ("begun", "out", "err")
        )
        source = (
            f"{HEARING}\n{prelude}\nfrom rblspi.cli import main\n"
            f"open({str(self._begun)!r}, 'w').close()\n"
            "main()"
        )
        words = [str(argument) for argument in arguments]
        self.line = shlex.join(["rblspi", *words])
        print(self.line)
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", source, *words],
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is the case, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and not condition():
            assert time.monotonic() < deadline, f"no progress after {PATIENCE:.0f} s: {self.line}"
            time.sleep(0.002)

    def until_begun(self) -> None:
        """Wait until the packages are imported and the command begins."""
        self.until(self._begun.exists)

    def signal(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the process, or to all processes of its group as a terminal does."""
        if self._process.poll() is None:
            (os.killpg if to_all else os.kill)(self._process.pid, number)

    def wait(self, patience: float = PATIENCE) -> Finished:
        """Wait for the end of the command and of all processes that it started."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"not done after {patience:.0f} s: {self.line}") from error
        deadline = time.monotonic() + 20.0
        while self._group_exists():
            assert time.monotonic() < deadline, f"a process outlives its command: {self.line}"
            time.sleep(0.01)
        out, err = (file.read_text(errors="replace") for file in (self._out, self._err))
        assert "Traceback (most recent call last)" not in out + err, err.strip()[-1500:]
        return Finished(self._process.returncode, out, err)

    def end(self) -> None:
        """Kill whatever is left of it."""
        if self._process.poll() is None or self._group_exists():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _group_exists(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True


class Trial:
    """What a trial works with.

    Parameters
    ----------
    name : str
        Decides all random choices.
    prepared : Prepared
        What commands write if nobody disturbs them.
    folder : Path
        Empty at first.
    """

    def __init__(self, name: str, prepared: Prepared, folder: Path) -> None:
        self.prepared, self.folder = prepared, folder
        self.rng = random.Random(name)
        self._started: list[Running] = []

    def start(self, *arguments: object, **options: Any) -> Running:
        """Start a command in the folder of the trial."""
        running = Running(self.folder, *arguments, **options)
        self._started.append(running)
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
        left = [p.name for p in self.folder.rglob(".*") if not p.name.startswith(PRIVATE)]
        assert not left, f"left behind: {', '.join(left)}"

    def end(self) -> None:
        """End the commands that are still running."""
        for running in self._started:
            running.end()
