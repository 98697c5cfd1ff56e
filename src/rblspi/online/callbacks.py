"""Logs for other tools: Stable-Baselines3's monitor file, and TensorBoard.

Both are callbacks: ``agent.learn(50_000, callback=[MonitorFile("monitor.csv"), ...])``.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

#: episodes behind the means of TensorBoard, as in Stable-Baselines3
SHOWN_EPISODES = 100


class _Log(ABC):
    """A context that closes the log in the end."""

    @abstractmethod
    def close(self) -> None:
        """Write what is still in memory, and close the log."""

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log."""
        self.close()


class MonitorFile(_Log):
    """A row for every episode in the format of Stable-Baselines3: return, length, seconds.

    ``stable_baselines3.common.monitor.load_results`` reads a folder with such files.

    Parameters
    ----------
    path : path
        Ends in ``monitor.csv``, or the reader will not find it.
    env_id : str, optional
        For the first line of the file.
    append_to : int, optional
        Append to the first so many episodes of a file that exists already; seconds count from its
        start. Later ones, which a run that was killed did not save, are removed.
    """

    def __init__(
        self, path: str | PathLike[str], env_id: str | None = None, *, append_to: int | None = None
    ) -> None:
        if not str(path).endswith("monitor.csv"):
            raise ValueError(f"path={str(path)!r} must end in monitor.csv, as its readers expect")
        file = Path(path)
        if append_to is not None and file.exists():
            self._start = _start_of(file)
            whole = _keep_rows(file, append_to)
            self._file = file.open("a", encoding="utf-8", newline="")
            self._file.write("" if whole else "\n")
            return
        self._file = file.open("w", encoding="utf-8", newline="")
        self._start = time.time()
        header = json.dumps({"t_start": self._start, "env_id": env_id})
        self._file.write(f"#{header}\nr,l,t\n")

    def __call__(self, agent: Agent) -> None:
        """Write the latest episode."""
        length, episode_return = agent.episodes[-1]
        seconds = time.time() - self._start
        self._file.write(f"{round(float(episode_return), 6)},{int(length)},{round(seconds, 6)}\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _start_of(file: Path) -> float:
    """When the log in a file began, in seconds since 1970."""
    with file.open("rb") as lines:
        first = lines.readline()
    try:
        return float(json.loads(first.removeprefix(b"#"))["t_start"])
    except (ValueError, TypeError, LookupError):
        raise ValueError(
            f"{file} does not begin as a monitor file does, so nothing is appended to it: rename it"
        ) from None


def _keep_rows(file: Path, count: int) -> bool:
    """Remove all rows after the first ones; returns whether the last row is whole."""
    rows = file.read_bytes().splitlines(keepends=True)[: 2 + count]
    os.truncate(file, sum(map(len, rows)))
    return rows[-1].endswith(b"\n")


class TensorBoard(_Log):
    """Mean return and length of the latest 100 episodes, and diagnostics, for TensorBoard.

    The names are those of Stable-Baselines3, so that its runs and ours share a chart. Every run
    needs a directory of its own.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise ImportError(
                'TensorBoard logs need tensorboardX: pip install "rblspi[tensorboard]"'
            ) from error
        self._writer: Any = SummaryWriter(str(directory))

    def __call__(self, agent: Agent) -> None:
        """Write the latest episode."""
        length, episode_return = agent.episodes[-SHOWN_EPISODES:].mean(axis=0)
        step = agent.num_timesteps
        self._writer.add_scalar("rollout/ep_rew_mean", episode_return, step)
        self._writer.add_scalar("rollout/ep_len_mean", length, step)
        for name, value in agent.diagnostics().items():
            self._writer.add_scalar(f"train/{name}", value, step)

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()
