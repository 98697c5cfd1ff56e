"""What a person sees while an agent learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

#: tell(steps made, (length, return) rows of finished episodes, a few words)
Progress = Callable[[int, NDArray[np.float64], str], None]


@contextmanager
def no_progress(total_timesteps: int | None, episodes: int | None) -> Iterator[Progress]:
    """Say nothing."""
    yield lambda made, finished, news: None


@contextmanager
def progress_on_terminal(total_timesteps: int | None, episodes: int | None) -> Iterator[Progress]:
    """A bar with the episode, mean length and return of the last 100, and the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    by_episode = total_timesteps is None
    unit = "episodes" if by_episode else "steps"
    recent: deque[NDArray[np.float64]] = deque(maxlen=100)
    count = 0
    columns = (
        MofNCompleteColumn(),
        TextColumn(unit),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns) as bar:
        task = bar.add_task("", total=episodes if by_episode else total_timesteps)

        def tell(made: int, finished: NDArray[np.float64], news: str) -> None:
            nonlocal count
            count += len(finished)
            recent.extend(finished[-100:])
            text = news
            if recent:
                length, earned = np.mean(recent, axis=0)
                text = f"episode {count}, length {length:.1f}, return {earned:.1f}, {news}"
            bar.update(task, advance=len(finished) if by_episode else made, description=text)

        yield tell
