"""Nothing is shown when quiet, a line now and then in a log, a bar on a terminal."""

import io
import sys

import pytest

from rblspi.core import progress as module
from rblspi.core.progress import duration, progress, say


def test_quiet_shows_nothing(capfd):
    with progress(10.0, quiet=True) as tell:
        for done in range(11):
            tell(done, "words")
    assert capfd.readouterr() == ("", "")


def test_a_log_gets_no_line_from_what_is_soon_done(capfd):
    with progress(10.0) as tell:
        for done in range(11):
            tell(done, "words")
    assert capfd.readouterr() == ("", "")


def test_a_log_gets_a_line_now_and_then(capfd, monkeypatch):
    seconds = iter(range(0, 1000, 10))  # every look at the clock is ten seconds later
    monkeypatch.setattr(module.time, "monotonic", lambda: next(seconds))
    with progress(4.0) as tell:
        for done in range(1, 5):
            tell(done, f"{done} of 4")
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "rblspi: 75%  3 of 4\n"


def test_a_terminal_gets_a_bar_and_words_are_no_markup(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress(2.0) as tell:
        tell(1.0, "[red]half[/red]")
        tell(2.0, "[bold]all")
    shown = sys.stderr.getvalue()
    assert "100%" in shown
    assert "[bold]all" in shown


def test_what_is_said_goes_to_standard_error(capfd):
    say("hello")
    assert capfd.readouterr() == ("", "rblspi: hello\n")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (40, "40 s"), (89, "89 s"), (720, "12 min"), (11_520, "3.2 h")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
