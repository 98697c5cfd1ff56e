"""Real commands in processes of their own, and what is done to them while they run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

#: seconds after which a command counts as hung
PATIENCE = 120.0

#: files that a trial writes for itself, which no command makes or removes
PRIVATE = ".trial-"

#: a shell that runs commands in the background makes them ignore Ctrl-C, and so does nohup SIGHUP
HEARING = (
    "import signal as s; s.signal(s.SIGINT, s.default_int_handler); s.signal(s.SIGHUP, s.SIG_DFL)"
)


class Failure(AssertionError):
    """A promise that was not kept."""

    name = "wrong"


class Wrong(Failure):
    """Another number, exit code or message than was promised, or a file left behind."""


class Lost(Failure):
    """Something that was committed is not there any more."""

    name = "lost"


class Hung(Failure):
    """A command, or a process that it started, does not end."""

    name = "hung"


class Traceback(Failure):
    """A traceback where a sentence was promised."""

    name = "traceback"


class Skipped(Exception):
    """This machine does not allow the trial."""


class Finished(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line on the error stream."""
        return (self.err.strip().splitlines() or [""])[-1]

    def require(self, *codes: int) -> None:
        """Refuse any other exit code."""
        if self.code not in codes:
            raise Wrong(f"exit code {self.code}, not {codes}: {self.err.strip()[-500:]}")

    def require_sentence(self, *names: str) -> None:
        """Refuse anything but an error in one sentence, which names one of these."""
        self.require(1, 2)
        if not self.sentence.startswith("rblspi: ") or "should not happen" in self.sentence:
            raise Wrong(f"not a sentence: {self.sentence!r}")
        if names and not any(name in self.sentence for name in names):
            raise Wrong(f"the error names none of {names}: {self.sentence!r}")


class Running:
    """A command that has been started, in a process group of its own.

    Parameters
    ----------
    folder : Path
        Where it runs.
    arguments : sequence
        What is typed after ``rblspi``.
    prelude : str
        Python source that runs before the command.
    environment : mapping, optional
        Variables to set.
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
        limits = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", source, *words],
                cwd=folder,
                env={**os.environ, **limits, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is the case, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and not condition():
            if time.monotonic() > deadline:
                raise Hung(f"no progress after {PATIENCE:.0f} s: {self.line}")
            time.sleep(0.002)

    def until_begun(self) -> None:
        """Wait until the packages are imported and the command begins."""
        self.until(self._begun.exists)

    def signal(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the process, or to all processes of its group as a terminal does."""
        if self._process.poll() is not None:
            return
        if to_all:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def wait(self, patience: float = PATIENCE) -> Finished:
        """Wait for the end of the command and of all processes that it started."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            raise Hung(f"not done after {patience:.0f} s: {self.line}") from None
        deadline = time.monotonic() + 20.0
        while self._group_exists():
            if time.monotonic() > deadline:
                raise Hung(f"a process outlives its command: {self.line}")
            time.sleep(0.01)
        finished = Finished(
            self._process.returncode,
            self._out.read_text(errors="replace"),
            self._err.read_text(errors="replace"),
        )
        if "Traceback (most recent call last)" in finished.out + finished.err:
            raise Traceback(f"{finished.err.strip()[-1500:]}")
        return finished

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
