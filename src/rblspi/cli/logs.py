"""Logs that are named on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rblspi.core.progress import progress


def open_log(
    data: str,
    columns: str | None,
    skip_bad: bool,
    actions: int | None,
    quiet: bool,
    decisions: Path | None = None,
    discount_per: str | None = None,
) -> Any:
    """Open a log that is named on the command line, with decisions that were made after it."""
    from rblspi.data import Columns, LogAndDecisions, MinariData, read_log

    if data.startswith("minari:"):
        if columns is not None or skip_bad or decisions is not None:
            raise ValueError("--columns, --skip-bad and --decisions are for tables: leave them out")
        if discount_per is not None:
            raise ValueError(
                "--discount-per: Minari does not say how long steps take; leave it out"
            )
        return MinariData(data.removeprefix("minari:"))
    names = Columns() if columns is None else Columns.from_text(columns)
    if discount_per is not None:
        names = replace(names, discount_per=discount_per)
    with progress(1.0, quiet) as tell:

        def read(rows: int) -> None:
            tell(0.0, f"reading, {rows:,} rows")

        log = read_log(data, names, actions=actions, skip_bad=skip_bad, tell=read)
        return log if decisions is None else LogAndDecisions(log, decisions)


def observations_of(data: str | None, columns: str | None) -> Any:
    """The states in a log, for pictures; None if there is no log."""
    if data is None:
        return None
    import numpy as np

    source = open_log(data, columns, False, None, True)
    return np.concatenate([chunk.observations for chunk in source])


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
