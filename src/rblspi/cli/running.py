"""What the commands share that run experiments: runs that are taken in, and runs that are made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import typer

from rblspi.core.progress import duration, progress, say

if TYPE_CHECKING:
    from rblspi.experiments.definitions import Figure, Run
    from rblspi.experiments.results_store import Store, StoredRun
    from rblspi.experiments.tasks import RunResult


def require_runs(path: Path, report_only: bool, imported: Mapping[Path, list[StoredRun]]) -> None:
    """Raise an error if there is nothing to report on."""
    if report_only and not imported and not path.exists():
        raise ValueError(f"there is no {path} to report on: run without --report-only")


def read_tables(paths: Sequence[Path]) -> dict[Path, list[StoredRun]]:
    """The runs of tables that --export wrote."""
    from rblspi.experiments.imports import read_runs

    return {path: read_runs(path) for path in paths}


def require_drawable(
    figures: Sequence[Figure],
    store: Store,
    tables: Mapping[Path, list[StoredRun]],
    episodes: bool = False,
) -> None:
    """Raise an error if figures cannot show the runs that are stored or about to be.

    ``episodes`` is whether single episodes are wanted.
    """
    from rblspi.experiments.definitions import unique
    from rblspi.experiments.results import common_block, require_block
    from rblspi.experiments.results_store import is_finer

    curves = unique(curve for figure in figures for curve in figure.curves)
    known = {curve.digest: store.entries(curve) for curve in curves}
    for curve, record, arrays in (run for runs in tables.values() for run in runs):
        stored = known.get(curve.digest, {})
        key, entries = (record.seed, record.code), len(arrays["length"])
        if key not in stored or is_finer(entries, stored[key]):
            stored[key] = entries
    for figure in figures:
        for curve in figure.curves:
            if curve.episodes:
                block = common_block(curve, known[curve.digest].values())
                require_block(curve, block, 1 if episodes else figure.block_of(curve.episodes))


def take_in(
    tables: Mapping[Path, list[StoredRun]],
    store: Store,
    figures: Sequence[Figure],
    reuse: bool = False,
) -> None:
    """Add runs that were made elsewhere, and say how many there are of some figures then."""
    from rblspi.experiments.code_version import code_version
    from rblspi.experiments.definitions import unique

    for path, runs in tables.items():
        say(f"{path}: {len(runs)} runs, {store.add_all(runs)} of them new")
    if not tables:
        return
    present, others = 0, 0
    for curve in unique(curve for figure in figures for curve in figure.curves):
        codes = store.codes(curve)
        present += codes.pop(code_version(curve), 0)
        others += sum(codes.values())
    note = f"; {others} by another version count with --reuse" if others and not reuse else ""
    say(f"{present} runs of these figures by this version of the code are there{note}")


def run_figures(
    figures: Sequence[tuple[Figure, int]],
    store: Store,
    reuse: bool,
    jobs: int,
    cluster: str | None,
    at_once: int = 10,
) -> None:
    """Make the runs of figures that are not stored yet.

    The number beside a figure is that of the runs of each of its curves. ``at_once`` seeds of every
    curve come before the next ones.
    """
    from rblspi.core.cluster import dask_client
    from rblspi.experiments.definitions import unique
    from rblspi.experiments.runner import dask_executors, local_processes, missing, prepare, run_all

    curves = unique(curve for figure, _ in figures for curve in figure.curves)
    say("checking the settings, compiling what is not compiled yet ...")
    prepare(curves)
    wanted: dict[str, int] = {}
    for figure, number in figures:
        for curve in figure.curves:
            wanted[curve.digest] = max(number, wanted.get(curve.digest, 0))
    most = missing(store, curves, max(wanted.values()), reuse, at_once)
    todo = [run for run in most if run.seed < wanted[run.curve.digest]]
    if not todo:
        say("all runs are there already")
        return
    where = f"the cluster at {cluster}" if cluster else f"{jobs} processes"
    say(f"{len(todo)} runs to make on {where}; finished ones are kept in {store.path}")
    try:
        with _progress(figures, todo, store.seconds(), jobs) as tell:
            if cluster:
                with dask_client(cluster) as client:
                    run_all(todo, store, *dask_executors(client), tell)
            else:
                run_all(todo, store, lambda: local_processes(jobs), 2 * jobs, tell)
    except KeyboardInterrupt:
        say(
            "stopped; finished runs are kept. Go on: the same command again. "
            "Report on what there is: add --report-only"
        )
        raise typer.Exit(130) from None


@contextmanager
def _progress(
    figures: Sequence[tuple[Figure, int]],
    todo: Sequence[Run],
    seconds: dict[str, float],
    jobs: int,
) -> Iterator[Callable[[Run, RunResult], None]]:
    """Show how many runs of every figure are done, and how long the others will take.

    A run is expected to take as long as others of its curve did.
    """
    remaining = Counter(run.curve.digest for run in todo)
    times = {digest: [mean] for digest, mean in seconds.items()}
    start, worked = time.monotonic(), 0.0
    with progress(len(todo)) as tell:

        def finished(run: Run, result: RunResult) -> None:
            nonlocal worked
            remaining[run.curve.digest] -= 1
            times.setdefault(run.curve.digest, []).append(result.seconds)
            worked += result.seconds
            means = {digest: fmean(found) for digest, found in times.items()}
            typical = fmean(means.values())
            work = sum(n * means.get(digest, typical) for digest, n in remaining.items())
            passed = time.monotonic() - start
            at_a_time = max(worked / passed, 0.1) if passed > 5.0 else jobs
            done = [
                f"{figure.id} {sum(number - remaining[c.digest] for c in figure.curves)}"
                f"/{number * len(figure.curves)}"
                for figure, number in figures
            ]
            words = f"{', '.join(done)}; {duration(work / at_a_time)} left"
            tell(len(todo) - remaining.total(), words)

        yield finished
