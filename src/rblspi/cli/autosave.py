"""Save an agent while it learns, so that it survives signals, failures and power cuts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rblspi.cli.interrupts import handling
from rblspi.core.progress import say

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

#: seconds between two saves: the most that a hard kill loses
SAVE_EVERY = 60.0


@contextmanager
def autosaving(
    agent: Agent, file: Path | None, every: float | None = None
) -> Iterator[Callable[[], bool]]:
    """Save the agent at once, at intervals, and at the end, even if learning fails.

    After one signal, the agent finishes the steps under way. A second one interrupts the learning,
    but never the saving. ``every`` is in seconds. Yields a function that tells whether a signal
    came.
    """
    received, saving = 0, True

    def stop(number: int, frame: object) -> None:
        nonlocal received
        received += 1
        agent.stop()
        if saving:
            say("saving what was learnt, one moment ...")
        elif received > 1:
            raise KeyboardInterrupt

    def save() -> None:
        if file is not None:
            agent.save(file)

    with handling(stop):
        save()  # a full disk is noticed before the work, not after it
        try:
            with _saving(agent, file, every or SAVE_EVERY):
                saving = False
                try:
                    yield lambda: received > 0
                finally:
                    saving = True
        except BaseException as error:
            save()
            if file is not None:
                error.add_note(f"What was learnt until then is saved in {file.parent}")
            raise
        save()


@contextmanager
def _saving(agent: Agent, file: Path | None, every: float) -> Iterator[None]:
    """Save the agent from another thread at regular intervals."""
    if file is None:
        yield
        return
    finished = threading.Event()

    def checkpoint() -> None:
        while not finished.wait(every):
            try:
                agent.save(file)
            except OSError as error:
                say(f"the agent could not be saved: {error}")

    thread = threading.Thread(target=checkpoint, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
