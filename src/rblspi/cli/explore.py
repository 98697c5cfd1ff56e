"""``rblspi explore``: a page with sliders that shows what a saved agent or policy knows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rblspi.cli import options, parsing
from rblspi.core.progress import say

#: seconds between two looks at the file of an agent that learns, and between reloads of its page
LOOK_EVERY = 2.0


def explore(
    saved: options.SavedArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="The page, unless beside it."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Write the page again whenever the agent is saved; Ctrl-C ends."
        ),
    ] = False,
    at: options.AtOption = None,
    names: options.NamesOption = None,
    grid: options.GridOption = None,
    data: options.DataOption = None,
    columns: options.ColumnsOption = None,
    seed: options.Seed = 0,
    env: options.EnvironmentOption = None,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
) -> None:
    """Write a page to look around in: value, uncertainty and policy over any two dimensions.

    Sliders move the other dimensions, and the pointer asks for the value of every action. The page
    is one file that needs no network. With --live, leave it open while rblspi train learns.
    """
    target = out or parsing.saved_file(saved).with_name("explore.html")
    if target.suffix != ".html":
        raise ValueError(f"--out {target} must end in .html")
    drawing: dict[str, Any] = {
        **options.domain_arguments(at, names, grid, data, columns),
        "seed": seed,
        "reload": LOOK_EVERY if live else None,
    }
    environment = (env, parsing.assignments("--env-set", env_set), wrap)
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(saved, environment, target, drawing)
    print(f"open {target}")
    if live:
        _follow(saved, environment, target, drawing)


def _write(
    saved: Path, environment: tuple[Any, ...], target: Path, drawing: dict[str, Any]
) -> None:
    from rblspi.plotting import explorer

    loaded = parsing.load(saved, *environment)
    explorer.write(loaded.actor, target, loaded.env, **drawing)


def _follow(saved: Path, *arguments: Any) -> None:
    """Write the page whenever the file has changed, until a signal comes."""
    file = parsing.saved_file(saved)
    say(f"following {file}; Ctrl-C ends")
    written = file.stat().st_mtime_ns
    while True:
        time.sleep(LOOK_EVERY)
        latest = file.stat().st_mtime_ns
        if latest != written:
            written = latest
            _write(saved, *arguments)
            say(f"wrote the page again at {time.strftime('%H:%M:%S')}")
