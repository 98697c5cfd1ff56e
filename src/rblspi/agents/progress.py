"""What a person sees while an agent learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

#: tell(steps made, (length, return) rows of finished episodes, how the exploration stands)
Progress = Callable[[int, NDArray[np.float64], Mapping[str, float]], None]


@contextmanager
def no_progress(total_timesteps: int | None, episodes: int | None) -> Iterator[Progress]:
    """Say nothing."""
    yield lambda made, finished, news: None


@contextmanager
def progress_on_terminal(total_timesteps: int | None, episodes: int | None) -> Iterator[Progress]:
    """A bar with steps, episodes, mean return of the last 100, exploration and time left.

    Where both totals are given, the bar follows the one that is nearer to its end.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    recent: deque[NDArray[np.float64]] = deque(maxlen=100)
    steps = count = 0
    columns = (
        SpinnerColumn(),
        BarColumn(24),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True), refresh_per_second=5) as bar:
        task = bar.add_task("", total=1.0)

        def tell(made: int, finished: NDArray[np.float64], news: Mapping[str, float]) -> None:
            nonlocal steps, count
            steps += made
            count += len(finished)
            recent.extend(finished[-100:])
            parts = [f"step {steps:,}", f"episode {count:,}"]
            if recent:
                length, earned = np.mean(recent, axis=0)
                parts += [f"return {earned:.4g}", f"length {length:.4g}"]
            parts += [f"{name} {value:.2g}" for name, value in news.items()]
            shares = [
                made / total
                for made, total in ((steps, total_timesteps), (count, episodes))
                if total is not None
            ]
            bar.update(task, completed=max(shares), description="  ".join(parts))

        yield tell
