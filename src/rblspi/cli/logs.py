"""Logs that are named on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rblspi.cli import options
from rblspi.core.progress import progress

if TYPE_CHECKING:
    from rblspi.data import Dataset


class Log(NamedTuple):
    """The options by which a command reads a log."""

    data: options.LogArgument
    columns: options.ColumnsOption = None
    discount_per: options.DiscountPer = None
    skip_bad: options.SkipBad = False
    quiet: options.Quiet = False

    def open(self, actions: int | None = None, decisions: Path | None = None) -> Dataset:
        """Open the log, with decisions that were made after it."""
        from rblspi.data import Columns, MinariData, read_log

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
            return log if decisions is None else log.with_decisions(decisions)


def observations_of(data: str | None, columns: str | None) -> Any:
    """The states in a log, for pictures; None if there is no log."""
    if data is None:
        return None
    import numpy as np

    log = Log(data, columns, quiet=True).open()
    return np.concatenate([chunk.observations for chunk in log])
