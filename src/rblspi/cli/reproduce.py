"""``rblspi reproduce``: the paper's figures and a verdict on each of its claims, by one command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rblspi.experiments.definitions import Curve, Figure, Run
    from rblspi.experiments.results import FigureResult
    from rblspi.experiments.store import Store
    from rblspi.experiments.tasks import Outcome

#: seconds between two lines of progress where no terminal shows it live
LINE_EVERY = 30.0


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Figures of the paper; all unless given."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of every curve: 100, or 3 with --quick.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few and short runs: minutes, not hours.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes: one for every processor.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the Dask cluster of this scheduler."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of results: results/paper, or results/quick with --quick."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the report: OUT unless given.")
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.toml", help="Run an experiment of your own; may be repeated."),
    ] = None,
    list_figures: Annotated[
        bool, typer.Option("--list", help="List the figures and the claims, and stop.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: report on the runs there are.")
    ] = False,
    reuse: Annotated[
        bool,
        typer.Option("--reuse", help="Count runs that another version of the code made."),
    ] = False,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Write block means to .csv, .csv.gz or .parquet; may be repeated."
        ),
    ] = None,
    export_episodes: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="The same with a row for every episode."),
    ] = None,
) -> None:
    """Reproduce the paper's figures, or an experiment of your own, and judge its claims.

    Finished runs are kept in OUT/results.sqlite: the same command goes on where it was stopped.
    """
    if list_figures:
        _list()
        return
    with _one_sentence_for_errors():
        chosen = _chosen(figures or [], config or [], quick)
        folder = out or Path("results") / ("quick" if quick else "paper")
        number = runs or _default_runs(quick)
        _reproduce(
            chosen,
            number,
            folder,
            report or folder,
            jobs=jobs or os.cpu_count() or 1,
            scheduler=scheduler,
            report_only=report_only,
            reuse=reuse,
            exports=[(p, True) for p in export or []] + [(p, False) for p in export_episodes or []],
        )


def _default_runs(quick: bool) -> int:
    from rblspi.experiments.paper import QUICK_RUNS

    return QUICK_RUNS if quick else 100


def _chosen(names: Sequence[str], files: Sequence[Path], quick: bool) -> list[Figure]:
    import difflib

    from rblspi.experiments import paper, toml

    for name in names:
        if name not in paper.FIGURES:
            near = difflib.get_close_matches(name, paper.FIGURES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(paper.FIGURES)}"
            raise ValueError(f"no figure is called {name!r}: {hint}")
    own = [toml.load(file) for file in files]
    wanted = names or ([] if own else list(paper.FIGURES))
    of_paper = [paper.FIGURES[name] for name in dict.fromkeys(wanted)]
    chosen = [paper.quick(figure) if quick else figure for figure in of_paper] + own
    for figure in own:
        if figure.id in paper.FIGURES:
            raise ValueError(f"{figure.id!r} is a figure of the paper: give the file another id")
    ids = [figure.id for figure in chosen]
    for name in ids:
        if ids.count(name) > 1:
            raise ValueError(f"two figures are called {name!r}: change the id in the file")
    return chosen


def _reproduce(
    figures: list[Figure],
    runs: int,
    folder: Path,
    report: Path,
    *,
    jobs: int,
    scheduler: str | None,
    report_only: bool,
    reuse: bool,
    exports: Sequence[tuple[Path, bool]],
) -> None:
    from rblspi.experiments.definitions import unique
    from rblspi.experiments.export import require_writable
    from rblspi.experiments.results import read
    from rblspi.experiments.runner import missing, prepare
    from rblspi.experiments.store import Store

    for file, _ in exports:
        require_writable(file)
    path = folder / "results.sqlite"
    if report_only and not path.exists():
        raise ValueError(f"there is no {path} to report on: run without --report-only")
    curves = unique(curve for figure in figures for curve in figure.curves)
    with Store(path) as store:
        if not report_only:
            _say("checking the settings, compiling what is not compiled yet ...")
            prepare(curves)
            todo = missing(store, curves, runs, reuse)
            _run(figures, runs, todo, store, jobs, scheduler)
        most = None if report_only else runs
        results = [read(store, figure, most, reuse) for figure in figures]
    _report(results, report, exports)


def _run(
    figures: Sequence[Figure],
    runs: int,
    todo: Sequence[Run],
    store: Store,
    jobs: int,
    scheduler: str | None,
) -> None:
    from rblspi.experiments.runner import dask_cluster, local_processes, run_all

    if not todo:
        _say("all runs are there already")
        return
    where = f"the cluster at {scheduler}" if scheduler else f"{jobs} processes"
    _say(f"{len(todo)} runs to make on {where}; finished ones are kept in {store.path}")
    try:
        with _progress(figures, runs, todo, store.seconds(), jobs) as tell:
            if scheduler:
                with dask_cluster(scheduler) as (executors, window):
                    run_all(todo, store, executors, window, tell)
            else:
                run_all(todo, store, lambda: local_processes(jobs), 2 * jobs, tell)
    except KeyboardInterrupt:
        _say(
            "stopped; finished runs are kept. Go on: the same command again. "
            "Report on what there is: add --report-only"
        )
        raise typer.Exit(130) from None


def _report(
    results: list[FigureResult], folder: Path, exports: Sequence[tuple[Path, bool]]
) -> None:
    from rblspi.experiments.export import export
    from rblspi.report.page import write

    _say("drawing ...")
    report = write(results, folder)
    for judgement in report.judgements:
        note = f" ({judgement.note})" if judgement.note else ""
        print(f"  {judgement.claim.id:12} {judgement.verdict}{note}")
    _say(f"report: {report.page}")
    for path, blocks in exports:
        rows = export(results, path, blocks=blocks)
        _say(f"{path}: {rows} rows")


def _list() -> None:
    from rblspi.experiments.claims import CLAIMS
    from rblspi.experiments.paper import FIGURES

    for figure in FIGURES.values():
        print(f"{figure.id:20} {figure.title} ({len(figure.curves)} curves)")
    print()
    for claim in CLAIMS:
        print(f"{claim.id:20} {claim.says}")


def _say(line: str) -> None:
    print(f"rblspi: {line}", file=sys.stderr, flush=True)


@contextmanager
def _one_sentence_for_errors() -> Iterator[None]:
    """What a user can get wrong is told in a sentence, without a traceback."""
    try:
        yield
    except typer.Exit:  # a RuntimeError as well
        raise
    except (ValueError, RuntimeError, OSError) as error:
        _say(str(error))
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


# Progress --------------------------------------------------------------------------------


@contextmanager
def _progress(
    figures: Sequence[Figure],
    runs: int,
    todo: Sequence[Run],
    seconds: dict[str, float],
    jobs: int,
) -> Iterator[Callable[[Run, Outcome], None]]:
    """Show how far every figure is, live on a terminal and by a line now and then elsewhere."""
    clock = _Clock(todo, seconds, jobs)
    done = _done_at_first(figures, runs, todo)
    if sys.stderr.isatty():
        with _live(figures, runs, done, len(todo)) as show:
            yield lambda run, outcome: show(run.curve, clock.tick(run, outcome))
        return
    last = time.monotonic()

    def line(run: Run, outcome: Outcome) -> None:
        nonlocal last
        left = clock.tick(run, outcome)
        for figure in _with(run.curve):
            done[figure] += 1
        if time.monotonic() - last >= LINE_EVERY or clock.left == 0:
            last = time.monotonic()
            parts = [f"{f.id} {done[f.id]}/{runs * len(f.curves)}" for f in figures]
            _say(f"{', '.join(parts)}; {_duration(left)} left")

    members = {figure.id: {curve.digest for curve in figure.curves} for figure in figures}

    def _with(curve: Curve) -> list[str]:
        return [name for name, digests in members.items() if curve.digest in digests]

    yield line


@contextmanager
def _live(
    figures: Sequence[Figure], runs: int, done: dict[str, int], waiting: int
) -> Iterator[Callable[[Curve, float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from rblspi.experiments.definitions import unique

    whole = runs * len(unique(curve for figure in figures for curve in figure.curves))

    bars = Progress(
        TextColumn("{task.description:20}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    with bars:
        total = bars.add_task(
            "all",
            total=whole,
            completed=whole - waiting,
            left="",
        )
        tasks = {
            figure.id: bars.add_task(
                figure.id, total=runs * len(figure.curves), completed=done[figure.id], left=""
            )
            for figure in figures
        }
        members = {figure.id: {curve.digest for curve in figure.curves} for figure in figures}

        def show(curve: Curve, left: float) -> None:
            for name, digests in members.items():
                if curve.digest in digests:
                    bars.advance(tasks[name])
            bars.update(total, advance=1, left=f"{_duration(left)} left")

        yield show


def _done_at_first(figures: Sequence[Figure], runs: int, todo: Sequence[Run]) -> dict[str, int]:
    waiting = [run.curve.digest for run in todo]
    counts = {digest: waiting.count(digest) for digest in set(waiting)}
    return {
        figure.id: sum(runs - counts.get(curve.digest, 0) for curve in figure.curves)
        for figure in figures
    }


class _Clock:
    """Guesses the time left from the time that runs of the same curve took."""

    def __init__(self, todo: Sequence[Run], seconds: dict[str, float], jobs: int) -> None:
        self.left = len(todo)
        self._waiting: dict[str, int] = {}
        for run in todo:
            self._waiting[run.curve.digest] = self._waiting.get(run.curve.digest, 0) + 1
        self._seconds = {d: (1, s) for d, s in seconds.items()}
        self._start = time.monotonic()
        self._worked = 0.0
        self._jobs = float(jobs)

    def tick(self, run: Run, outcome: Outcome) -> float:
        """Take note of a finished run; returns the seconds left."""
        digest = run.curve.digest
        self.left -= 1
        self._waiting[digest] -= 1
        count, total = self._seconds.get(digest, (0, 0.0))
        self._seconds[digest] = (count + 1, total + outcome.seconds)
        self._worked += outcome.seconds
        mean = {d: total / count for d, (count, total) in self._seconds.items()}
        typical = sum(mean.values()) / len(mean)
        work = sum(n * mean.get(d, typical) for d, n in self._waiting.items())
        passed = time.monotonic() - self._start
        if passed > 5.0:  # how many runs really go on at a time
            self._jobs = max(self._worked / passed, 0.1)
        return work / self._jobs


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
