"""Callbacks for learning agents: logs for other tools, checkpoints, evaluations.

All are callbacks: ``agent.learn(50_000, callback=[MonitorFile("monitor.csv"), ...])``. A callback
with a method ``steps_to_go(agent)`` is called after that many steps, any other after every episode.
"""

from __future__ import annotations

import json
import os
import time
from abc import abstractmethod
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rblspi.core import check
from rblspi.core.files import write_text
from rblspi.rollout.evaluate import evaluate

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

#: episodes in the means of TensorBoard, as in Stable-Baselines3
SHOWN_EPISODES = 100
#: the file of `EvalCallback`
EVALUATIONS = "evaluations.csv"


class _Log(AbstractContextManager["_Log"]):
    """A callback that is closed at the end of a context."""

    def __enter__(self) -> Self:
        """Use as a context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write what is still in memory."""


class MonitorFile(_Log):
    """A row for every episode in the format of Stable-Baselines3: return, length, seconds.

    ``stable_baselines3.common.monitor.load_results`` reads a folder with such files.

    Parameters
    ----------
    path : path
        It must end in ``monitor.csv``, or the reader will not find it.
    env_id : str, optional
        Written to the first line of the file.
    append_to : int, optional
        Keep this many episodes of an existing file and append to them; seconds count from its
        start. Later episodes, which a killed run did not save in its agent, are removed.
    """

    def __init__(
        self, path: str | PathLike[str], env_id: str | None = None, *, append_to: int | None = None
    ) -> None:
        if not str(path).endswith("monitor.csv"):
            raise ValueError(f"path={str(path)!r} must end in monitor.csv, as its readers expect")
        file = Path(path)
        if append_to is not None and file.exists():
            self._start, missing = _cut_after(file, append_to)
            self._file = file.open("a", encoding="utf-8", newline="")
            self._file.write(missing)
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


def _cut_after(file: Path, count: int) -> tuple[float, str]:
    """Remove all rows of a monitor file after the first ones.

    Returns the time when the log began, in seconds since 1970, and the missing end of the last row.
    """
    rows = file.read_bytes().splitlines(keepends=True)[: 2 + count]
    try:
        start = float(json.loads(rows[0].removeprefix(b"#"))["t_start"])
    except (ValueError, TypeError, LookupError):
        raise ValueError(
            f"{file} does not begin as a monitor file does, so nothing is appended to it: rename it"
        ) from None
    os.truncate(file, sum(map(len, rows)))
    return start, "" if rows[-1].endswith(b"\n") else "\n"


class TensorBoard(_Log):
    """Mean return and length of the latest 100 episodes, and diagnostics, for TensorBoard.

    The names are those of Stable-Baselines3, so that runs of both libraries share a chart. Every
    run needs a directory of its own.
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


class _Periodic(_Log):
    """A callback that is called at regular numbers of steps, counted from the agent's first one."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._due: int | None = None

    def steps_to_go(self, agent: Agent) -> int:
        """Steps until the next call."""
        if self._due is None:
            self._due = (agent.num_timesteps // self._every + 1) * self._every
        return self._due - agent.num_timesteps

    def __call__(self, agent: Agent) -> None:
        """Do the work that is due, and schedule the next time."""
        self._due = None
        self._do(agent)

    @abstractmethod
    def _do(self, agent: Agent) -> None:
        """Do the work of the callback."""


class CheckpointCallback(_Periodic):
    """Saves the agent every ``save_freq`` steps, and keeps the latest of these files.

    Parameters
    ----------
    save_freq : int
        Steps from one file to the next.
    save_path : path
        A folder, which is created if necessary.
    name_prefix : str
        Files are called ``PREFIX_STEPS.npz``. Others in the folder are left alone.
    keep : int
        Number of files to keep; older ones are removed once a new one is complete.
    """

    def __init__(
        self,
        save_freq: int,
        save_path: str | PathLike[str],
        name_prefix: str = "agent",
        keep: int = 3,
    ) -> None:
        super().__init__(check.count("save_freq", save_freq))
        self._folder, self._prefix = Path(save_path), name_prefix
        self._keep = check.count("keep", keep)

    def _do(self, agent: Agent) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        agent.save(self._folder / f"{self._prefix}_{agent.num_timesteps}.npz")
        for _, file in sorted(self._files())[: -self._keep]:
            file.unlink(missing_ok=True)

    def _files(self) -> list[tuple[int, Path]]:
        """The checkpoints in the folder, with their steps."""
        found = []
        for file in self._folder.glob(f"{self._prefix}_*.npz"):
            steps = file.stem.removeprefix(f"{self._prefix}_")
            if steps.isdecimal():
                found.append((int(steps), file))
        return found


class EvaluationRow(NamedTuple):
    """One evaluation: the mean return, and the ends of its interval."""

    timesteps: int
    mean: float
    low: float
    high: float


class EvalCallback(_Periodic):
    """Evaluates the greedy policy every ``eval_freq`` steps, and keeps the best one so far.

    The arguments have the names of Stable-Baselines3.

    Parameters
    ----------
    eval_env : gymnasium.Env or str, optional
        By default a copy of the agent's own, as for `rblspi.evaluate`.
    n_eval_episodes : int
    eval_freq : int
        Steps from one evaluation to the next.
    best_model_save_path : path, optional
        A folder for ``best.npz``, the policy with the highest mean return so far, and
        ``evaluations.csv``, with a row for every evaluation.
    deterministic : bool
        Whether random actions are left out.
    seed : int
        Seed of every evaluation.
    resume : bool
        Whether evaluations go on after those in ``evaluations.csv``.

    Attributes
    ----------
    history : list of EvaluationRow
    best : EvaluationRow or None
    best_policy : LinearPolicy or None
        Also None if the best one was found before the callback was made.
    """

    def __init__(
        self,
        eval_env: Any = None,
        *,
        n_eval_episodes: int = 10,
        eval_freq: int = 10_000,
        best_model_save_path: str | PathLike[str] | None = None,
        deterministic: bool = True,
        seed: int = 0,
        resume: bool = False,
    ) -> None:
        super().__init__(check.count("eval_freq", eval_freq))
        self._env = eval_env
        self._how: dict[str, Any] = {"deterministic": deterministic, "seed": seed}
        self._episodes = check.count("n_eval_episodes", n_eval_episodes)
        self._folder = None if best_model_save_path is None else Path(best_model_save_path)
        self.history: list[EvaluationRow] = []
        self.best_policy: Any = None
        if resume and self._folder is not None and (self._folder / EVALUATIONS).exists():
            self.history = _read_evaluations(self._folder / EVALUATIONS)

    @property
    def best(self) -> EvaluationRow | None:
        """The evaluation with the highest mean return, the first of them."""
        return max(self.history, key=lambda row: row.mean, default=None)

    def _do(self, agent: Agent) -> None:
        found = evaluate(agent, self._env, self._episodes, **self._how).mean_return
        row = EvaluationRow(agent.num_timesteps, found.mean, found.low, found.high)
        self.history = [r for r in self.history if r.timesteps < row.timesteps]
        better = self.best is None or row.mean > self.best.mean
        self.history.append(row)
        if better:
            self.best_policy = agent.policy(explore=not self._how["deterministic"])
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if better:
            self.best_policy.save(self._folder / "best.npz")
        lines = [",".join(EvaluationRow._fields), *(",".join(map(str, r)) for r in self.history)]
        write_text(self._folder / EVALUATIONS, "\n".join(lines) + "\n")


def _read_evaluations(file: Path) -> list[EvaluationRow]:
    rows = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    try:
        return [EvaluationRow(int(row[0]), *map(float, row[1:])) for row in rows]
    except (ValueError, TypeError, IndexError):
        raise ValueError(f"{file} does not hold evaluations: rename it") from None
