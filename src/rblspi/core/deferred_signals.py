"""Signals that arrive while Numba compiles wait until the compiler can be left.

While modules of LLVM are linked, Python and LLVM both count as the owner of a module for a moment.
An exception in that moment, such as Ctrl-C raises, makes both of them free it, and the process ends
with a segmentation fault. Handlers that are Python functions are therefore called between two
passes of the compiler, where it expects errors, and not in the middle of one.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from numba.core import event

Handler = Callable[[int, Any], Any]


class _Compilation(event.Listener):  # type: ignore[misc]
    """Listens to the lock of the compiler, which may be taken again by the thread that has it.

    Only the main thread handles signals, so compilations in other threads need no care. A signal
    that interrupts this code itself finds every handler either in its place or called by `_arrive`.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._waiting: deque[int] = deque()
        self._depth = 0

    def on_start(self, event: Any) -> None:
        """Take the place of all handlers before the lock is taken."""
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth == 0:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler) and handler != self._arrive:
                    self._handlers[number] = handler
                    signal.signal(number, self._arrive)
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Put the handlers back after the lock was given up, and repeat the signals that wait."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            for number, handler in self._handlers.items():
                if signal.getsignal(number) == self._arrive:
                    signal.signal(number, handler)
            while self._waiting:
                signal.raise_signal(self._waiting.popleft())

    def _arrive(self, number: int, frame: Any) -> None:
        if self._depth:
            self._waiting.append(number)
        else:
            self._handlers[number](number, frame)

    def call_handlers(self) -> None:
        """Handle the signals that wait; a handler may raise an exception."""
        while self._depth and self._waiting:
            number = self._waiting.popleft()
            self._handlers[number](number, sys._getframe())


class _Passes(event.Listener):  # type: ignore[misc]
    """Listens to the passes of a compilation."""

    def __init__(self, compilation: _Compilation) -> None:
        self._compilation = compilation

    def on_start(self, event: Any) -> None:
        """Nothing."""

    def on_end(self, event: Any) -> None:
        """A pass has ended, and the next one has not begun."""
        if threading.current_thread() is threading.main_thread():
            self._compilation.call_handlers()


def defer_signals() -> None:
    """From now on, signals that arrive during a compilation wait."""
    compilation = _Compilation()
    event.register("numba:compiler_lock", compilation)
    event.register("numba:run_pass", _Passes(compilation))
