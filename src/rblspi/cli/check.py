"""``rblspi check``: inspect a log before learning from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli.commands import Command
from rblspi.cli.options import Log


def check(
    log: Log,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Write data.html with pictures there."),
    ] = None,
) -> None:
    """Show the columns of a log, their contents, and possible problems with them."""
    from rblspi.offline import data_report

    source = log.open()
    roles, report = str(source), data_report(source)
    print(roles)
    print(report)
    if out is not None:
        from rblspi.plotting import data_page

        print(f"page: {data_page.write(report, out, roles, log.data)}")


COMMAND = Command(check, "logs.parquet --out runs/logs")
