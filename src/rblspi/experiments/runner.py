"""Many runs on any `concurrent.futures.Executor`; each is kept as soon as it is finished.

Seeds are part of a run, so neither the number of workers nor their order changes a result.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait as wait_for

from rblspi.experiments.code_version import code_version
from rblspi.experiments.definitions import Curve, Run, in_order
from rblspi.experiments.store import Store
from rblspi.experiments.tasks import Outcome, execute, rehearse

#: executors that may break, one after the other, before giving up
PATIENCE = 3

Tell = Callable[[Run, Outcome], None]


class RunError(RuntimeError):
    """A run that did not give a result."""


def missing(store: Store, curves: Sequence[Curve], runs: int, any_code: bool = False) -> list[Run]:
    """Runs that are not in the store yet, in the order in which they are to be made.

    Parameters
    ----------
    store : Store
    curves : sequence of Curve
    runs : int
        Of every curve.
    any_code : bool
        Whether runs that another version of the code made will do.
    """
    there = {}
    for curve in curves:
        codes = store.codes(curve) if any_code else [code_version(curve)]
        there[curve.digest] = set().union(*(store.seeds(curve, code) for code in codes))
    return [
        replace(run, code=code_version(run.curve))
        for run in in_order(curves, runs, store.seconds())
        if run.seed not in there[run.curve.digest]
    ]


def prepare(curves: Sequence[Curve]) -> None:
    """Check all settings and compile everything, before workers would do it all at once.

    Raises
    ------
    ValueError
        Naming the curve whose settings are not accepted.
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
    tell: Tell = lambda run, outcome: None,
) -> None:
    """Make these runs and keep each as soon as it is finished.

    Parameters
    ----------
    runs : sequence of Run
    store : Store
    executors : callable
        Makes an executor; called again, a few times, if one breaks because a worker died.
    window : int
        Runs handed to the executor at a time.
    tell : callable
        Told of every run that was kept.
    """
    left = list(runs)
    for attempt in range(PATIENCE):
        with _abandoned_on_error(executors()) as executor:
            try:
                for run, outcome in _finished(executor, left, window):
                    _require_same_code(run, outcome)
                    store.add(run, outcome)
                    tell(run, outcome)
            except BrokenExecutor as error:
                if attempt == PATIENCE - 1:
                    raise RunError(
                        f"workers died {PATIENCE} times (out of memory?): try fewer --jobs; "
                        "finished runs are kept"
                    ) from error
            else:
                return
        left = [run for run in left if run.seed not in store.seeds(run.curve, run.code)]


def _finished(
    executor: Executor, runs: Sequence[Run], window: int
) -> Iterator[tuple[Run, Outcome]]:
    """Finished runs, as they come."""
    waiting = iter(runs)
    pending: dict[Future[Outcome], Run] = {}
    while True:
        while len(pending) < window and (run := next(waiting, None)) is not None:
            pending[executor.submit(execute, run)] = run
        if not pending:
            return
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            run = pending.pop(future)
            try:
                outcome = future.result()
            except BrokenExecutor:
                raise
            except Exception as error:
                raise RunError(f"{run.curve.name}, seed {run.seed}: {error}") from error
            yield run, outcome


def _require_same_code(run: Run, outcome: Outcome) -> None:
    if outcome.code != run.code:
        raise RunError(
            f"a worker runs other code than this process (version {outcome.code}, not {run.code}): "
            "install the same rblspi everywhere, or start again if you have just changed it"
        )


@contextmanager
def _abandoned_on_error(executor: Executor) -> Iterator[Executor]:
    """An executor that is waited for in the end, but not when something goes wrong."""
    try:
        yield executor
    except BaseException:
        processes = list((getattr(executor, "_processes", None) or {}).values())
        _cancel(executor)
        for process in processes:
            process.terminate()
        raise
    executor.shutdown()


def _cancel(executor: Executor) -> None:
    try:
        executor.shutdown(wait=False, cancel_futures=True)
    except TypeError:  # Dask's has no such argument, and cancels without
        executor.shutdown(wait=False)


# Workers on this machine ------------------------------------------------------------------


def local_processes(jobs: int) -> Executor:
    """Worker processes on this machine, each with one BLAS thread."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, do not outlive it, and use one BLAS thread."""
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


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Executors on a Dask cluster, and how many runs to hand over at a time.

    Raises
    ------
    RunError
        If Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise RunError("--scheduler needs Dask: pip install 'rblspi[cluster]'") from error
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        threads = sum(client.nthreads().values())
        yield client.get_executor, max(4 * threads, 16)
