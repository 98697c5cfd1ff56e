"""``rblspi check``: what a log holds, before anything is learnt from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli import options
from rblspi.cli.logs import columns_of, open_log


def check(
    data: options.LogArgument,
    columns: options.ColumnsOption = None,
    discount_per: options.DiscountPer = None,
    skip_bad: options.SkipBad = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Write data.html with pictures there."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Show the columns of a log, what they hold, and what may be wrong with them."""
    from rblspi.offline import data_report

    source = open_log(data, columns, skip_bad, None, quiet, discount_per=discount_per)
    roles, report = columns_of(source), data_report(source)
    print(roles)
    print(report)
    if out is not None:
        from rblspi.plotting import data_page

        print(f"page: {data_page.write(report, out, roles, data)}")
