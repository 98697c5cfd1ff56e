"""``rblspi readings``: the paper's claims under every reading of what it leaves open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rblspi.cli import options
from rblspi.cli.running import open_store, require_drawable, run_figures
from rblspi.core.progress import say
from rblspi.registry import nearest

if TYPE_CHECKING:
    from rblspi.experiments.results_store import Store
    from rblspi.reproduction.design import Design


def readings(
    full: Annotated[
        bool, typer.Option("--full", help="Every claim on whole runs: days, not an hour.")
    ] = False,
    claim: Annotated[
        list[str] | None,
        typer.Option(metavar="CLAIM", help="Run what this claim needs; may be repeated."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of every curve.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes: one for every processor.")
    ] = None,
    cluster: options.Cluster = None,
    out: Annotated[
        Path, typer.Option(help="Folder of results, which may be that of rblspi reproduce.")
    ] = Path("results/paper"),
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the report: OUT unless given.")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: report on the runs there are.")
    ] = False,
    imports: options.Imports = None,
    exports: options.Exports = None,
) -> None:
    """Judge the paper's claims under every reading of what the paper leaves open.

    First one choice at a time differs from the default, then those that move a claim most are
    combined. Finished runs are kept in OUT/results.sqlite: the same command goes on where it was
    stopped. ``rblspi list readings`` shows the choices.
    """
    from rblspi.experiments.export import export, require_known
    from rblspi.reproduction.design import FULL, SMALL, parts
    from rblspi.reproduction.readings_page import write_study
    from rblspi.reproduction.study import follow_ups, read_study

    design = replace(FULL if full else SMALL, runs=runs)
    for table in exports or []:
        require_known(table)
    wanted = _only(design, claim or [])
    path, figures = out / "results.sqlite", parts([design])
    with open_store(path, figures, imports or [], report_only=report_only) as store:
        if not report_only:
            run = partial(_run, store=store, jobs=jobs or os.cpu_count() or 1, cluster=cluster)
            run([wanted])
            run(follow_ups(read_study(store, wanted)))
        study = read_study(store, design)
    page = write_study(study, report or out)
    for line in study.sentences():
        print(f"  {line}")
    say(f"report: {page}")
    for table in exports or []:
        say(f"{table}: {export(study.all_results, table, blocks=True)} rows")


def _run(designs: Sequence[Design], store: Store, jobs: int, cluster: str | None) -> None:
    """Make the runs of designs, one seed of everything before the next."""
    from rblspi.reproduction.design import parts

    require_drawable(parts(designs), store)
    for part in parts(designs):
        run_figures([part], store, False, jobs, cluster, at_once=1)


def _only(design: Design, claims: Sequence[str]) -> Design:
    """The part of a design that some claims need; all of it if none are named."""
    known = [claim.id for claim in design.judged()]
    for name in claims:
        if name not in known:
            raise ValueError(f"{name!r} is no claim of this design: {nearest(name, known)}")
    return replace(design, claims=tuple(claims)) if claims else design
