"""Ctrl-C, SIGTERM and SIGHUP end every command alike: nothing half-written, exit code 130."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from rblspi.cli.interrupts import SIGNALS, handling, interruptible
from tests.support.command import run, said

CAR = "rblspi/MountainCar-v0"

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def defaults():
    """Signals as in a terminal: whatever runs the tests in the background may ignore them."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("files")
    log, basis = folder / "log.parquet", ("--basis", "rbf:2", "--quiet")
    assert run("train", CAR, *basis, "--timesteps", 50, "--save", folder / "agent") == 0
    assert run("collect", CAR, "--transitions", 300, "--out", log, "--quiet") == 0
    return folder


#: a command, and where the signals meet it
COMMANDS = [
    ("collect rblspi/MountainCar-v0 --transitions 99 --out old.parquet --quiet", "os.fsync"),
    ("fit FILES/log.parquet --basis rbf:2 --save . --quiet", "os.fsync"),
    ("show FILES/agent --resolution 3 --out .", "os.fsync"),
    ("watch FILES/agent --steps 3 --out old.gif", "os.fsync"),
    ("evaluate FILES/agent", "rblspi.cli.saved.Selection.load"),
    ("reproduce chain --runs 1 --out .", "rblspi.experiments.runner.prepare"),
    ("list", "rich.console.Console.rule"),
]


@pytest.mark.filterwarnings("ignore:after .* iterations of LSPI")
@pytest.mark.parametrize(
    ("line", "where", "number"),
    [(*command, number) for command, number in zip(COMMANDS, cycle(SIGNALS), strict=False)],
    ids=[line.split()[0] for line, _ in COMMANDS],
)
def test_a_command_tidies_up_and_says_that_it_was_interrupted(
    line, where, number, files, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("old.parquet", "policy.npz", "maps.png", "old.gif"):
        Path(name).write_text("old")
    sent = []

    def send(*_, **__):
        sent.append(number)
        signal.raise_signal(number)

    monkeypatch.setattr(where, send)
    tidy_up = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda *a, **k: [sent and send(), tidy_up(*a, **k)])
    assert run(*line.replace("FILES", str(files)).split()) == 130
    assert said(capsys)[-1] == "rblspi: interrupted"
    assert sent
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    left.pop("results.sqlite", None)  # where runs are committed one by one
    assert left == dict.fromkeys(("old.parquet", "policy.npz", "maps.png", "old.gif"), b"old")


def test_an_error_that_an_interruption_causes_is_not_reported_as_one(monkeypatch, capsys):
    """A package may catch KeyboardInterrupt, and then stumble over what it has not finished."""

    def load(*_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise AttributeError("partially initialized module") from None

    monkeypatch.setattr("rblspi.cli.saved.Selection.load", load)
    assert run("evaluate", "agent") == 130
    assert said(capsys) == ["rblspi: interrupted"]


def test_handlers_are_as_before_in_the_end():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), interruptible() as interrupted:  # noqa: PT012
        signal.raise_signal(signal.SIGTERM)  # ignored from the beginning, as nohup does to SIGHUP
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
    assert interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_an_interruption_that_python_drops_comes_again():
    class Fragile:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012
        Fragile()
        time.sleep(60)


def test_an_interruption_that_a_package_swallows_comes_again():
    def import_something():
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interruptible():  # noqa: PT012
        import_something()
        import_something()
        time.sleep(60)
    assert time.monotonic() - start < 30


def test_tidying_up_is_not_disturbed_by_what_comes_again(monkeypatch):
    tidy, reminder = [], 0.1
    monkeypatch.setattr("rblspi.cli.interrupts.REMINDER", reminder)
    with pytest.raises(OSError, match="full"), interruptible():  # noqa: PT012
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(4 * reminder)
            tidy.append("files")
            try:
                raise OSError("the disk is full")
            finally:
                time.sleep(4 * reminder)
                tidy.append("folders")
    assert tidy == ["files", "folders"]
    time.sleep(2 * reminder)  # nothing comes any more


def test_other_threads_leave_the_handlers_alone():
    found = []

    def work():
        with handling(lambda *_: None):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_signals_on_the_way_out_do_not_change_the_exit_code():
    code = (
        "import signal, weakref\n"
        "signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)\n"
        "for number in signals:\n"
        "    signal.signal(number, signal.default_int_handler)\n"
        "from rblspi.cli import main\n"
        "class Last:\n"
        "    def __del__(self, send=signal.raise_signal, signals=signals):\n"
        "        for number in signals: send(number)\n"
        "last = Last()\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rblspi ")
