"""Logs that are named on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rblspi.cli import options
from rblspi.core.progress import progress


class Log(NamedTuple):
    """The options by which a command reads a log."""

    data: options.LogArgument
    columns: options.ColumnsOption = None
    discount_per: options.DiscountPer = None
    skip_bad: options.SkipBad = False
    quiet: options.Quiet = False

    def open(self, actions: int | None = None, decisions: Path | None = None) -> Any:
        """Open the log, with decisions that were made after it."""
        from rblspi.data import Columns, LogAndDecisions, MinariData, read_log

        if self.data.startswith("minari:"):
            if self.columns is not None or self.skip_bad or decisions is not None:
                raise ValueError(
                    "--columns, --skip-bad and --decisions are for tables: leave them out"
                )
            if self.discount_per is not None:
                raise ValueError(
                    "--discount-per: Minari does not say how long steps take; leave it out"
                )
            return MinariData(self.data.removeprefix("minari:"))
        names = Columns() if self.columns is None else Columns.from_text(self.columns)
        if self.discount_per is not None:
            names = replace(names, discount_per=self.discount_per)
        with progress(1.0, self.quiet) as tell:

            def read(rows: int) -> None:
                tell(0.0, f"reading, {rows:,} rows")

            log = read_log(self.data, names, actions=actions, skip_bad=self.skip_bad, tell=read)
            return log if decisions is None else LogAndDecisions(log, decisions)


def observations_of(data: str | None, columns: str | None) -> Any:
    """The states in a log, for pictures; None if there is no log."""
    if data is None:
        return None
    import numpy as np

    log = Log(data, columns, quiet=True).open()
    return np.concatenate([chunk.observations for chunk in log])


def columns_of(source: Any) -> str:
    """Which columns of a log hold what, as a table."""
    if hasattr(source, "decisions"):
        return f"{columns_of(source.log)}\ndecisions  {source.decisions.size:,} with their outcomes"
    if hasattr(source, "columns"):  # of Parquet files with numbers
        rows = [(field, ", ".join(names)) for field, names in source.columns.items()]
        if source.discount_per is not None:
            rows.append(("discount_per", source.discount_per))
        return "\n".join(f"{field:<10}  {value}" for field, value in rows)
    return str(source) if hasattr(source, "roles") else f"{source.name}: {source.size:,} rows"
