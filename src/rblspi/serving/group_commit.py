"""Group commit: concurrent writes to a database share one disk flush."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

Result = TypeVar("Result")

#: faults after which the database is as it was before
_NOTHING_WRITTEN = ("SQLITE_FULL", "SQLITE_BUSY")


class DiskError(OSError):
    """Something could not be written down."""


class GroupCommit:
    """Does work on a connection in a thread, and returns results once they are on disk.

    While one commit waits for the disk, further work queues up, and the next commit takes all of
    it. After a full disk, work that comes later may succeed. After any other fault the content of
    the disk is unknown, and all further work is refused.

    Attributes
    ----------
    problem : str or None
        The reason why all work is refused.
    """

    def __init__(self, connection: sqlite3.Connection, path: Any) -> None:
        self._connection, self._path = connection, path
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._closed, self._lock = False, Lock()
        self.problem: str | None = None
        self._thread = Thread(target=self._serve, name="group commit", daemon=True)
        self._thread.start()

    def do(
        self,
        work: Callable[[sqlite3.Connection], Result],
        committed: Callable[[Result], object] = lambda result: None,
    ) -> Future[Result]:
        """Do some work, which leaves the database alone if it raises an error of its own.

        Parameters
        ----------
        work : callable
        committed : callable
            Called with the result once it is on disk, before any caller gets it.
        """
        task = _Task(work, committed, Future())
        with self._lock:
            if self._closed:
                raise ValueError(f"{self._path} is closed")
            self._queue.put(task)
        return task.future

    def close(self) -> None:
        """Finish the work that is waiting."""
        with self._lock:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        waiting: list[_Task | None] = []
        while None not in waiting:
            waiting = [self._queue.get()]
            while not self._queue.empty():
                waiting.append(self._queue.get())
            tasks = [task for task in waiting if task is not None]
            self._commit([task for task in tasks if task.future.set_running_or_notify_cancel()])

    def _commit(self, tasks: list[_Task]) -> None:
        results: list[Any]
        try:
            if self.problem is not None:
                raise DiskError(self.problem)
            self._connection.execute("BEGIN IMMEDIATE")
            results = [self._attempt(task) for task in tasks]
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            said = f"{self._path} cannot be written: {error}"
            if getattr(error, "sqlite_errorname", "") not in _NOTHING_WRITTEN:
                self.problem = f"{said}; start the service again"
            results = [DiskError(self.problem or said)] * len(tasks)
        except DiskError as error:
            results = [error] * len(tasks)
        for task, result in zip(tasks, results, strict=True):
            if isinstance(result, Exception):
                task.future.set_exception(result)
            else:
                task.committed(result)
                task.future.set_result(result)

    def _attempt(self, task: _Task) -> Any:
        """The result of some work, or its own error."""
        try:
            return task.work(self._connection)
        except sqlite3.Error:
            raise
        except Exception as error:
            return error


class _Task(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    committed: Callable[[Any], object]
    future: Future[Any]
