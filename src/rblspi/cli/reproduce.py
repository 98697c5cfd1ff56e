"""``rblspi reproduce``: the paper's figures and a verdict on each of its claims, by one command."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from rblspi.cli import completion, options
from rblspi.core.progress import duration, progress, say
from rblspi.registry import nearest

if TYPE_CHECKING:
    from rblspi.experiments.definitions import Figure, Run
    from rblspi.experiments.results import FigureResult
    from rblspi.experiments.results_store import Store
    from rblspi.experiments.tasks import RunResult
    from rblspi.reproduction.readings import Reading


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="Figures of the paper; all unless given.",
            autocompletion=completion.figures,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of every curve: 100; fewer with --quick."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Few and short runs: minutes, not hours. They decide what such runs can.",
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes: one for every processor.")
    ] = None,
    cluster: options.Cluster = None,
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
    reading: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACTOR=LEVEL",
            help="Read what the paper leaves open otherwise; see rblspi list readings.",
            autocompletion=completion.readings,
        ),
    ] = None,
    list_figures: Annotated[
        bool, typer.Option("--list", help="List the figures and the claims, and stop.")
    ] = False,
    dump: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="Print a figure as a file for --config to start from, and stop.",
            autocompletion=completion.figures,
        ),
    ] = None,
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
    The report on a reading of the paper is kept in a folder of its own.
    """
    if list_figures:
        _list()
        return
    if dump is not None:
        _dump(dump)
        return
    from rblspi.experiments.export import require_writable
    from rblspi.experiments.results import read
    from rblspi.experiments.results_store import Store
    from rblspi.reproduction.figures import quick_runs
    from rblspi.reproduction.readings import name_of, parse

    read_as = parse(reading or [])
    chosen = _chosen(figures or [], config or [], quick, read_as)
    folder = out or Path("results") / ("quick" if quick else "paper")
    exports = [(p, True) for p in export or []] + [(p, False) for p in export_episodes or []]
    for file, _ in exports:
        require_writable(file)
    path = folder / "results.sqlite"
    if report_only and not path.exists():
        raise ValueError(f"there is no {path} to report on: run without --report-only")
    numbers = [runs or (quick_runs(figure) if quick else 100) for figure in chosen]
    with Store(path) as store:
        if not report_only:
            run_figures(chosen, numbers, store, reuse, jobs or os.cpu_count() or 1, cluster)
        results = [
            read(store, figure, None if report_only else number, reuse)
            for figure, number in zip(chosen, numbers, strict=True)
        ]
    name = name_of(read_as) if read_as else ""
    _report(results, report or folder / name, exports, read_as)


def _chosen(
    names: Sequence[str], files: Sequence[Path], quick: bool, reading: Reading
) -> list[Figure]:
    from rblspi.experiments import config
    from rblspi.reproduction.figures import FIGURES
    from rblspi.reproduction.figures import quick as shortened
    from rblspi.reproduction.readings import read_as

    for name in names:
        _require_figure(name)
    own = [config.load(file) for file in files]
    if own and reading:
        raise ValueError("--reading is about figures of the paper: leave --config or --reading out")
    wanted = names or ([] if own else list(FIGURES))
    of_paper = [FIGURES[name].changed(partial(read_as, reading)) for name in dict.fromkeys(wanted)]
    chosen = [shortened(figure) if quick else figure for figure in of_paper] + own
    for figure in own:
        if figure.id in FIGURES:
            raise ValueError(f"{figure.id!r} is a figure of the paper: give the file another id")
    for name, count in Counter(figure.id for figure in chosen).items():
        if count > 1:
            raise ValueError(f"two figures are called {name!r}: change the id in the file")
    return chosen


def _require_figure(name: str) -> None:
    from rblspi.reproduction.figures import FIGURES

    if name not in FIGURES:
        raise ValueError(f"no figure is called {name!r}: {nearest(name, FIGURES)}")


def _dump(name: str) -> None:
    from dataclasses import replace

    from rblspi.experiments.config import dump
    from rblspi.reproduction.figures import FIGURES

    _require_figure(name)
    print("# Change what you like, and run it: rblspi reproduce --config FILE.toml --runs 10")
    print("# evaluation = 20 shows what the greedy policy reaches beside the exploring agent.")
    print(dump(replace(FIGURES[name], id=f"my-{name}")), end="")


def run_figures(
    figures: Sequence[Figure],
    runs: Sequence[int],
    store: Store,
    reuse: bool,
    jobs: int,
    cluster: str | None,
    at_once: int = 10,
) -> None:
    """Make the runs of figures that are not stored yet, ``at_once`` seeds of every curve first."""
    from rblspi.core.cluster import dask_client
    from rblspi.experiments.definitions import unique
    from rblspi.experiments.runner import dask_executors, local_processes, missing, prepare, run_all

    curves = unique(curve for figure in figures for curve in figure.curves)
    say("checking the settings, compiling what is not compiled yet ...")
    prepare(curves)
    wanted: dict[str, int] = {}
    for figure, number in zip(figures, runs, strict=True):
        for curve in figure.curves:
            wanted[curve.digest] = max(number, wanted.get(curve.digest, 0))
    most = missing(store, curves, max(runs), reuse, at_once)
    todo = [run for run in most if run.seed < wanted[run.curve.digest]]
    if not todo:
        say("all runs are there already")
        return
    where = f"the cluster at {cluster}" if cluster else f"{jobs} processes"
    say(f"{len(todo)} runs to make on {where}; finished ones are kept in {store.path}")
    try:
        with _progress(figures, runs, todo, store.seconds(), jobs) as tell:
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


def _report(
    results: list[FigureResult],
    folder: Path,
    exports: Sequence[tuple[Path, bool]],
    reading: Reading,
) -> None:
    from rblspi.experiments.export import export
    from rblspi.reproduction.report import write_report

    say("drawing ...")
    report = write_report(results, folder, reading)
    for judgement in report.judgements:
        note = f" ({judgement.note})" if judgement.note else ""
        print(f"  {judgement.claim.id:12} {judgement.verdict}{note}")
    say(f"report: {report.page}")
    for path, blocks in exports:
        rows = export(results, path, blocks=blocks)
        say(f"{path}: {rows} rows")


def _list() -> None:
    from rblspi.reproduction.claims import CLAIMS
    from rblspi.reproduction.figures import FIGURES

    for figure in FIGURES.values():
        print(f"{figure.id:20} {figure.title} ({len(figure.curves)} curves)")
    print()
    for claim in CLAIMS:
        print(f"{claim.id:20} {claim.says}")


@contextmanager
def _progress(
    figures: Sequence[Figure],
    runs: Sequence[int],
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
                for figure, number in zip(figures, runs, strict=True)
            ]
            words = f"{', '.join(done)}; {duration(work / at_a_time)} left"
            tell(len(todo) - remaining.total(), words)

        yield finished
