"""Delay signals during operations that an exception must not interrupt.

A handler that is a Python function, such as that of Ctrl-C, may raise an exception between any two
operations. There are two places where this does harm:

- While Numba compiles, Python and LLVM both count as the owner of a module for a moment. If an
exception arrives then, both free it, and the process ends with a segmentation fault. Handlers are
  therefore called between two passes of the compiler, where it expects errors.
- While an agent takes in a transition, its sums, its memory and its counts agree only afterwards.
  Handlers are therefore called while the environment is at work, and not in between.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

Handler = Callable[[int, Any], Any]

#: signals whose handlers may raise an exception: requests to end, time limits, and users' own
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGALRM", "SIGUSR1", "SIGUSR2")
_SIGNALS = [number for number in signal.Signals if number.name in _NAMES]
_LOCK = "numba:compiler_lock"


class Deferral:
    """Replaces signal handlers between `begin` and `end`, which may be nested.

    Only the main thread handles signals, so that nothing happens in other threads. A signal that
    interrupts this code itself finds every handler either in its place or called by `_arrive`.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._waiting: deque[int] = deque()
        self._depth = 0
        self._open = False

    def begin(self) -> None:
        """From now on, signals wait."""
        if not _in_main_thread():
            return
        if self._depth == 0:
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler) and handler != self._arrive:
                    self._handlers[number] = handler
                    signal.signal(number, self._arrive)
        self._depth += 1

    def end(self) -> None:
        """Put the handlers back, and repeat the signals that wait."""
        if not _in_main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            for number, handler in self._handlers.items():
                if signal.getsignal(number) == self._arrive:
                    signal.signal(number, handler)
            while self._waiting:
                signal.raise_signal(self._waiting.popleft())

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let signals wait."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def open(self) -> None:
        """Handle signals at once, until `close`."""
        self._open = True
        if self._waiting:
            self.handle_waiting()

    def close(self) -> None:
        """Let signals wait again."""
        self._open = False

    def handle_waiting(self) -> None:
        """Handle the signals that wait; a handler may raise an exception."""
        while self._depth and self._waiting and _in_main_thread():
            number = self._waiting.popleft()
            self._handlers[number](number, sys._getframe())

    def _arrive(self, number: int, frame: Any) -> None:
        if self._depth and not self._open:
            self._waiting.append(number)
        else:
            self._handlers[number](number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class _Compilation(event.Listener):  # type: ignore[misc]
    """Follows the passes of the compiler and its lock, which is re-entrant."""

    def __init__(self) -> None:
        self._deferral = Deferral()

    def on_start(self, event: Any) -> None:
        """The lock will be taken, or a pass begins."""
        if event.kind == _LOCK:
            self._deferral.begin()

    def on_end(self, event: Any) -> None:
        """The lock was given up, or a pass has ended and the next one has not begun."""
        if event.kind == _LOCK:
            self._deferral.end()
        else:
            self._deferral.handle_waiting()


def defer_while_compiling() -> None:
    """From now on, signals that arrive during a compilation wait."""
    listener = _Compilation()
    for kind in (_LOCK, "numba:run_pass"):
        event.register(kind, listener)
