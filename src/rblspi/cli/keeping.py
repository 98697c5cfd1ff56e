"""Keeping what a training run has learnt, whatever ends it: signals, failures, power cuts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rblspi.core.progress import say

if TYPE_CHECKING:
    from rblspi.online import Agent

#: seconds between two checkpoints: the most that a hard kill loses
CHECKPOINT_EVERY = 60.0

#: what asks a process to end; SIGHUP does not exist everywhere
SIGNALS = [s for s in signal.Signals if s.name in ("SIGINT", "SIGTERM", "SIGHUP")]


@contextmanager
def keeping(agent: Agent, file: Path | None) -> Iterator[Callable[[], bool]]:
    """Save the agent now and then, and at the end, also if the learning fails or is interrupted.

    A signal lets the agent finish the steps under way. A second one breaks the learning off, but
    never the saving. Yields a function that tells whether a signal came.
    """
    received, saving = 0, False

    def stop(number: int, frame: object) -> None:
        nonlocal received
        received += 1
        agent.stop()
        if saving:
            say("saving what was learnt, one moment ...")
        elif received > 1:
            raise KeyboardInterrupt

    def save() -> None:
        nonlocal saving
        saving = True
        if file is not None:
            agent.save(file)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        with _checkpoints(agent, file):
            yield lambda: received > 0
    except BaseException as error:
        save()
        if file is not None:
            error.add_note(f"What was learnt until then is saved in {file.parent}")
        raise
    else:
        save()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _checkpoints(agent: Agent, file: Path | None) -> Iterator[None]:
    """Save the agent from another thread at regular intervals."""
    if file is None:
        yield
        return
    finished = threading.Event()

    def checkpoint() -> None:
        while not finished.wait(CHECKPOINT_EVERY):
            try:
                agent.save(file)
            except OSError as error:
                say(f"no checkpoint could be written: {error}")

    thread = threading.Thread(target=checkpoint, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
