"""Many runs on any `concurrent.futures.Executor`; each is stored as soon as it is finished.

The seed belongs to the run, so neither the number of workers nor their order changes a result.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import wait as wait_for
from typing import Any

from rblspi.core.cluster import ClusterError
from rblspi.core.progress import say
from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Run, in_order
from rblspi.experiments.results_store import Store
from rblspi.experiments.tasks import FinishedRun, execute, rehearse

#: executors that may break, one after another, before `run_all` gives up
ATTEMPTS = 3
#: seconds without workers before the first notice, and between two of them
FIRST_NOTICE, NEXT_NOTICE = 5.0, 30.0


class RunError(RuntimeError):
    """A run that failed."""


def missing(store: Store, curves: Sequence[Curve], runs: int, any_code: bool = False) -> list[Run]:
    """List the runs of each curve that are not stored yet, in the order in which to execute them.

    Stored runs by another version of the code count only with ``any_code``.
    """
    stored = {}
    for curve in curves:
        codes = store.codes(curve) if any_code else [code_version(curve)]
        stored[curve.digest] = set().union(*(store.seeds(curve, code) for code in codes))
    return [
        replace(run, code=code_version(run.curve))
        for run in in_order(curves, runs, store.seconds())
        if run.seed not in stored[run.curve.digest]
    ]


def prepare(curves: Sequence[Curve]) -> None:
    """Check all settings and compile everything once, before the workers start.

    Raises
    ------
    ValueError
        If settings are not accepted; the message names the curve.
    """
    for curve in curves:
        try:
            rehearse(curve)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{curve.name}: {error}") from error


def run_all(
    runs: Sequence[Run],
    store: Store,
    executors: Callable[[], Executor],
    window: int,
    tell: Callable[[FinishedRun], object] = lambda run: None,
) -> None:
    """Execute runs and store each as soon as it is finished.

    Parameters
    ----------
    runs : sequence of Run
    store : Store
    executors : callable
        Makes an executor. It is called again, a few times, if an executor breaks because a worker
        died.
    window : int
        Number of runs to submit at a time.
    tell : callable
        Called with each run that has been stored.
    """
    left = list(runs)
    for attempt in range(1, ATTEMPTS + 1):
        with _shut_down(executors()) as executor:
            try:
                for finished in _finished(executor, left, window):
                    store.add([finished])
                    tell(finished)
                return
            except BrokenExecutor as error:
                if attempt == ATTEMPTS:
                    raise RunError(
                        f"workers died {ATTEMPTS} times, perhaps for lack of memory: try fewer "
                        "--jobs; finished runs are kept"
                    ) from error
            except Exception as error:
                if not _is_lost(executor, error):
                    raise
                raise ClusterError(
                    f"the Dask cluster was lost; finished runs are kept in {store.path}, and the "
                    "same command goes on from there as soon as a cluster answers"
                ) from error
        left = [run for run in left if run.seed not in store.seeds(run.curve, run.code)]


def _finished(executor: Executor, runs: Sequence[Run], window: int) -> Iterator[FinishedRun]:
    """Yield runs in the order in which they finish."""
    waiting = iter(runs)
    pending: dict[Future[FinishedRun], Run] = {}
    while True:
        while len(pending) < window and (run := next(waiting, None)) is not None:
            with _parent_only():  # the executor may start workers now
                pending[executor.submit(execute, run)] = run
        if not pending:
            return
        done, _ = wait(pending, timeout=FIRST_NOTICE, return_when="FIRST_COMPLETED")
        if not done and hasattr(executor, "_client"):  # Dask's
            wait_for_workers(executor._client)
        for future in done:
            run = pending.pop(future)
            try:
                finished = future.result()
            except (BrokenExecutor, CancelledError):
                raise
            except Exception as error:
                raise RunError(f"{run.curve.name}, seed {run.seed}: {error}") from error
            if finished.record.code != run.code:
                raise RunError(
                    f"a worker runs other code than this process ({finished.record.code}, not "
                    f"{run.code}): install the same rblspi everywhere, or start again if you have "
                    "just changed it"
                )
            yield finished


@contextmanager
def _shut_down(executor: Executor) -> Iterator[Executor]:
    """Shut an executor down in the end; after an error, do not let its workers finish.

    Wait for the thread that manages the workers even then: it must not outlive the program.
    """
    try:
        yield executor
    except BaseException:
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.terminate()
        try:
            executor.shutdown(cancel_futures=True)
        except TypeError:  # Dask's executor has no such argument and always cancels
            with suppress(Exception):  # its cluster may be lost
                executor.shutdown(wait=False)
        raise
    executor.shutdown()


# Workers on this machine ------------------------------------------------------------------


def local_processes(jobs: int) -> Executor:
    """An executor of worker processes on this machine, each with one BLAS thread."""
    context = multiprocessing.get_context("spawn")
    with _parent_only():  # neither does Python's process that tracks semaphores
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker)


@contextmanager
def _parent_only() -> Iterator[None]:
    """Block the signals of a terminal; processes that are started meanwhile never receive them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, end when it ends, and use one BLAS thread."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(limits=1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


# Workers elsewhere ------------------------------------------------------------------------


def dask_executors(client: Any) -> tuple[Callable[[], Executor], int]:
    """A factory of executors on a Dask cluster, and how many runs to submit at a time.

    Waits until the cluster has workers.
    """
    if not os.environ.get("RBLSPI_DEBUG"):  # errors of Dask become one sentence here
        for name in ("asyncio", "distributed", "distributed.client", "tornado.application"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    wait_for_workers(client)
    threads = sum(client.nthreads().values())
    return client.get_executor, max(4 * threads, 16)


def wait_for_workers(client: Any) -> None:
    """Wait until a cluster has workers, and say so from time to time.

    Raises
    ------
    ClusterError
        If the scheduler does not answer.
    """
    address, patience = client.scheduler.address, FIRST_NOTICE
    try:
        while not client.nthreads():
            with suppress(TimeoutError):
                client.wait_for_workers(1, timeout=patience)
                return
            say(f"waiting for workers of the cluster at {address} ...")
            patience = NEXT_NOTICE
    except (OSError, CancelledError, AttributeError) as error:  # a closed client has no scheduler
        raise ClusterError(
            f"the Dask scheduler at {address} does not answer any more: start one, and give the "
            "same command again"
        ) from error


def _is_lost(executor: Executor, error: Exception) -> bool:
    """Whether the scheduler of a Dask executor is gone, in which case Dask cancels all runs."""
    client = getattr(executor, "_client", None)
    return isinstance(error, CancelledError) or (client is not None and client.status != "running")
