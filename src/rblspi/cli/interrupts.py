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

#: what asks a process to end; SIGHUP does not exist everywhere
SIGNALS = [s for s in signal.Signals if s.name in ("SIGINT", "SIGTERM", "SIGHUP")]

#: seconds in which a command that was interrupted may tidy up undisturbed
TIDYING = 10.0


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Let a function handle these signals, apart from those that are ignored, as by ``nohup``.

    Only the main thread can do so; in any other one, nothing is changed. A handler that was
    installed in the meantime stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _install(handler)
    try:
        yield
    finally:
        for number, former in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, former)


def _install(handler: Handler | signal.Handlers) -> dict[signal.Signals, Any]:
    """Handle the signals that are not ignored; returns what handled them before."""
    former = {number: signal.getsignal(number) for number in SIGNALS}
    heard = [number for number in SIGNALS if former[number] not in (signal.SIG_IGN, None)]
    return {number: signal.signal(number, handler) for number in heard}


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Raise KeyboardInterrupt at a signal; those that follow soon do not disturb the tidying up.

    Yields a function that tells whether a signal came.
    """
    last = -math.inf

    def interrupt(number: int, frame: object) -> None:
        nonlocal last
        if time.monotonic() - last > TIDYING:
            last = time.monotonic()
            raise KeyboardInterrupt

    with handling(interrupt):
        yield lambda: last > -math.inf


def end_process(code: int) -> NoReturn:
    """End a process whose work is done; signals on its way out do not change its exit code."""
    try:
        sys.stdout.flush()
    except OSError:  # which has been said; Python would say it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _install(lambda number, frame: os._exit(code))  # at once, should a thread not end
    atexit.register(_install, signal.SIG_IGN)  # from there on, Python hears no signals
    sys.exit(code)
