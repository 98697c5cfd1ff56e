"""Progress on the error stream: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: tell(done, words): how much of the total is done by now, and a few words about it
Tell = Callable[[float, str], None]

#: seconds between two lines where no terminal shows a bar
LINE_EVERY = 30.0


def say(message: str) -> None:
    """Print a line to standard error, after the name of this program."""
    print(f"rblspi: {message}", file=sys.stderr, flush=True)


@contextmanager
def progress(total: float, quiet: bool = False) -> Iterator[Tell]:
    """A progress bar that the yielded function updates; nothing at all if ``quiet``.

    Where standard error is not a terminal, the words are printed as a line now and then.
    """
    if quiet:
        yield lambda done, words: None
    elif not sys.stderr.isatty():
        yield _lines(total)
    else:
        with _bar(total) as tell:
            yield tell


def _lines(total: float) -> Tell:
    last = time.monotonic()

    def tell(done: float, words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            say(f"{done / total:.0%}  {words}")

    return tell


@contextmanager
def _bar(total: float) -> Iterator[Tell]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        BarColumn(24),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=5) as bar:
        task = bar.add_task("", total=total)

        def tell(done: float, words: str) -> None:
            bar.update(task, completed=done, description=escape(words))

        yield tell


def duration(seconds: float) -> str:
    """Seconds in words: ``40 s``, ``12 min`` or ``3.2 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
