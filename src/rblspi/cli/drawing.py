"""What commands that draw a policy are told about its observations."""

from __future__ import annotations

from typing import Any

from rblspi.cli import parsing
from rblspi.cli.logs import observations_of


def domain_arguments(
    at: str | None, names: str | None, grid: str | None, data: str | None, columns: str | None
) -> dict[str, Any]:
    """Arguments of `rblspi.plotting.domain.find`, from the options of the command line."""
    return {
        "at": None if at is None else parsing.numbers("--at", at),
        "names": None if names is None else parsing.words(names),
        "grid": None if grid is None else parsing.grid(grid),
        "data": observations_of(data, columns),
    }
