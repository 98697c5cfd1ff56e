"""``rblspi explore``: a local page with sliders that shows what a saved agent or policy knows."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rblspi.cli.commands import Command
from rblspi.cli.options import Drawing
from rblspi.cli.saved import Selection

if TYPE_CHECKING:
    from rblspi.plotting.explorer import Known


def explore(
    saved: Selection,
    drawing: Drawing,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a still page instead, and end."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 stands for a free one.")] = 5006,
) -> None:
    """Explore the knowledge of an agent or policy: maps of value, uncertainty and policy.

    Sliders and the pointer choose the observation whose action values are shown. The page is served
    to this machine alone and needs no network. It follows an agent that rblspi train saves.
    """
    if html is not None and html.suffix != ".html":
        raise ValueError(f"--html {html} must end in .html")
    if html is None:
        _serve(_following(saved, drawing), port)
    else:
        from rblspi.plotting import explorer

        loaded = saved.load()
        html.parent.mkdir(parents=True, exist_ok=True)
        print(f"open {explorer.write(loaded.actor, html, drawing.domain(loaded))}")


def _following(saved: Selection, drawing: Drawing) -> Callable[[], Known]:
    """Return the contents of the file, which is read again whenever it changes."""
    from rblspi.plotting import explorer

    @lru_cache(maxsize=1)
    def read(changed: int) -> Known:
        loaded = saved.load()
        return explorer.known(loaded.actor, drawing.domain(loaded))

    return lambda: read(saved.file.stat().st_mtime_ns)


def _serve(latest: Callable[[], Known], port: int) -> None:
    from bokeh.server.server import Server

    from rblspi.plotting import explorer

    latest()  # errors in the file or the options are reported at once
    try:
        with socket.create_server(("localhost", port)):
            pass  # the port is free
    except OSError as error:
        raise ValueError(
            f"--port {port} cannot be listened on ({error.strerror}): choose another port, or "
            "--port 0 for a free one"
        ) from error
    server = Server({"/": explorer.app(latest)}, address="localhost", port=port)
    print(f"open http://localhost:{server.port}; Ctrl-C ends it", flush=True)
    server.start()
    try:
        server.io_loop.start()
    finally:
        server.stop()


COMMAND = Command(explore, "runs/pole")
