"""``rblspi evaluate``: measure the return of a saved agent or policy."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection


def evaluate(
    saved: Selection,
    episodes: Annotated[int, typer.Option(min=1)] = 100,
    seed: options.Seed = 0,
    explore: options.Explore = False,
    as_json: options.AsJSON = False,
) -> None:
    """Let a saved agent or policy act without learning, and report mean return and length."""
    loaded = saved.load()
    from rblspi.rollout import evaluate as run

    result = run(loaded.actor, loaded.env, episodes, deterministic=not explore, seed=seed)
    if as_json:
        numbers = {"return": result.mean_return, "length": result.mean_length}
        finite = {name: _finite(interval._asdict()) for name, interval in numbers.items()}
        print(json.dumps({"episodes": episodes, "seed": seed} | finite))
        return
    import numpy as np
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(f"{episodes} episodes of {saved.path}"))
    for heading in ("", "mean ± 95%", "lowest", "median", "highest"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, interval, values in (
        ("return", result.mean_return, result.returns),
        ("length", result.mean_length, result.lengths),
    ):
        low, middle, high = np.quantile(values, (0.0, 0.5, 1.0))
        table.add_row(name, str(interval), f"{low:.4g}", f"{middle:.4g}", f"{high:.4g}")
    Console().print(table)


def _finite(numbers: dict[str, float]) -> dict[str, float | None]:
    """JSON has no nan: the ends of an interval from one episode are null."""
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


COMMAND = Command(evaluate, "runs/pole --episodes 20")
