"""``rblspi serve``: serve the decisions of a policy over HTTP."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection
from rblspi.core.progress import say

#: seconds that pending requests have when the service is asked to end
LAST_SECONDS = 5


def serve(
    saved: Selection,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down decisions and their outcomes there (.db), and go on with it.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; by default, only this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 stands for a free one.")] = 8000,
) -> None:
    """Serve a saved policy over HTTP: act, values, record, health, metrics.

    The service asks for no password: on a host other than this machine, put a proxy before it.
    """
    from rblspi.serving import Decisions
    from rblspi.serving.http import application

    loaded = saved.load()
    policy = loaded.policy()
    with closing(_listener(host, port)) as listener, Decisions(policy, log) as decisions:
        counts = decisions.counts
        kept = "" if counts is None else f", {counts['decisions']:,} decisions in {log}"
        where = f"[{host}]" if ":" in host else host
        print(
            f"{saved.path} on http://{where}:{listener.getsockname()[1]}: {policy.actions} actions"
            f"{kept}; Ctrl-C ends it",
            flush=True,
        )
        if not _is_loopback(host):
            say(f"everybody who reaches {host} can ask and record: put a proxy before it")
        _run(application(decisions), listener)


def _listener(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(
            f"--host {host} --port {port} cannot be listened on ({error.strerror}): choose another "
            "port, or --port 0 for a free one"
        ) from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _run(app: object, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


COMMAND = Command(serve, "runs/logs --log decisions.db")
