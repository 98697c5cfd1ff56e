"""Options and arguments that several commands share: how they are read, and what Tab suggests.

No text is ever evaluated: a value is a literal or a text. ``rblspi --install-completion`` sets up
the Tab key for the shell that is running.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from typer import Argument, BadParameter, Option

from rblspi import registry
from rblspi.core.archive import short
from rblspi.core.progress import progress

if TYPE_CHECKING:
    from rblspi.cli.saved import Saved
    from rblspi.data import Dataset
    from rblspi.plotting.domain import Domain


# What was typed ----------------------------------------------------------------------------------

_WORDS = {"true": True, "false": False, "none": None, "null": None}


class Assignment(NamedTuple):
    """A setting that was typed as ``name=value``; several of them make a dict."""

    name: str
    value: Any


def value(text: str) -> Any:
    """Read a literal of Python or JSON that a file can hold; anything else is a text."""
    try:
        found = ast.literal_eval(text)
        json.dumps(found)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _WORDS.get(text.lower(), text)
    return found


def _assignment(text: str) -> Assignment:
    """Read ``name=value``."""
    name, equals, given = text.partition("=")
    if not equals or not name.strip():
        raise BadParameter(f"{text!r} is not of the form name=value: put = between them")
    read = value(given.strip())
    if isinstance(read, int) and not -(2**63) <= read < 2**63:
        raise BadParameter(f"{short(text)} is too large a number: 64 bits must do")
    return Assignment(name.strip().replace("-", "_"), read)


def _numbers(text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadParameter(f"{text} must be numbers with commas between them") from None


def _words(text: str) -> list[str]:
    """Read names with commas between them."""
    return [part.strip() for part in text.split(",")]


def _grid(text: str) -> tuple[int, int]:
    """Read the number of rows and of columns."""
    found = re.fullmatch(r"(\d+)[x×](\d+)", text.strip())
    if found is None:
        raise BadParameter(f"{text} must be rows and columns: 4x12")
    return int(found[1]), int(found[2])


# What Tab suggests --------------------------------------------------------------------------------


def suggest(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Suggest, in alphabetical order, the names that begin with what has been typed."""
    return lambda incomplete: sorted(name for name in names() if name.startswith(incomplete))


def environments() -> Iterable[str]:
    """Environments that are installed."""
    import gymnasium as gym

    return gym.registry


def _bases() -> Iterable[str]:
    from rblspi.features import BASES

    return BASES


def algorithms(online: bool) -> Callable[[str], list[str]]:
    """Suggest algorithms of ``rblspi train``, or else of ``rblspi fit``."""
    return suggest(lambda: (a.name for a in registry.algorithms().values() if a.online is online))


# Options and arguments ----------------------------------------------------------------------------

_ENVIRONMENT: Any = {"metavar": "ENV_ID", "autocompletion": suggest(environments)}
_ANY_ENVIRONMENT: Any = {"help": "Any Gymnasium id; module:EnvId imports first.", **_ENVIRONMENT}

SavedArgument: TypeAlias = Annotated[
    Path, Argument(metavar="SAVED", help="An agent or a policy: its file or its folder.")
]
EnvironmentArgument: TypeAlias = Annotated[str, Argument(**_ANY_ENVIRONMENT)]
OptionalEnvironmentArgument: TypeAlias = Annotated[str | None, Argument(**_ANY_ENVIRONMENT)]
EnvironmentOption: TypeAlias = Annotated[
    str | None,
    Option("--env", help="Another environment; module:EnvId imports it.", **_ENVIRONMENT),
]
EnvironmentSettings: TypeAlias = Annotated[
    list[Assignment] | None,
    Option(
        "--env-set",
        metavar="NAME=VALUE",
        parser=_assignment,
        help="An argument of the environment; repeatable.",
    ),
]
Wrap: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--wrap", metavar="MODULE:WRAPPER", help="A wrapper around the environment; repeatable."
    ),
]
Settings: TypeAlias = Annotated[
    list[Assignment] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        parser=_assignment,
        help="A setting of the algorithm; repeatable.",
    ),
]
BasisOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--basis",
        help='rbf:8, "RBFGrid(8, width=0.5)", fourier:3, ...: see rblspi list.',
        show_default="chosen for the observations",
        autocompletion=suggest(_bases),
    ),
]
Explore: TypeAlias = Annotated[
    bool, Option("--explore", help="Act as in training, not by the best estimate.")
]
Seed: TypeAlias = Annotated[int, Option("--seed", min=0, help="Seed of all random numbers.")]
Cluster: TypeAlias = Annotated[
    str | None, Option("--cluster", metavar="ADDRESS", help="A Dask scheduler to work on.")
]
LogArgument: TypeAlias = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A file (.csv, .csv.gz, .jsonl, .parquet, .arrow), a folder of them, or minari:NAME.",
    ),
]
ColumnsOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--columns",
        metavar="TEXT",
        help="The meaning of columns: state=x+v,action=a,..., and how they are read: "
        "ends=terminated,missing=indicator.",
    ),
]
DiscountPer: TypeAlias = Annotated[
    str | None,
    Option(
        "--discount-per",
        metavar="TIME",
        help="The time over which the discount applies once, if rows take different times: "
        "3600, or 1h if times are dates.",
        show_default="every row",
    ),
]
SkipBad: TypeAlias = Annotated[
    bool, Option("--skip-bad", help="Leave bad rows out, and count them.")
]
AsJSON: TypeAlias = Annotated[bool, Option("--json", help="For programs.")]
Quiet: TypeAlias = Annotated[bool, Option("--quiet", help="No progress.")]


class Log(NamedTuple):
    """The options by which a command reads a log."""

    data: LogArgument
    columns: ColumnsOption = None
    discount_per: DiscountPer = None
    skip_bad: SkipBad = False
    quiet: Quiet = False

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


class Drawing(NamedTuple):
    """The options for drawing the values of a policy."""

    at: Annotated[
        Any,
        Option(
            metavar="NUMBERS",
            parser=_numbers,
            help="A point that all slices contain: 0,0.5.",
        ),
    ] = None
    names: Annotated[
        Any,
        Option(metavar="NAMES", parser=_words, help="Names of the dimensions: position,speed."),
    ] = None
    grid: Annotated[
        Any, Option(metavar="ROWSxCOLUMNS", parser=_grid, help="States are cells: 4x12.")
    ] = None
    data: Annotated[
        str | None, Option(metavar="LOG", help="The log of a policy, to show where its data are.")
    ] = None
    columns: ColumnsOption = None
    seed: Seed = 0

    def domain(self, saved: Saved) -> Domain:
        """What a saved agent or policy is drawn over."""
        import numpy as np

        from rblspi.plotting.domain import find

        data = None
        if self.data is not None:
            log = Log(self.data, self.columns, quiet=True).open()
            data = np.concatenate([chunk.observations for chunk in log])
        chosen = {"at": self.at, "names": self.names, "grid": self.grid, "seed": self.seed}
        return find(saved.actor, saved.env, data=data, **chosen)
