"""``rblspi reproduce``: the paper's figures and a verdict on each of its claims, by one command."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.core.progress import say
from rblspi.registry import nearest
from rblspi_paper.running import open_store, run_figures

if TYPE_CHECKING:
    from rblspi.experiments.definitions import Figure
    from rblspi.experiments.results import FigureResult
    from rblspi_paper.readings import Reading


def _figure_names() -> Iterable[str]:
    from rblspi_paper.figures import FIGURES

    return FIGURES


def _reading_names() -> Iterable[str]:
    from rblspi_paper.readings import SOURCES, name_of, one_at_a_time

    single = (name_of(reading) for reading in one_at_a_time() if reading)
    return (*single, *SOURCES)


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="Figures of the paper; all unless given.",
            autocompletion=options.suggest(_figure_names),
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
            metavar="NAME[=LEVEL]",
            help="Read what the paper leaves open otherwise: a choice, or a source; see --list.",
            autocompletion=options.suggest(_reading_names),
        ),
    ] = None,
    list_figures: Annotated[
        bool, typer.Option("--list", help="List figures, claims and readings, and stop.")
    ] = False,
    dump: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="Print a figure as a file for --config to start from, and stop.",
            autocompletion=options.suggest(_figure_names),
        ),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: report on the runs there are.")
    ] = False,
    reuse: Annotated[
        bool,
        typer.Option("--reuse", help="Count runs that another version of the code made."),
    ] = False,
    imports: Annotated[
        list[Path] | None,
        typer.Option("--import", metavar="FILE", help="Add runs that --export wrote; repeatable."),
    ] = None,
    exports: Annotated[
        list[Path] | None,
        typer.Option("--export", metavar="FILE", help="Write means of blocks as JSON; repeatable."),
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
    from rblspi.experiments.results import read
    from rblspi.experiments.tables import require_known
    from rblspi_paper.figures import quick_runs
    from rblspi_paper.readings import name_of, parse

    parsed = parse(reading or [])
    chosen = _chosen(figures or [], config or [], quick, parsed)
    folder = out or Path("results") / ("quick" if quick else "paper")
    for table in exports or []:
        require_known(table)
    numbered = [(f, runs or (quick_runs(f) if quick else 100)) for f in chosen]
    shown = [(figure, None if report_only else number) for figure, number in numbered]
    with open_store(
        folder / "results.sqlite",
        shown,
        imports or [],
        report_only=report_only,
        reuse=reuse,
    ) as store:
        if not report_only:
            run_figures(numbered, store, reuse, jobs or os.cpu_count() or 1, cluster)
        results = [read(store, figure, number, reuse) for figure, number in shown]
    name = name_of(parsed) if parsed else ""
    _report(results, report or folder / name, exports or [], parsed)


def _chosen(
    names: Sequence[str], files: Sequence[Path], quick: bool, reading: Reading
) -> list[Figure]:
    from rblspi.experiments import config
    from rblspi_paper.figures import FIGURES
    from rblspi_paper.figures import quick as shortened
    from rblspi_paper.readings import read_as

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
    from rblspi_paper.figures import FIGURES

    if name not in FIGURES:
        raise ValueError(f"no figure is called {name!r}: {nearest(name, FIGURES)}")


def _dump(name: str) -> None:
    from dataclasses import replace

    from rblspi.experiments.config import dump
    from rblspi_paper.figures import FIGURES

    _require_figure(name)
    print("# Change what you like, and run it: rblspi reproduce --config FILE.toml --runs 10")
    print("# evaluation = 20 shows what the greedy policy reaches beside the exploring agent.")
    print(dump(replace(FIGURES[name], id=f"my-{name}")), end="")


def _report(
    results: list[FigureResult],
    folder: Path,
    exports: Sequence[Path],
    reading: Reading,
) -> None:
    from rblspi.experiments.tables import export
    from rblspi_paper.report import write_report

    say("drawing ...")
    report = write_report(results, folder, reading)
    for judgement in report.judgements:
        note = f" ({judgement.note})" if judgement.note else ""
        print(f"  {judgement.claim.id:12} {judgement.verdict}{note}")
    say(f"report: {report.page}")
    for path in exports:
        say(f"{path}: {export(results, path)} runs")


def _list() -> None:
    from rblspi_paper.claims import CLAIMS
    from rblspi_paper.figures import FIGURES
    from rblspi_paper.readings import FACTORS, SOURCES, in_full

    for figure in FIGURES.values():
        print(f"{figure.id:20} {figure.title} ({len(figure.curves)} curves)")
    print()
    for claim in CLAIMS:
        print(f"{claim.id:20} {claim.says}")
    for factor in FACTORS.values():
        print(f"\n--reading {factor.name}=...   {factor.asks}")
        for level in factor.levels:
            name = f"{level.name} (default)" if level == factor.default else level.name
            print(f"  {name:22} {level.says} (from {level.source})")
    print("\n--reading SOURCE   all that comes from one source")
    for name, reading in SOURCES.items():
        print(f"  {name:22} {in_full(reading)}")


COMMAND = Command(reproduce, "cart-pole --quick")
