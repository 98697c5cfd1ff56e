"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from rblspi.cli import completion, parsing

SavedArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="SAVED", help="An agent or a policy: its file or its folder.")
]
EnvironmentArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ENV_ID",
        help="Any Gymnasium id; module:EnvId imports first.",
        autocompletion=completion.environments,
    ),
]
OptionalEnvironmentArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV_ID",
        help="Any Gymnasium id; module:EnvId imports it.",
        autocompletion=completion.environments,
    ),
]
EnvironmentOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="ENV_ID",
        help="Another environment; module:EnvId imports it.",
        autocompletion=completion.environments,
    ),
]
EnvironmentSettings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--env-set", metavar="NAME=VALUE", help="An argument of the environment."),
]
Wrap: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--wrap", metavar="MODULE:WRAPPER", help="A wrapper around the environment; repeatable."
    ),
]
Imports: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="Take in runs that --export wrote, here or elsewhere; may be repeated.",
    ),
]
Exports: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--export",
        metavar="FILE",
        help="Write block means to .csv, .csv.gz or .parquet; may be repeated.",
    ),
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the algorithm; repeatable."),
]
BasisOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--basis",
        help='rbf:8, "RBFGrid(8, width=0.5)", fourier:3, ...: see rblspi list.',
        show_default="chosen for the observations",
        autocompletion=completion.bases,
    ),
]
Explore: TypeAlias = Annotated[
    bool, typer.Option("--explore", help="Act as in training, not by the best estimate.")
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")]
Cluster: TypeAlias = Annotated[
    str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler to work on.")
]
LogArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv, .csv.gz, .jsonl, .parquet, .arrow), a folder of them, or minari:NAME.",
    ),
]
ColumnsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="TEXT",
        help="Which columns hold what: state=x+v,action=a,..., and how they are read: "
        "ends=terminated,missing=indicator.",
    ),
]
DiscountPer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--discount-per",
        metavar="TIME",
        help="The time over which the discount applies once, if rows take different times: "
        "3600, or 1h if times are dates.",
        show_default="every row",
    ),
]
SkipBad: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Leave bad rows out, and count them.")
]
AtOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--at", metavar="NUMBERS", help="The observation that slices go through: 0,0.5."),
]
NamesOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--names", metavar="NAMES", help="Of the dimensions: position,velocity."),
]
GridOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--grid", metavar="ROWSxCOLUMNS", help="States are cells, row by row: 4x12."),
]
DataOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--data", metavar="LOG", help="The log of a policy, to see where its data are."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def domain_arguments(
    at: str | None, names: str | None, grid: str | None, data: str | None, columns: str | None
) -> dict[str, Any]:
    """Arguments of `rblspi.plotting.domain.find`, from the options of the same names."""
    from rblspi.cli.logs import observations_of

    return {
        "at": None if at is None else parsing.numbers("--at", at),
        "names": None if names is None else parsing.words(names),
        "grid": None if grid is None else parsing.grid(grid),
        "data": observations_of(data, columns),
    }
