"""The runs of an experiment: imported ones, and new ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rblspi.core.progress import progress, say

if TYPE_CHECKING:
    from rblspi.experiments.definitions import Figure, Run
    from rblspi.experiments.results_store import Store
    from rblspi.experiments.tasks import FinishedRun


@contextmanager
def open_store(
    path: Path,
    figures: Sequence[tuple[Figure, int | None]],
    imports: Sequence[Path],
    *,
    report_only: bool,
    reuse: bool = False,
) -> Iterator[Store]:
    """Open the results file of a command, with the runs of tables that --export wrote.

    Beside every figure stands the number of runs that it shows; None stands for all. No run is
    imported if a figure could not be drawn afterwards.
    """
    from rblspi.experiments.results_store import Store
    from rblspi.experiments.tables import read_runs

    tables = {table: read_runs(table) for table in imports}
    if report_only and not tables and not path.exists():
        raise ValueError(f"there is no {path} to report on: run without --report-only")
    with Store(path) as store:
        with store.transaction() if tables else nullcontext():  # a report alone writes nothing
            said = [_take_in(table, runs, store) for table, runs in tables.items()]
            require_drawable(figures, store, any_code=reuse, report_only=report_only)
        if said:
            said.append(_counted(figures, store, told=not (report_only or reuse)))
        for line in said:
            say(line)
        yield store


def _take_in(table: Path, runs: Sequence[FinishedRun], store: Store) -> str:
    """Add the runs of a table that contradict no stored run, and say how many."""
    from rblspi.experiments.tables import compared

    agreeing, others = compared(runs, store)
    added = store.add(agreeing)
    words = f"{table}: {len(runs)} runs, {added} of them new"
    if others:
        curve, record, _ = others[0]
        words += (
            f"; {len(others)} differ from stored runs with the same seed and code, which stay "
            f"(the first is seed {record.seed} of {curve.name})"
        )
    return words


def _counted(figures: Sequence[tuple[Figure, int | None]], store: Store, told: bool) -> str:
    """How many runs of some figures there are, and, if ``told``, how many do not count."""
    from rblspi.experiments.code_version import code_version
    from rblspi.experiments.definitions import unique

    present, others = 0, 0
    for curve in unique(curve for figure, _ in figures for curve in figure.curves):
        code = code_version(curve)
        seeds = store.seeds(curve, code)
        older = set().union(*(store.seeds(curve, c) for c in store.codes(curve) if c != code))
        present, others = present + len(seeds), others + len(older - seeds)
    note = f"; {others} by another version do not count" if others and told else ""
    return f"{present} runs of these figures by this version of the code are there{note}"


def require_drawable(
    figures: Sequence[tuple[Figure, int | None]],
    store: Store,
    *,
    any_code: bool = False,
    report_only: bool = False,
) -> None:
    """Raise an error if the stored blocks of episodes are too coarse for the figures."""
    from rblspi.experiments.code_version import code_version
    from rblspi.experiments.results import codes_to_read, require_block

    for figure, number in figures:
        for curve in figure.curves:
            if not curve.episodes:
                continue
            codes = codes_to_read(store, curve, any_code)
            if not (report_only or any_code):  # runs of the present version will be there
                codes = [code_version(curve)]
            blocks = store.blocks(curve).items()
            known = {
                seed: block
                for code in codes
                for (seed, made_by), block in blocks
                if made_by == code and (number is None or seed < number)
            }
            wanted = figure.block_of(curve.episodes)
            require_block(curve, math.lcm(*known.values()), wanted)


def run_figures(
    figures: Sequence[tuple[Figure, int]],
    store: Store,
    reuse: bool,
    jobs: int,
    cluster: str | None,
) -> None:
    """Make the runs of figures that are not stored yet.

    Beside every figure stands the number of runs of each of its curves.
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
    most = missing(store, curves, max(wanted.values()), reuse)
    todo = [run for run in most if run.seed < wanted[run.curve.digest]]
    if not todo:
        say("all runs are there already")
        return
    where = f"the cluster at {cluster}" if cluster else f"{jobs} processes"
    say(f"{len(todo)} runs to make on {where}; finished ones are kept in {store.path}")
    try:
        with _progress(figures, todo) as tell:
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
    figures: Sequence[tuple[Figure, int]], todo: Sequence[Run]
) -> Iterator[Callable[[FinishedRun], None]]:
    """Show how many runs of every figure are done."""
    remaining = Counter(run.curve.digest for run in todo)
    with progress(len(todo)) as tell:

        def finished(run: FinishedRun) -> None:
            remaining[run.curve.digest] -= 1
            done = [
                f"{figure.id} {sum(number - remaining[c.digest] for c in figure.curves)}"
                f"/{number * len(figure.curves)}"
                for figure, number in figures
            ]
            tell(len(todo) - remaining.total(), ", ".join(done))

        yield finished
