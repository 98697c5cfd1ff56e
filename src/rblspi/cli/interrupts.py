"""Ctrl-C, SIGTERM and SIGHUP: three ways to ask a command to end, treated alike."""

from __future__ import annotations

import atexit
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

Handler = Callable[[int, object], None]

#: signals that ask a process to end; SIGHUP does not exist everywhere
SIGNALS = [s for s in signal.Signals if s.name in ("SIGINT", "SIGTERM", "SIGHUP")]

#: seconds that an interrupted command has for tidying up undisturbed
TIDYING = 10.0

#: seconds after which an interruption that nobody handles is repeated
REMINDER = 0.5


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Let a function handle these signals, unless they are ignored, as ``nohup`` ignores SIGHUP.

    Only the main thread can handle signals; in any other one, nothing is changed. A handler that
    was installed in the meantime stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, report = _install(handler), sys.unraisablehook

    def report_others(ignored: Any) -> None:
        """Do not report a KeyboardInterrupt that Python drops while it deletes an object."""
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            report(ignored)

    sys.unraisablehook = report_others
    try:
        yield
    finally:
        sys.unraisablehook = report
        for number, former in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, former)


def _install(handler: Handler | signal.Handlers) -> dict[signal.Signals, Any]:
    """Handle the signals that are not ignored, and return their former handlers."""
    former = {number: signal.getsignal(number) for number in SIGNALS}
    heard = [number for number in SIGNALS if former[number] not in (signal.SIG_IGN, None)]
    return {number: signal.signal(number, handler) for number in heard}


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Raise KeyboardInterrupt at a signal; signals soon afterwards do not disturb the tidying up.

    Python drops an exception that is raised while it deletes an object, and so do some packages, as
    PyArrow while it imports pandas. It is therefore raised again, as long as nobody handles it.
    Yields a function that tells whether a signal came.
    """
    last, over = -math.inf, threading.Event()
    reminders: list[threading.Thread] = []

    def interrupt(number: int, frame: object) -> None:
        nonlocal last
        if _is_being_handled() and time.monotonic() - last < TIDYING:
            return
        last = time.monotonic()
        if not reminders and hasattr(signal, "pthread_kill"):  # not on Windows
            reminders.append(threading.Thread(target=_remind, args=(number, over), daemon=True))
            reminders[0].start()
        raise KeyboardInterrupt

    with handling(interrupt):
        try:
            yield lambda: last > -math.inf
        finally:
            over.set()
            for reminder in reminders:
                reminder.join()  # nobody would hear its signal afterwards


def _is_being_handled() -> bool:
    """Whether a KeyboardInterrupt is on its way, or has caused the error that is."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _remind(number: int, over: threading.Event) -> None:
    while not over.wait(REMINDER):
        signal.pthread_kill(threading.main_thread().ident or 0, number)


def end_process(code: int) -> NoReturn:
    """End a process whose work is done; signals on its way out do not change its exit code."""
    try:
        sys.stdout.flush()
    except OSError:  # reported already; Python would report it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    done = time.monotonic()

    def end(number: int, frame: object) -> None:
        if time.monotonic() - done > TIDYING:  # a thread of another package does not end
            os._exit(code)

    _install(end)
    atexit.register(_install, signal.SIG_IGN)  # from now on, Python ignores signals
    sys.exit(code)
