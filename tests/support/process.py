"""Commands of rblspi in processes of their own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from typing import NamedTuple

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

    def require(self, *codes):
        """Refuse any other exit code."""
        assert self.code in codes, f"exit code {self.code}, not {codes}: {self.err.strip()[-500:]}"

    def require_sentence(self, *names):
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

    def __init__(self, folder, *arguments, prelude="", environment=None):
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

    @property
    def out(self):
        """What it has printed so far."""
        return self._out.read_text(errors="replace")

    def until(self, condition):
        """Wait until something is the case, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and not condition():
            assert time.monotonic() < deadline, f"no progress after {PATIENCE:.0f} s: {self.line}"
            time.sleep(0.002)

    def until_begun(self):
        """Wait until the packages are imported and the command begins."""
        self.until(self._begun.exists)

    def signal(self, number, *, to_all=False):
        """Send a signal to the process, or to all processes of its group as a terminal does."""
        if self._process.poll() is None:
            (os.killpg if to_all else os.kill)(self._process.pid, number)

    def wait(self, patience=PATIENCE):
        """Wait for the end of the command and of all processes that it started."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"not done after {patience:.0f} s: {self.line}") from error
        deadline = time.monotonic() + 20.0
        while self._group_exists():
            assert time.monotonic() < deadline, f"a process outlives its command: {self.line}"
            time.sleep(0.01)
        out, err = self.out, self._err.read_text(errors="replace")
        assert "Traceback (most recent call last)" not in out + err, err.strip()[-1500:]
        return Finished(self._process.returncode, out, err)

    def end(self):
        """Kill whatever is left of it."""
        if self._process.poll() is None or self._group_exists():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _group_exists(self):
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True
