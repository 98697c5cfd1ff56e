"""``rblspi explore``: a page with sliders that shows what a saved agent or policy knows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rblspi.cli.commands import Command
from rblspi.cli.options import Drawing
from rblspi.cli.saved import Selection
from rblspi.core.progress import say

#: seconds between two looks at the file of an agent that learns, and between reloads of its page
LOOK_EVERY = 2.0


def explore(
    saved: Selection,
    drawing: Drawing,
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
) -> None:
    """Write a page to look around in: value, uncertainty and policy over any two dimensions.

    Sliders move the other dimensions, and the pointer asks for the value of every action. The page
    is one file that needs no network. With --live, leave it open while rblspi train learns.
    """
    target = out or saved.file.with_name("explore.html")
    if target.suffix != ".html":
        raise ValueError(f"--out {target} must end in .html")
    drawn = {**drawing.domain(), "reload": LOOK_EVERY if live else None}
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(saved, target, drawn)
    print(f"open {target}")
    if live:
        _follow(saved, target, drawn)


def _write(saved: Selection, target: Path, drawn: dict[str, Any]) -> None:
    from rblspi.plotting import explorer

    loaded = saved.load()
    explorer.write(loaded.actor, target, loaded.env, **drawn)


def _follow(saved: Selection, *arguments: Any) -> None:
    """Write the page whenever the file has changed, until a signal comes."""
    file = saved.file
    say(f"following {file}; Ctrl-C ends")
    written = file.stat().st_mtime_ns
    while True:
        time.sleep(LOOK_EVERY)
        latest = file.stat().st_mtime_ns
        if latest != written:
            written = latest
            _write(saved, *arguments)
            say(f"wrote the page again at {time.strftime('%H:%M:%S')}")


COMMAND = Command(explore, "runs/pole")
