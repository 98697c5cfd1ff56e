"""``rblspi serve``: a policy that other programs ask over HTTP."""

from __future__ import annotations

import ipaddress
import json
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli import options, parsing
from rblspi.core.progress import say

if TYPE_CHECKING:
    from rblspi.policies.standalone import StandalonePolicy

#: seconds that requests under way get when the service is asked to end
LAST_SECONDS = 5


def serve(
    saved: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY", help="An agent or a policy, its file or folder; or policy.json."
        ),
    ],
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down decisions and their outcomes there (.jsonl), and go on with it.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; by default, only this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 stands for a free one.")] = 8000,
    env: options.EnvironmentOption = None,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
) -> None:
    """Answer requests by a saved policy over HTTP: act, values, record, health, metrics.

    Nobody is asked for a password: on another host than this one, put a proxy before it.
    """
    from rblspi.serving import Decisions
    from rblspi.serving.http import application
    from rblspi.serving.requests import Answers

    policy = _policy(saved, env, parsing.assignments("--env-set", env_set), wrap)
    with ExitStack() as stack:
        listener = stack.enter_context(_listener(host, port))
        decisions = None if log is None else stack.enter_context(Decisions(policy, log))
        kept = "" if decisions is None else f", {decisions.log.decisions:,} decisions in {log}"
        where = f"[{host}]" if ":" in host else host
        print(
            f"{saved} on http://{where}:{listener.getsockname()[1]}: {len(policy.actions)} actions"
            f"{kept}; Ctrl-C ends it",
            flush=True,
        )
        if not _is_loopback(host):
            say(f"everybody who reaches {host} can ask and record: put a proxy before it")
        _run(application(Answers(policy, decisions)), listener)


def _policy(saved: Path, *environment: Any) -> StandalonePolicy:
    """The policy in a file, as the one that can be exported."""
    from rblspi.policies.standalone import StandalonePolicy

    if saved.suffix != ".json":
        from rblspi.policies.export import model_of

        policy = parsing.load(saved, *environment).policy()
        return StandalonePolicy(model_of(policy, std=policy.posterior is not None))
    try:
        return StandalonePolicy(json.loads(saved.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{saved} is no policy that rblspi export wrote: {type(error).__name__}: {error}"
        ) from error


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
